"""The plugins as Hydra and other sweepers see them."""

import subprocess
import sys

import pytest
from hydra.core.plugins import Plugins
from hydra.core.utils import JobStatus
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper

from canard.errors import RunFailedError

SEARCHING_SWEEPER = """
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore


class Searching(BasicSweeper):
    "Hands members over two at a time and reads the rewards, as a sweeper that searches does."

    def __init__(self):
        super().__init__(max_batch_size=2)

    def sweep(self, arguments):
        for batch in super().sweep(arguments):
            for one in batch:
                print("RETURNED", one.overrides, one.return_value, one.status.name, one.cfg.seed, flush=True)


ConfigStore.instance().store(
    group="hydra/sweeper", name="searching", node={"_target_": "hydra_plugins.searching.sweeper.Searching"}
)
"""


@pytest.mark.parametrize(("kind", "name"), [(Launcher, "CanardLauncher"), (Sweeper, "CanardSweeper")])
def test_hydra_finds_the_plugin(kind, name):
    assert name in {plugin.__name__ for plugin in Plugins.instance().discover(kind)}


def test_another_hydra_program_loads_the_plugins_without_what_they_need(directory, environment):
    program = (
        "import sys, hydra.core.plugins; hydra.core.plugins.Plugins.instance();"
        "names = {name.partition('.')[0] for name in sys.modules};"
        "print(sorted(names & {'canard', 'canard_hydra', 'pydantic', 'rich'}))"
    )

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert done.stdout.strip() == "[]"


@pytest.fixture
def searching(canard_hydra, tmp_path):
    """The command with another distribution's sweeper, in its own part of the namespace hydra_plugins."""
    package = tmp_path / "site" / "hydra_plugins" / "searching"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "sweeper.py").write_text(SEARCHING_SWEEPER)

    def run(*arguments):
        return canard_hydra("-m", "hydra/sweeper=searching", *arguments, PYTHONPATH=str(tmp_path / "site"))

    return run


def test_a_sweeper_that_searches_is_given_the_final_rewards(searching, service):
    service.statuses = ["completed", "completed"]

    done = searching("platform=self_hosted", "wait=true", "seed=1,2")

    assert done.returncode == 0, done.stderr
    assert "RETURNED ['platform=self_hosted', 'wait=True', 'seed=1'] 100.0 COMPLETED 1" in done.stdout
    assert "'seed=2'] 101.0 COMPLETED 2" in done.stdout


def test_a_sweeper_that_searches_cannot_go_without_the_rewards(searching, service):
    done = searching("platform=self_hosted", "wait=false", "seed=1,2")

    assert done.returncode == 1
    assert "say wait=true" in done.stderr
    assert not service.submits


THEIR_DEFAULTS = """
from hydra.core.config_store import ConfigStore

for name, node in {
    "optuna": {"direction": "minimize", "max_failure_rate": 0.0},
    "nevergrad": {"optim": {"maximize": False, "max_failure_rate": 0.0}},
    "ax": {"ax_config": {"experiment": {"minimize": True}, "early_stop": {"minimize": True}}},
}.items():
    ConfigStore.instance().store(group="hydra/sweeper", name=name, node=node)
"""


@pytest.mark.parametrize(
    ("name", "maximised", "key", "minimised"),
    [
        ("optuna", "direction: maximize\nmax_failure_rate: 1.0", "direction=minimize", "direction: minimize"),
        ("nevergrad", "maximize: true\n  max_failure_rate: 1.0", "optim.maximize=false", "maximize: false"),
        ("ax", "minimize: false", "ax_config.experiment.minimize=true", "minimize: true"),
    ],
)
def test_rewards_are_maximised_unless_the_user_says_otherwise(
    canard_hydra, tmp_path, name, maximised, key, minimised
):
    """The defaults as the sweepers of Hydra's documentation store them."""
    package = tmp_path / "site" / "hydra_plugins" / "theirs"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(THEIR_DEFAULTS)

    def shown(*arguments):
        arguments = ("--cfg", "hydra", "-p", "hydra.sweeper", f"hydra/sweeper={name}", *arguments)
        return canard_hydra(*arguments, PYTHONPATH=str(tmp_path / "site")).stdout

    assert maximised in shown()
    assert minimised in shown(f"hydra.sweeper.{key}")


def test_a_failed_task_is_a_failed_job_to_hydra():
    from canard_hydra.launch import FailedReturn

    failed = FailedReturn(status=JobStatus.FAILED)
    failed.return_value = RunFailedError("task 1 broke")

    with pytest.raises(RunFailedError, match="task 1 broke"):
        _ = failed.return_value
