"""mjlab's own environment, made by make_env.sh, driven like the runner does."""

from pathlib import Path

import pytest
from trainers import REPOSITORY, Trainer, made, mark

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark(items, HERE, "mjlab")


@pytest.fixture(scope="session")
def mjlab() -> Trainer:
    """mjlab on the CPU; kernels are compiled once for all tests, and kept beside the environment."""
    python = made(HERE / "make_env.sh")
    environment = Path(python).parents[1]
    kernels = environment.with_name(f"{environment.name}.warp")
    return Trainer(python, {"PYTHONPATH": str(REPOSITORY), "WARP_CACHE_PATH": str(kernels)})
