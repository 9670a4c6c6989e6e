"""What reaches the service: one POST, a base and a delta per member, with the types that were meant."""

import pytest

REMOTE = "platform=self_hosted"


def test_without_m_one_run_of_one_task_is_submitted(canard_hydra, service):
    """hydra-ecosystem/hydra#851: no launcher is used without -m, and nothing may train here unnoticed."""
    done = canard_hydra(REMOTE, "name=one", "seed=7")

    assert done.returncode == 0, done.stderr
    [submit] = service.submits
    assert submit["name"] == "one"
    assert submit["config"]["mode"] == "training"
    assert service.base["task_name"] == "Canard-Cartpole-v0"
    assert service.base["seed"] == 7
    assert service.tasks == [{}]
    assert f"{service.url}/runs/run_a1b2c3d4" in done.stdout


def test_m_makes_one_run_with_a_task_per_member(canard_hydra, service):
    done = canard_hydra("-m", REMOTE, "ppo.learning_rate=1e-4,3e-4", "seed=1,2", "num_envs=64")

    assert done.returncode == 0, done.stderr
    assert service.tasks == [
        {"learning_rate": 1e-4, "seed": 1},
        {"learning_rate": 1e-4, "seed": 2},
        {"learning_rate": 3e-4, "seed": 1},
        {"learning_rate": 3e-4, "seed": 2},
    ]
    assert service.base["num_envs"] == 64
    assert "learning_rate" not in service.base


def test_m_with_nothing_swept_is_a_run_of_one_task(canard_hydra, service):
    """hydra-ecosystem/hydra#851."""
    done = canard_hydra("-m", REMOTE, "seed=1")

    assert done.returncode == 0, done.stderr
    assert service.tasks == [{}]
    assert service.base["seed"] == 1


def test_learning_rates_stay_numbers_in_every_spelling(canard_hydra, service):
    """hydra-ecosystem/hydra#999."""
    done = canard_hydra("-m", REMOTE, "ppo.learning_rate=1e-3,1e-4,1e-5,5E-6,1.e-3,.001")

    assert done.returncode == 0, done.stderr
    rates = [task["learning_rate"] for task in service.tasks]
    assert rates == [1e-3, 1e-4, 1e-5, 5e-6, 1e-3, 1e-3]
    assert all(type(rate) is float for rate in rates)


def test_an_integer_field_in_scientific_notation_is_an_integer(canard_hydra, service):
    """hydra-ecosystem/hydra#999."""
    canard_hydra(REMOTE, "num_envs=1e3", "max_iterations=2e2")

    assert (service.base["num_envs"], service.base["max_iterations"]) == (1000, 200)
    assert type(service.base["num_envs"]) is int


def test_a_rate_without_a_dot_in_a_file_is_a_number(canard_hydra, service, directory):
    """yaml/pyyaml#173: plain YAML reads text."""
    (directory / "conf" / "ppo").mkdir(parents=True)
    (directory / "conf" / "ppo" / "mine.yaml").write_text("learning_rate: 1e-3\n")

    done = canard_hydra(REMOTE, "ppo=mine")

    assert done.returncode == 0, done.stderr
    assert service.base["learning_rate"] == 1e-3


def test_null_is_the_tasks_own_value_and_stays_null_beside_a_number(canard_hydra, service):
    """hydra-ecosystem/hydra#2612."""
    done = canard_hydra("-m", REMOTE, "ppo.desired_kl=null,0.01", "video_enabled=true,false")

    assert done.returncode == 0, done.stderr
    assert service.tasks == [
        {"desired_kl": None, "video_enabled": True},
        {"desired_kl": None, "video_enabled": False},
        {"desired_kl": 0.01, "video_enabled": True},
        {"desired_kl": 0.01, "video_enabled": False},
    ]


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("network.actor_hidden_dims=[256,128],[512,256,128]", [[256, 128], [512, 256, 128]]),
        ("network.actor_hidden_dims=choice([256,128],[64])", [[256, 128], [64]]),
    ],
)
def test_a_list_is_one_point_of_a_sweep(canard_hydra, service, override, expected):
    """hydra-ecosystem/hydra#96."""
    done = canard_hydra("-m", REMOTE, override)

    assert done.returncode == 0, done.stderr
    assert [task["actor_hidden_dims"] for task in service.tasks] == expected


