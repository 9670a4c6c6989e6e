"""What the launcher plugin does: one run of all members of a multirun."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn, JobStatus, filter_overrides
from hydra.types import HydraContext
from omegaconf import DictConfig, OmegaConf

from canard.errors import RunFailedError
from canard_hydra.errors import ExperimentError
from canard_hydra.experiment import SUBMISSION, Experiment, make_experiment
from canard_hydra.multirun import Member, compose_members, swept_keys, zipped_keys
from canard_hydra.outcome import Outcome
from canard_hydra.perform import perform
from canard_hydra.terminal import print_line, stdout

BASIC = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"
OURS = "hydra_plugins.canard_launcher.sweeper.CanardSweeper"


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A launcher's work, apart from Hydra's plugin machinery."""

    context: HydraContext
    config: DictConfig
    study: str = field(default_factory=lambda: f"swp_{secrets.token_hex(4)}")
    """Tag of all runs of a sweeper that searches: it launches one batch after the other."""

    def __post_init__(self) -> None:
        self._refuse_batches()
        self._refuse_what_another_sweeper_ignores()

    def __call__(self, batch: Sequence[Sequence[str]], first_index: int) -> list[JobReturn]:
        """Compose, check, then plan, try or submit; a JobReturn per member, its value the objective.

        Raises:
            ExperimentError: something is wrong with a member; nothing was sent.
        """
        searches = self._searches
        members = compose_members(
            self.context.config_loader,
            self.config,
            batch,
            first_index=first_index,
            whole=searches,  # it may look into them
        )
        experiment = make_experiment(
            [member.composed for member in members],
            record=self._record(first_index),
            swept_keys=swept_keys(self.config, batch),
            zipped=zipped_keys(self.config),
        )
        outcomes = self._trials(experiment, first_index) if searches else perform(experiment)
        working_dir = str(Path.cwd())
        return [
            _job_return(member, outcome, searches=searches, working_dir=working_dir)
            for member, outcome in zip(members, outcomes, strict=True)
        ]

    @property
    def _sweeper(self) -> Any:
        return OmegaConf.select(self.config, "hydra.sweeper._target_")

    @property
    def _searches(self) -> bool:
        return self._sweeper not in (BASIC, OURS)

    def _trials(self, experiment: Experiment, first_index: int) -> list[Outcome]:
        """A batch of a sweeper that needs the objectives of one before it says the next."""
        self._refuse_not_waiting(experiment)
        self._refuse_other_number_of_objectives(experiment)
        self._keep_record()
        trials = f"{first_index}-{first_index + len(experiment.configs) - 1}"
        outcomes = perform(_tagged(experiment, sweep=self.study, trials=trials))
        if experiment.control.mode == "submit":
            return outcomes
        print_line(stdout(), "The sweeper says what comes next by their results, so this is the first batch.")
        raise SystemExit(0)

    def _keep_record(self) -> None:
        """Hydra's own sweeper leaves this file; the others expect the folder, and leave results in it."""
        file = Path(str(self.config.hydra.sweep.dir)) / "multirun.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            OmegaConf.save(self.config, file)

    def _record(self, first_index: int) -> Path:
        """One for each run: a sweeper that searches makes a run of each batch."""
        file = Path(str(self.config.hydra.sweep.dir)) / SUBMISSION
        return file if first_index == 0 else file.with_stem(f"{file.stem}_{first_index}")

    def _refuse_batches(self) -> None:
        """Hydra's own sweeper would call the launcher once a batch, and each would be a run."""
        size = OmegaConf.select(self.config, "hydra.sweeper.max_batch_size")
        if self._sweeper == BASIC and size is not None:
            raise ExperimentError(
                "hydra.sweeper.max_batch_size: a multirun is one run, and the platform decides how many"
                " tasks run at once; leave it out"
            )

    def _refuse_what_another_sweeper_ignores(self) -> None:
        if self._sweeper == OURS:
            return
        for key, nothing in (("zip", []), ("repeats", 1)):
            if OmegaConf.select(self.config, key, default=nothing) not in (nothing, None):
                raise ExperimentError(f"{key}: the chosen sweeper does not know it; say hydra/sweeper=canard")

    def _refuse_not_waiting(self, experiment: Experiment) -> None:
        if experiment.control.mode == "submit" and not experiment.wait:
            raise ExperimentError(
                "wait: this sweeper chooses by the rewards of the tasks before, so the command has to stay;"
                " say wait=true"
            )

    def _refuse_other_number_of_objectives(self, experiment: Experiment) -> None:
        """Every trial would fail at its end."""
        direction = OmegaConf.select(self.config, "hydra.sweeper.direction")
        metric = experiment.control.metric
        if direction is None:
            return
        directions = len(direction) if OmegaConf.is_list(direction) else None
        metrics = len(metric) if isinstance(metric, list) else None
        if directions != metrics:
            raise ExperimentError(
                f"metric: is {metric}, and hydra.sweeper.direction is {direction}; say a list of as many for"
                " several objectives, else one of each"
            )


def _tagged(experiment: Experiment, **tags: str) -> Experiment:
    run = experiment.run.model_copy(update={"tags": {**(experiment.run.tags or {}), **tags}})
    return replace(experiment, run=run)


class FailedReturn(JobReturn):
    """Hydra prints the overrides before it raises; the table has said more by then."""

    @property
    def return_value(self) -> Any:
        raise self._return_value

    @return_value.setter
    def return_value(self, value: Any) -> None:
        self._return_value = value


def _job_return(member: Member, outcome: Outcome, *, searches: bool, working_dir: str) -> JobReturn:
    error = (outcome.reason or outcome.error) if searches else outcome.error
    result = JobReturn() if error is None else FailedReturn()
    result.overrides = list(filter_overrides(member.overrides))
    result.cfg = member.config
    if member.hydra is not None:
        result.hydra_cfg = OmegaConf.create({"hydra": member.hydra})
        result.task_name = str(member.hydra.job.name)
    result.working_dir = working_dir
    result.status = JobStatus.COMPLETED if error is None else JobStatus.FAILED
    result.return_value = outcome.objective if error is None else RunFailedError(error)
    return result
