"""A user's mistake is told in a line that says which override and what to type; nothing is sent."""

import pytest

REMOTE = "platform=self_hosted"


def refused(done, service) -> str:
    """What was said, once it is sure that it was only said."""
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stderr
    assert "HYDRA_FULL_ERROR" not in done.stderr
    assert done.stderr.startswith(("canard-hydra: ", "usage: ")), done.stderr
    assert not service.submits
    return done.stderr.strip()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["ppo.lr=1"], "unknown key 'ppo.lr'; did you mean 'ppo.learning_rate'?"),
        (["+ppo.lr=1"], "unknown key 'ppo.lr'; did you mean 'ppo.learning_rate'?"),
        (
            ["-m", "+ppo.lr=1,2"],
            "member 0 (+ppo.lr=1): unknown key 'ppo.lr'; did you mean 'ppo.learning_rate'?",
        ),
        (["-m", "ppo.lr=1,2"], "unknown key 'ppo.lr'; did you mean 'ppo.learning_rate'?"),
        (["++ppo.learing_rate=1"], "unknown key 'ppo.learing_rate'; did you mean 'ppo.learning_rate'?"),
        (["ppo.hidden_dims=[1]"], "did you mean 'network.actor_hidden_dims'?"),
        (["ppo.seed=1"], "did you mean 'seed'?"),
        (["num_env=4"], "did you mean 'num_envs'?"),
        (["+learning_rate=1e-3"], "did you mean 'ppo.learning_rate'?"),
        (["+foo=3"], "unknown key 'foo', and nothing refers to it"),
        (["task=cartpol"], "task=cartpol: no such option in conf/task; did you mean task=cartpole?"),
        (["-m", "task=cartpole,ant"], "task=ant: no such option in conf/task; there are: cartpole"),
        (["task.reward_weights.jump=1"], "to set it whatever the option: '++task.reward_weights.jump=1'"),
        (["-m", "task=cartpole,halfcheetah", "task.hop_height=0.5"], "unknown key 'task.hop_height'"),
    ],
)
def test_an_unknown_key_or_option_is_named_with_the_nearest(canard_hydra, service, arguments, expected):
    """drivendataorg/cyfi#64, pydantic/pydantic#1798."""
    done = canard_hydra(REMOTE, *arguments)

    assert expected in refused(done, service)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["seed=-1"], "seed: should be greater than or equal to 0, not -1"),
        (["num_envs=1.5"], "num_envs: should be a valid integer"),
        (["num_envs=20000"], "num_envs: should be less than or equal to 10000, not 20000"),
        (["ppo.schedule=cosine"], "ppo.schedule: should be 'adaptive' or 'fixed', not 'cosine'"),
        (["gpu_count=3"], "gpu_count: must be 1, 2, 4 or 8, not 3"),
        (["ppo.learning_rate=nan"], "ppo.learning_rate: should be a finite number"),
        (["ppo.learning_rate=yes"], "ppo.learning_rate: must be a number, not 'yes'"),
        (["task.reward_weights.alive=x"], "task.reward_weights.alive: must be a number, not 'x'"),
        (["task.task_name=null"], "task.task_name: is missing"),
        (["mode=pln"], "mode: should be 'submit', 'plan' or 'dry_run', not 'pln'"),
        (
            ["metric=reward"],
            "metric: must be mean_reward or best_mean_reward or mean_episode_length, or a list",
        ),
        (["metric=[mean_reward,loss]"], "metric: must be mean_reward or best_mean_reward"),
        (["wait=maybe"], "wait: should be a valid boolean"),
    ],
)
def test_a_value_out_of_bounds_is_told_with_its_bound(canard_hydra, service, arguments, expected):
    done = canard_hydra(REMOTE, *arguments)

    assert expected in refused(done, service)


def test_each_wrong_member_is_named_with_its_override(canard_hydra, service):
    done = canard_hydra("-m", REMOTE, "ppo.gamma=0.9,3", "seed=1,2")

    assert refused(done, service).splitlines() == [
        "canard-hydra: member 2 (ppo.gamma=3 seed=1): ppo.gamma: should be less than or equal to 1, not 3",
        "member 3 (ppo.gamma=3 seed=2): ppo.gamma: should be less than or equal to 1, not 3",
    ]