def test_one_list_is_one_member(canard_hydra, service):
    """ashleve/lightning-hydra-template#656."""
    canard_hydra("-m", REMOTE, "network.actor_hidden_dims=[256, 128]")

    assert service.tasks == [{}]
    assert service.base["actor_hidden_dims"] == [256, 128]


def test_lists_in_the_sweepers_params_are_points_too(canard_hydra, service, directory):
    """ALRhub/hydra_list_sweeper#1."""
    (directory / "conf" / "sweep").mkdir(parents=True)
    (directory / "conf" / "sweep" / "nets.yaml").write_text(
        "# @package _global_\n"
        "hydra:\n  mode: MULTIRUN\n  sweeper:\n    params:\n"
        "      network.actor_hidden_dims: '[256,128],[64]'\n"
    )

    done = canard_hydra(REMOTE, "sweep=nets")

    assert done.returncode == 0, done.stderr
    assert [task["actor_hidden_dims"] for task in service.tasks] == [[256, 128], [64]]


def test_values_can_be_paired_by_interpolation(canard_hydra, service):
    """hydra-ecosystem/hydra#725."""
    done = canard_hydra("-m", REMOTE, "seed=1,2,3", "checkpoint_url=runs/r/model_${seed}.pt")

    assert done.returncode == 0, done.stderr
    assert service.tasks == [{"seed": n, "checkpoint_url": f"runs/r/model_{n}.pt"} for n in (1, 2, 3)]


def test_values_can_be_paired_by_a_mapping_of_ones_own(canard_hydra, service):
    """hydra-ecosystem/hydra#2625."""
    done = canard_hydra("-m", REMOTE, "+pt={n:5,a:0.5},{n:10,a:0.7}", "num_envs=${pt.n}", "ppo.gamma=${pt.a}")

    assert done.returncode == 0, done.stderr
    assert service.tasks == [{"num_envs": 5, "gamma": 0.5}, {"num_envs": 10, "gamma": 0.7}]


def test_experiment_files_swept_as_a_group_are_a_member_each(canard_hydra, service, directory):
    """hydra-ecosystem/hydra#1258: values that belong together, in a file each."""
    (directory / "conf" / "experiment").mkdir(parents=True)
    for name, envs, gamma in (("one", 8, 0.9), ("two", 16, 0.8), ("three", 32, 0.7)):
        text = f"# @package _global_\nnum_envs: {envs}\nppo: {{gamma: {gamma}}}\n"
        (directory / "conf" / "experiment" / f"{name}.yaml").write_text(text)

    plan = canard_hydra("-m", "mode=plan", "experiment=one,two,three")
    done = canard_hydra("-m", REMOTE, "experiment=one,two,three")

    assert "3 members = 3 (experiment)" in plan.stdout
    assert done.returncode == 0, done.stderr
    assert service.tasks == [
        {"num_envs": 8, "gamma": 0.9},
        {"num_envs": 16, "gamma": 0.8},
        {"num_envs": 32, "gamma": 0.7},
    ]


def test_two_thousand_members_are_one_request_below_a_megabyte(canard_hydra, service):
    """hydra-ecosystem/hydra#1324, #2255, skypilot-org/skypilot PR#4231: all of them or none."""
    done = canard_hydra("-m", REMOTE, "seed=range(1000)", "ppo.learning_rate=1e-3,1e-4")

    assert done.returncode == 0, done.stderr
    [submit] = [one for one in service.requests if one.method == "POST"]
    assert len(submit.body) < 1_000_000
    assert service.tasks[-1] == {"seed": 999, "learning_rate": 1e-4}
    assert len(service.tasks) == 2000


