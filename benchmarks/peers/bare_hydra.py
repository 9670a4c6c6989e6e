"""A Hydra program with our configuration files and none of our code; its launcher does nothing."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig

CONF = Path(__file__).parents[2] / "conf"
CHOICES = ["hydra/launcher=nothing", "hydra/sweeper=basic"]


class NothingLauncher(Launcher):  # type: ignore[misc]
    """Takes the members as they come, and is done."""

    __module__ = "hydra_plugins.nothing"  # Hydra takes no plugin from elsewhere

    def setup(self, **context: Any) -> None:
        """It needs nothing."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[JobReturn]:
        return [JobReturn(status=JobStatus.COMPLETED) for _ in job_overrides]


def main() -> None:
    """Arguments as for any Hydra program."""
    sys.modules[NothingLauncher.__module__] = sys.modules[__name__]
    Plugins.instance().register(NothingLauncher)
    node = {"_target_": f"{NothingLauncher.__module__}.{NothingLauncher.__qualname__}"}
    ConfigStore.instance().store(group="hydra/launcher", name="nothing", node=node)
    sys.argv += CHOICES

    @hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
    def app(_: DictConfig) -> None:
        raise AssertionError("nothing is launched")

    app()


if __name__ == "__main__":
    main()
