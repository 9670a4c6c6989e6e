"""`max_cost`: a run that is estimated to cost more is not submitted."""

from collections.abc import Sequence

from canard.announce import counted, dollars
from canard.models import TrainingConfig
from canard_hydra.errors import ExperimentError
from canard_hydra.experiment import Experiment


def exceeds(experiment: Experiment, to_train: Sequence[TrainingConfig]) -> bool:
    cap = experiment.control.max_cost
    return cap is not None and _total(to_train) > cap


def refuse_above(experiment: Experiment, to_train: Sequence[TrainingConfig]) -> None:
    """
    Args:
        to_train: configs of the members that would be trained.

    Raises:
        ExperimentError: their estimated costs are above the cap.
    """
    if exceeds(experiment, to_train):
        raise ExperimentError(
            f"max_cost: {counted(len(to_train), 'member')} to train, estimated at"
            f" {dollars(_total(to_train))}, more than {dollars(experiment.control.max_cost or 0)};"
            " nothing was submitted; train fewer or shorter, or raise max_cost"
        )


def _total(configs: Sequence[TrainingConfig]) -> float:
    return sum(config.estimate_cost()["total_cost"] for config in configs)