def test_interpolations_mean_each_member_and_none_is_stored(canard_hydra, service):
    """hydra-ecosystem/hydra#861, facebookresearch/dora#59."""
    done = canard_hydra(
        "-m", REMOTE, "ppo.gamma=0.9,0.8,0.7", "seed=${hydra:job.num}", "+tags.hour=${now:%Y}"
    )

    assert done.returncode == 0, done.stderr
    assert [task["seed"] for task in service.tasks] == [0, 1, 2]
    [submit] = service.submits
    assert submit["config"]["tags"]["hour"].isdigit()
    assert "${" not in service.requests[-1].body.decode()


def test_a_name_may_be_an_interpolated_number(canard_hydra, service):
    """hydra-ecosystem/hydra#725."""
    done = canard_hydra("-m", REMOTE, "seed=1,2", "name=${seed}")

    assert done.returncode == 0, done.stderr
    assert service.submits[0]["name"] == "1, 2"


def test_look_alikes_stay_text(canard_hydra, service):
    """hydra-ecosystem/hydra#2612."""
    done = canard_hydra("-m", REMOTE, 'name="null","true",yes,off')

    assert done.returncode == 0, done.stderr
    assert service.submits[0]["name"] == "null, true, yes, off"
    assert len(service.tasks) == 4


LOOK_LIKE_NUMBERS = ["695e0514", "12e4567", "1234567", "0012345", "1E234", "3.10", "1:30"]


@pytest.mark.parametrize("ref", ["12e4567", "3.10"])
def test_quoted_text_keeps_its_exact_characters(canard_hydra, service, ref):
    """hydra-ecosystem/hydra#2599, yaml/pyyaml#417."""
    done = canard_hydra(REMOTE, f'task.code_ref="{ref}"', f'name="{ref}"')

    assert done.returncode == 0, done.stderr
    assert (service.base["code_ref"], service.submits[0]["name"]) == (ref, ref)


def test_swept_text_keeps_its_exact_characters(canard_hydra, service):
    """hydra-ecosystem/hydra#2599, omry/omegaconf#296."""
    quoted = ",".join(f'"{ref}"' for ref in LOOK_LIKE_NUMBERS)

    done = canard_hydra("-m", REMOTE, f"task.code_ref={quoted},main")

    assert done.returncode == 0, done.stderr
    assert [task["code_ref"] for task in service.tasks] == [*LOOK_LIKE_NUMBERS, "main"]


def test_a_group_and_a_key_that_all_its_options_have_are_swept_together(canard_hydra, service):
    """hydra-ecosystem/hydra#2888, #1052."""
    done = canard_hydra("-m", REMOTE, "task=cartpole,inverted_pendulum", "task.num_envs=8")

    assert done.returncode == 0, done.stderr
    assert [task["task_name"] for task in service.tasks] == ["Canard-Cartpole-v0", "InvertedPendulum-v5"]
    assert service.base["num_envs"] == 8


def test_a_task_brings_the_ppo_option_that_suits_it_unless_one_is_chosen(canard_hydra, service):
    canard_hydra("-m", REMOTE, "task=cartpole,halfcheetah", "ppo=careful")

    assert service.base["learning_rate"] == 1e-4
    assert service.base["clip_param"] == 0.1


def test_single_reward_weights_are_swept_by_term(canard_hydra, service):
    done = canard_hydra("-m", REMOTE, "task.reward_weights.alive=1,2.5", "+task.reward_weights.energy=-0.1")

    assert done.returncode == 0, done.stderr
    assert service.tasks == [{"reward_weights.alive": 1.0}, {"reward_weights.alive": 2.5}]
    assert service.base["reward_weights"] == {"energy": -0.1}


def test_batches_are_one_run_all_the_same(canard_hydra, service):
    """hydra-ecosystem/hydra#284, #3091."""
    done = canard_hydra("-m", REMOTE, "seed=1,2,3,4,5", "hydra.sweeper.max_batch_size=2")

    assert done.returncode == 0, done.stderr
    assert [task["seed"] for task in service.tasks] == [1, 2, 3, 4, 5]
    assert "max_batch_size=2 is ignored" in done.stderr


