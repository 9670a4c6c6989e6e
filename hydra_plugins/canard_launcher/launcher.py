"""`hydra/launcher=canard`: one run of all members of a multirun.

Hydra loads this file in every Hydra program of the environment: nothing heavy here, and no future import.
"""

from typing import Any, Optional, Sequence

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


class CanardLauncher(Launcher):
    """Submits instead of running; see canard_hydra.launch."""

    def __init__(self) -> None:
        self._launch: Optional[Any] = None

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        from canard_hydra.launch import Launch

        self._launch = Launch(context=hydra_context, config=config)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        if self._launch is None:
            raise RuntimeError("Hydra calls setup before launch")
        jobs: Sequence[JobReturn] = self._launch(job_overrides, initial_job_idx)
        return jobs


ConfigStore.instance().store(
    group="hydra/launcher",
    name="canard",
    node={"_target_": "hydra_plugins.canard_launcher.launcher.CanardLauncher"},
    provider="canard",
)
