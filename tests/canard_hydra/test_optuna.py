"""Optuna's sweeper through our launcher: `nox -s optuna` makes an environment that has it."""

import pytest
from omegaconf import OmegaConf

pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="needs hydra-optuna-sweeper: nox -s optuna")

STUDY = ("-m", "hydra/sweeper=optuna", "hydra.sweeper.n_trials=4", "hydra.sweeper.n_jobs=2")
REMOTE = ("platform=self_hosted", "wait=true")
RATE = "ppo.learning_rate=interval(1e-4,1e-2)"


@pytest.fixture
def study(canard_hydra, service):
    """A study of four trials, two at a time, that fares as `statuses` say."""

    def run(*arguments, statuses=("completed", "completed")):
        service.statuses = list(statuses)
        return canard_hydra(*STUDY, *REMOTE, *arguments)

    return run


def results(directory):
    [file] = directory.glob("multirun/*/*/optimization_results.yaml")
    return OmegaConf.to_container(OmegaConf.load(file))


def test_each_batch_is_a_run_and_all_of_a_study_have_one_tag(study, service, directory):
    done = study(RATE, "+tags.team=legs")

    assert done.returncode == 0, done.stderr
    tags = [submit["config"]["tags"] for submit in service.submits]
    assert [one["trials"] for one in tags] == ["0-1", "2-3"]
    assert len({one["sweep"] for one in tags}) == 1
    assert {one["team"] for one in tags} == {"legs"}
    rates = [task["learning_rate"] for submit in service.submits for task in submit["config"]["tasks"]]
    assert len(set(rates)) == 4
    assert all(type(rate) is float and 1e-4 <= rate <= 1e-2 for rate in rates)
    [file] = directory.glob("multirun/*/*/multirun.yaml")
    assert "OptunaSweeper" in file.read_text()


def test_the_final_mean_reward_is_maximised_where_nothing_else_is_said(study, directory):
    """The second task of each batch has the larger reward."""
    done = study(RATE)

    assert "Directions: ['maximize']" in done.stdout
    assert results(directory)["best_value"] == 101.0


@pytest.mark.parametrize(
    ("arguments", "best"),
    [
        (["hydra.sweeper.direction=minimize"], 100.0),
        (["metric=best_mean_reward"], 111.0),
        (["metric=mean_episode_length", "hydra.sweeper.direction=minimize"], 12.0),
    ],
)
def test_the_metric_and_the_direction_can_be_said(study, directory, arguments, best):
    study(RATE, *arguments)

    assert results(directory)["best_value"] == best


def test_several_objectives_are_a_list_of_metrics(study, directory):
    done = study(
        RATE, "metric=[mean_reward,mean_episode_length]", "hydra.sweeper.direction=[maximize,minimize]"
    )

    assert done.returncode == 0, done.stderr
    assert {tuple(one["values"]) for one in results(directory)["solutions"]} == {(101.0, 13.0), (100.0, 12.0)}


@pytest.mark.parametrize(
    "arguments",
    [["metric=[mean_reward,mean_episode_length]"], ["hydra.sweeper.direction=[maximize,minimize]"]],
)
def test_as_many_metrics_as_directions_are_wanted_before_anything_is_sent(study, service, arguments):
    done = study(RATE, *arguments)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("canard-hydra: metric: is ")
    assert not service.submits


def test_a_failed_task_is_a_failed_trial_and_the_study_goes_on(study, service, directory):
    done = study(RATE, statuses=("completed", "failed"))

    assert done.returncode == 0, done.stderr
    assert len(service.submits) == 2
    assert done.stdout.count("Failed experiment: task 1: it broke") == 2
    assert results(directory)["best_value"] == 100.0


def test_a_study_ends_with_the_reason_where_the_user_allows_no_failures(study, service):
    done = study(RATE, "hydra.sweeper.max_failure_rate=0", statuses=("completed", "failed"))

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "canard-hydra: task 1: it broke"
    assert len(service.submits) == 1


def test_a_study_whose_trials_all_fail_says_so(study):
    done = study(RATE, statuses=("failed", "failed"))

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1] == (
        "canard-hydra: no trial of the sweeper completed; the reason of each is above"
    )


def test_a_wrong_trial_ends_the_study_before_anything_is_sent(study, service):
    done = study("ppo.gamma=choice(2,3)")

    assert done.returncode == 1
    assert "ppo.gamma: should be less than or equal to 1" in done.stderr
    assert not service.submits


def test_it_cannot_go_without_waiting(canard_hydra, service):
    done = canard_hydra(*STUDY, "platform=self_hosted", RATE)

    assert done.returncode == 1
    assert "this sweeper chooses by the rewards of the tasks before" in done.stderr
    assert not service.submits


@pytest.mark.parametrize("argument", ["repeats=3", "zip=[seed,num_envs]"])
def test_what_only_our_own_sweeper_does_is_refused(study, service, argument):
    done = study(RATE, argument)

    assert done.returncode == 1
    assert "the chosen sweeper does not know it; say hydra/sweeper=canard" in done.stderr
    assert not service.submits


def test_a_plan_shows_the_first_batch(canard_hydra):
    done = canard_hydra(*STUDY, "mode=plan", RATE)

    assert done.returncode == 0, done.stderr
    assert "Plan of 'cartpole': 2 members" in done.stdout
    assert "so this is the first batch" in done.stdout


def test_what_is_logged_to_a_file_has_no_colours(study):
    done = study(RATE)

    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.e2e
def test_a_study_really_trains_and_chooses_by_the_rewards(canard_hydra, environment, platform, directory):
    environment |= {"CANARD_HOME": str(platform.home), "OMP_NUM_THREADS": "1"}

    done = canard_hydra(*STUDY, RATE, "num_envs=16", "max_iterations=4", "network=small", limit_s=240)

    assert done.returncode == 0, done.stderr
    [file] = directory.glob("multirun/*/*/optimization_results.yaml")
    best = OmegaConf.load(file)
    [row] = [
        line
        for line in done.stdout.splitlines()
        if str(best.best_params["ppo.learning_rate"]) in line and "│" in line
    ]
    assert f"{best.best_value:.2f}" in row
    rewards = [
        float(line.split("│")[5]) for line in done.stdout.splitlines() if "completed" in line and "│" in line
    ]
    assert len(rewards) == 4
    assert max(rewards) == round(best.best_value, 2)