def test_overrides_may_stand_on_both_sides_of_m(canard_hydra, service):
    """hydra-ecosystem/hydra#2705."""
    done = canard_hydra(REMOTE, "name=x", "-m", "seed=1,2")

    assert done.returncode == 0, done.stderr
    assert len(service.tasks) == 2


def test_an_experiment_file_may_be_added_with_a_plus(canard_hydra, service):
    done = canard_hydra(REMOTE, "+experiment=cartpole_seeds", "num_envs=8")

    assert done.returncode == 0, done.stderr
    assert service.submits[0]["name"] == "cartpole-seeds"
    assert [task["seed"] for task in service.tasks] == [1, 2, 3]
    assert service.base["num_envs"] == 8


def test_waiting_ends_with_a_table_of_all_tasks(canard_hydra, service):
    service.statuses = ["completed", "completed"]

    done = canard_hydra("-m", REMOTE, "wait=true", "ppo.learning_rate=1e-4,3e-4")

    assert done.returncode == 0, done.stderr
    [first, second] = [
        line for line in done.stdout.splitlines() if "attempt-1/checkpoints" in line and "│" in line
    ]
    for cell in (
        "0.0001",
        "completed",
        "10.00",
        "100.00",
        "110.00",
        "30 s",
        "tasks/10/attempt-1/checkpoints/model_150.pt",
    ):
        assert cell in first
    assert "111.00" in second
    assert "Best: task 1" in done.stdout
    assert f"Dashboard: {service.url}/runs/run_a1b2c3d4" in done.stdout


def test_a_failed_task_is_shown_and_told_by_the_exit_status(canard_hydra, service):
    service.statuses = ["completed", "failed"]

    done = canard_hydra("-m", REMOTE, "wait=true", "seed=1,2")

    assert done.returncode == 1
    assert "failed" in done.stdout
    [line] = done.stderr.splitlines()
    assert "it broke" in line
    assert line.startswith("canard-hydra: run_a1b2c3d4")


def test_a_failed_single_run_is_told_by_the_exit_status(canard_hydra, service):
    service.statuses = ["failed"]

    done = canard_hydra(REMOTE, "wait=true")

    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert "it broke" in line


def test_not_waiting_says_how_to_come_back(canard_hydra, service):
    done = canard_hydra(REMOTE, "wait=false")

    assert done.returncode == 0
    assert "canard watch run_a1b2c3d4" in done.stdout


def test_a_service_that_is_down_is_one_line(canard_hydra, service):
    service.close()

    done = canard_hydra(REMOTE, f"platform.api_url={service.url}")

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert service.url.removeprefix("http://") in done.stderr


def test_many_members_are_shown_before_they_are_sent(canard_hydra, service):
    done = canard_hydra("-m", REMOTE, "seed=range(25)", "ppo.gamma=0.98,0.99")

    assert done.returncode == 0, done.stderr
    plan, submitted = (
        done.stdout.index("50 members = 25 x 2 (seed x ppo.gamma)"),
        done.stdout.index("Submitted "),
    )
    assert plan < submitted
    assert "and 30 members more" in done.stdout
    assert "Nothing was submitted" not in done.stdout
    assert len(service.tasks) == 50


def test_a_few_members_are_not(canard_hydra, service):
    done = canard_hydra("-m", REMOTE, "seed=range(10)")

    assert "Plan of" not in done.stdout
    assert "Warning" not in done.stdout


def test_members_that_are_the_same_are_sent_with_a_warning(canard_hydra, service):
    """hydra-ecosystem/hydra launches them without a word."""
    done = canard_hydra("-m", REMOTE, "ppo.learning_rate=1e-3,0.001", "seed=4")

    assert "Warning: members 0 and 1 are the same (ppo.learning_rate=0.001); each is trained" in done.stdout
    assert service.tasks == [{"learning_rate": 0.001}, {"learning_rate": 0.001}]
