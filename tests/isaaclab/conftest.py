"""Isaac Lab's own environments, made by make_env.sh and make_env_232.sh, driven like the runner does."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from trainers import REPOSITORY, Trainer, made, mark

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark(items, HERE, "isaaclab")


@pytest.fixture(scope="session")
def isaaclab_python() -> str:
    return made(HERE / "make_env.sh")


@pytest.fixture(scope="session")
def isaaclab(isaaclab_python: str) -> Trainer:
    """Isaac Lab 3.0.0 without Isaac Sim, with the assets of our own."""
    return Trainer(isaaclab_python, _environment())


@pytest.fixture(scope="session")
def rail_robot(isaaclab_python: str, tmp_path_factory: pytest.TempPathFactory) -> Trainer:
    """The user's project, installed as the runner does: beside Isaac Lab's packages, not among them."""
    folder = tmp_path_factory.mktemp("rail_robot")
    project = shutil.copytree(HERE / "project", folder / "project")
    subprocess.run([isaaclab_python, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = str(folder / "venv" / "bin" / "python")
    installed = subprocess.run(
        [isaaclab_python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    (folder / "venv" / "lib" / "python3.12" / "site-packages" / "trainer.pth").write_text(installed)
    install = [isaaclab_python, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    subprocess.run(
        [*install, "--no-build-isolation", "-e", project / "source" / "rail_robot"], check=True, timeout=120
    )
    return Trainer(python, _environment())


@pytest.fixture(scope="session")
def isaaclab_2() -> Trainer:
    """The unmodified source of Isaac Lab 2.3.2, with Isaac Sim stood in for."""
    python = made(HERE / "make_env_232.sh", sys.executable)
    source = Path(python).parents[1] / "lib/python3.11/site-packages/isaaclab/source"
    packages = [source / name for name in ("isaaclab", "isaaclab_assets", "isaaclab_tasks", "isaaclab_rl")]
    path = [HERE / "isaacsim_standins", REPOSITORY, *packages, source / "isaaclab_contrib"]
    return Trainer(python, {"PYTHONPATH": os.pathsep.join(map(str, path)), "STANDIN_LOG": os.devnull})


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": str(REPOSITORY), "ISAACSIM_ASSET_ROOT": str(HERE / "assets")}
