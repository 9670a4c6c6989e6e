"""Which members were trained before, or are being trained: told in a plan, and left out of the costs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from canard.errors import CanardError
from canard.models import TrainingConfig
from canard_hydra.experiment import Experiment
from canard_hydra.platforms import connect_for_a_look

if TYPE_CHECKING:
    from canard.client import Client
    from canard.wire import Reuse


@dataclass(frozen=True, kw_only=True)
class Foreseen:
    """What a submit would find."""

    sources: dict[int, str] = field(default_factory=dict)
    """By member: `run_xxxxxxxx/3`, the task that has its result or will have it."""
    lines: tuple[str, ...] = ()

    def to_train(self, configs: Sequence[TrainingConfig]) -> list[TrainingConfig]:
        return [config for index, config in enumerate(configs) if index not in self.sources]


def foresee(experiment: Experiment) -> Foreseen:
    """Ask the platform, when there is one that can be asked; never fails."""
    if not experiment.control.reuse:
        return Foreseen()
    try:
        client = connect_for_a_look(experiment.control.platform)
        if client is None:
            return Foreseen()
        with client:
            return ask(client, experiment)
    except CanardError as error:
        return Foreseen(lines=(f"What was trained before is not known: {error}",))


def ask(client: "Client", experiment: Experiment) -> Foreseen:
    """
    Raises:
        CanardError: the platform would refuse the run, or did not answer.
    """
    found = client.preview_run(experiment.run, name=experiment.name)
    sources = {member.index: member.source for member in found.reuse.members}
    lines = []
    if found.active_run is not None:
        lines.append(f"Reuse: a submit comes back to {found.active_run}, which is the same and goes on")
        sources = {index: f"{found.active_run}/{index}" for index in range(found.num_tasks)}
    elif sources:
        lines.append(f"Reuse: {_counts(found.reuse, found.num_tasks)}; reuse=false trains them all")
    if found.reuse.note is not None:
        lines.append(f"Note: {found.reuse.note}")
    return Foreseen(sources=sources, lines=tuple(lines))


def _counts(reuse: "Reuse", num_tasks: int) -> str:
    from canard.announce import reuse_parts

    return ", ".join(reuse_parts(reuse, num_tasks))