def test_what_is_wrong_with_all_members_is_said_once(canard_hydra, service):
    done = canard_hydra("-m", REMOTE, "ppo.gamma=3", "seed=1,2")

    assert refused(done, service) == "canard-hydra: ppo.gamma: should be less than or equal to 1, not 3"


@pytest.mark.parametrize(
    ("key", "ref"),
    [
        ("task.code_ref", "695e0514"),
        ("task.code_ref", "12e4567"),
        ("task.code_ref", "1234567"),
        ("name", "1E234"),
        ("name", "3.10"),
    ],
)
def test_text_that_would_become_a_number_is_refused(canard_hydra, service, key, ref):
    """hydra-ecosystem/hydra#2599."""
    done = canard_hydra(REMOTE, f"{key}={ref}")

    told = refused(done, service)
    assert f"'{key}=\"{ref}\"'" in told
    assert "quote this value" in told


def test_text_that_would_become_a_number_is_refused_in_a_sweep(canard_hydra, service):
    done = canard_hydra("-m", REMOTE, "task.code_ref=main,12e4567")

    assert 'quote this value: \'task.code_ref="main","12e4567"\'' in refused(done, service)


@pytest.mark.parametrize("text", ["1234567", "3.10", "true"])
def test_text_that_became_a_number_in_a_file_is_refused(canard_hydra, service, directory, text):
    """yaml/pyyaml#417."""
    (directory / "conf" / "task").mkdir(parents=True)
    (directory / "conf" / "task" / "mine.yaml").write_text(f"task_name: X-v0\ncode_ref: {text}\n")

    told = refused(canard_hydra(REMOTE, "task=mine"), service)

    assert told.startswith("canard-hydra: task.code_ref: was read as ")
    assert 'code_ref: "..."' in told


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["name=???"], "name has no value yet (???)"),
        (["-m", "seed=1,2", "name=???"], "member 0 (seed=1): name has no value yet (???)"),
        (["task=g1"], "task.code_url has no value yet (???); say it, as in task.code_url=..."),
        (["-m", "task=cartpole,g1"], "member 1 (task=g1): task.code_url has no value yet"),
        (["task=g1", "ppo.gamma=???"], "ppo.gamma, task.code_url have no value yet"),
    ],
)
def test_a_missing_value_is_named_with_its_member(canard_hydra, service, arguments, expected):
    """motional/nuplan-devkit#270, hydra-ecosystem/hydra#2888."""
    done = canard_hydra(REMOTE, *arguments)

    assert expected in refused(done, service)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["name=${foo.bar}"], "name: cannot be resolved: Interpolation key 'foo.bar' not found"),
        (["ppo=resolver"], "ppo.gamma: cannot be resolved: Unsupported interpolation type eff"),
        (["-m", "seed=1,2", "ppo=resolver"], "member 0 (seed=1): ppo.gamma: cannot be resolved"),
    ],
)
def test_an_interpolation_that_does_not_resolve_is_named(
    canard_hydra, service, directory, arguments, expected
):
    """hydra-ecosystem/hydra#903."""
    (directory / "conf" / "ppo").mkdir(parents=True)
    (directory / "conf" / "ppo" / "resolver.yaml").write_text("gamma: ${eff:${seed}}\n")

    done = canard_hydra(REMOTE, *arguments)

    assert expected in refused(done, service)


