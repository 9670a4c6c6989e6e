"""Does with an experiment what its mode says."""

from canard_hydra.experiment import Experiment
from canard_hydra.full_error import as_the_user_said
from canard_hydra.outcome import Outcome


def perform(experiment: Experiment) -> list[Outcome]:
    """Plan, try or submit; an outcome per member."""
    with as_the_user_said():
        return _perform(experiment)


def _perform(experiment: Experiment) -> list[Outcome]:
    match experiment.control.mode:
        case "plan":
            # Each mode loads what it needs: a plan must not wait for an HTTP client.
            from canard_hydra.plan import print_plan

            print_plan(experiment)
        case "dry_run":
            from canard_hydra.dry_run import dry_run

            dry_run(experiment)
        case "submit":
            from canard_hydra.submit import submit

            return submit(experiment)
    return [Outcome() for _ in experiment.configs]
