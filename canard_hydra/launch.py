"""What the launcher plugin does: one run of all members of a multirun."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn, JobStatus, filter_overrides
from hydra.types import HydraContext
from omegaconf import DictConfig, OmegaConf

from canard.errors import RunFailedError
from canard_hydra.errors import ExperimentError
from canard_hydra.experiment import Experiment, make_experiment
from canard_hydra.multirun import Member, compose_members, swept_keys, zipped_keys
from canard_hydra.outcome import Outcome
from canard_hydra.perform import perform

BASIC = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"
OURS = "hydra_plugins.canard_launcher.sweeper.CanardSweeper"


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A launcher's work, apart from Hydra's plugin machinery."""

    context: HydraContext
    config: DictConfig

    def __post_init__(self) -> None:
        self._refuse_batches()

    def __call__(self, batch: Sequence[Sequence[str]], first_index: int) -> list[JobReturn]:
        """Compose, check, then plan, try or submit; a JobReturn per member, its value the final mean reward.

        Raises:
            ExperimentError: something is wrong with a member; nothing was sent.
        """
        members = compose_members(
            self.context.config_loader,
            self.config,
            batch,
            first_index=first_index,
            whole=self._sweeper not in (BASIC, OURS),  # one that searches may look into them
        )
        experiment = make_experiment(
            [member.composed for member in members],
            swept_keys=swept_keys(self.config, batch),
            zipped=zipped_keys(self.config),
        )
        self._refuse_not_waiting(experiment)
        outcomes = perform(experiment)
        return [_job_return(member, outcome) for member, outcome in zip(members, outcomes, strict=True)]

    @property
    def _sweeper(self) -> Any:
        return OmegaConf.select(self.config, "hydra.sweeper._target_")

    def _refuse_batches(self) -> None:
        """Hydra's own sweeper would call the launcher once a batch, and each would be a run."""
        size = OmegaConf.select(self.config, "hydra.sweeper.max_batch_size")
        if self._sweeper == BASIC and size is not None:
            raise ExperimentError(
                "hydra.sweeper.max_batch_size: a multirun is one run, and the platform decides how many"
                " tasks run at once; leave it out"
            )

    def _refuse_not_waiting(self, experiment: Experiment) -> None:
        if self._sweeper in (BASIC, OURS) or experiment.control.mode != "submit" or experiment.wait:
            return
        raise ExperimentError(
            "wait: this sweeper chooses by the rewards of the tasks before, so the command has to stay;"
            " say wait=true"
        )


class FailedReturn(JobReturn):
    """Hydra prints the overrides before it raises; the table has said more by then."""

    @property
    def return_value(self) -> Any:
        raise self._return_value

    @return_value.setter
    def return_value(self, value: Any) -> None:
        self._return_value = value


def _job_return(member: Member, outcome: Outcome) -> JobReturn:
    result = JobReturn() if outcome.error is None else FailedReturn()
    result.overrides = list(filter_overrides(member.overrides))
    result.cfg = member.config
    if member.hydra is not None:
        result.hydra_cfg = OmegaConf.create({"hydra": member.hydra})
        result.task_name = str(member.hydra.job.name)
    result.working_dir = str(Path.cwd())
    result.status = JobStatus.COMPLETED if outcome.error is None else JobStatus.FAILED
    result.return_value = outcome.mean_reward if outcome.error is None else RunFailedError(outcome.error)
    return result