def test_a_platform_without_its_address_is_named(canard_hydra, service, environment):
    del environment["CANARD_API_URL"]

    told = refused(canard_hydra(REMOTE), service)

    assert "platform.api_url: cannot be resolved" in told
    assert "CANARD_API_URL" in told


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("name=c#d", "the character '#' at position 7 cannot stand unquoted; type it as 'name=\"c#d\"'"),
        ("name=run (1)", "type it as 'name=\"run (1)\"'"),
        ("name=机器人", "the character '机' at position 6 cannot stand unquoted; type it as 'name=\"机"),
        (
            "'name=one two'",
            "the quote ' before the key belongs before the value; type it as 'name=\"one two\"'",
        ),
        ("network.actor_hidden_dims=[1,2", "'[' and ']' do not match"),
        ("name", "'name' is no override: it needs the form key=value"),
    ],
)
def test_an_override_that_cannot_be_read_says_what_to_type(canard_hydra, service, override, expected):
    """hydra-ecosystem/hydra#2705, #1843, wandb/wandb#5523."""
    done = canard_hydra("-m", REMOTE, override)

    assert expected in refused(done, service)


@pytest.mark.parametrize(
    "typed", ['name="c#d"', 'name="run (1)"', 'name="机器人"', "name='one two'", "name=a|b"]
)
def test_what_it_says_to_type_works(canard_hydra, service, typed):
    """hydra-ecosystem/hydra#2705."""
    done = canard_hydra(REMOTE, typed)

    assert done.returncode == 0, done.stderr
    assert service.submits[0]["name"] == typed.partition("=")[2].strip("\"'")


def test_a_forgotten_m_is_told_with_the_three_things_that_may_be_meant(canard_hydra, service):
    """hydra-ecosystem/hydra#96."""
    told = refused(canard_hydra(REMOTE, "seed=1,2"), service)

    assert "no -m; nothing was submitted" in told
    for suggestion in ("-m seed=1,2", "'seed=[1,2]'", "'seed=\"1,2\"'"):
        assert suggestion in told


def test_members_have_to_agree_on_what_holds_for_the_run(canard_hydra, service):
    told = refused(canard_hydra("-m", "platform=self_hosted,cloud"), service)

    assert "platform: differs between members 0 and 1" in told


def test_another_launcher_is_refused(canard_hydra, service):
    """hydra-ecosystem/hydra#851, clearml/clearml#905."""
    done = canard_hydra("-m", REMOTE, "hydra/launcher=basic", "seed=1,2")

    assert done.returncode == 2
    assert "hydra/launcher=basic" in done.stderr
    assert not service.submits


def test_a_swept_option_cannot_change_the_launcher(canard_hydra, service, directory):
    """hydra-ecosystem/hydra#3231."""
    (directory / "conf" / "experiment").mkdir(parents=True)
    (directory / "conf" / "experiment" / "plain.yaml").write_text("# @package _global_\nseed: 1\n")
    (directory / "conf" / "experiment" / "local.yaml").write_text(
        "# @package _global_\ndefaults:\n  - override /hydra/launcher: basic\n"
    )

    told = refused(canard_hydra("-m", REMOTE, "experiment=plain,local"), service)

    assert told.startswith("canard-hydra: member 1 (experiment=local): ")
    assert "hydra/launcher" in told


def test_a_swept_option_cannot_bring_a_sweep_of_its_own(canard_hydra, service):
    """hydra-ecosystem/hydra#3231: Hydra 1.3 would train each of its members once."""
    told = refused(canard_hydra("-m", REMOTE, "sweep=learning_rate,none"), service)

    assert told.startswith("canard-hydra: member 0 (sweep=learning_rate): ")
    assert "a file of a swept group sets hydra.sweeper" in told


def test_hydras_own_sweeper_may_not_cut_a_run_into_batches(canard_hydra, service):
    """hydra-ecosystem/hydra#284."""
    done = canard_hydra("-m", REMOTE, "hydra/sweeper=basic", "hydra.sweeper.max_batch_size=2", "seed=1,2,3")

    assert "hydra.sweeper.max_batch_size: a multirun is one run" in refused(done, service)


def test_an_unknown_option_of_the_program_is_a_usage_error(canard_hydra, service):
    done = canard_hydra(REMOTE, "--multirn", "seed=1")

    assert done.returncode == 2
    assert "--multirn" in done.stderr
    assert not service.submits


def test_our_own_faults_show_where_on_request(canard_hydra, service):
    done = canard_hydra(REMOTE, "ppo.lr=1", HYDRA_FULL_ERROR="1")

    assert done.returncode == 1
    assert "Traceback" in done.stderr
