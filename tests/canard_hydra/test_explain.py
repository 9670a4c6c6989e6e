"""What is said to each kind of mistake: one line with the override, the fault and what to type."""

import subprocess
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

from canard_hydra.unreadable import for_shell, is_readable, unreadable

PLAN = "mode=plan"


def told(done: "subprocess.CompletedProcess[str]", *, status: int = 1) -> str:
    """The one line."""
    assert done.returncode == status, done.stdout
    [line] = done.stderr.splitlines()
    assert line.startswith("canard-hydra: ")
    assert "HYDRA_FULL_ERROR" not in line
    return line.removeprefix("canard-hydra: ")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        # Commas, brackets and calls: numbers are completed, never quoted.
        ("network.actor_hidden_dims=(1,2)", "type it as 'network.actor_hidden_dims=[1,2]'"),
        ("network.actor_hidden_dims=[256,,128]", "type it as 'network.actor_hidden_dims=[256,128]'"),
        ("network.actor_hidden_dims=[256,128", "type it as 'network.actor_hidden_dims=[256,128]'"),
        ("-m seed=1,,2", "a value is missing beside a comma; type it as 'seed=1,2'"),
        ("-m seed=1,", "type it as 'seed=1'"),
        ("-m seed=range(3", "type it as 'seed=range(3)'"),
        ("-m seed=rnge(3)", "there is no function 'rnge'; type it as 'seed=range(3)'"),
        ("-m seed=range(a)", "str is incompatible with Union[int, float], as in seed=range(1,4)"),
        ("-m seed=range(1,2,3,4)", "too many positional arguments, as in seed=range(1,4)"),
        ("-m seed=choice()", "empty choice is not legal, as in seed=choice(1,2)"),
        ("-m ppo.desired_kl=choice(null,0.01)", "type it as 'ppo.desired_kl=null,0.01'"),
        ("seed=1#", "the character '#' at position 7 cannot stand there, as in seed=1"),
        ("ppo.lam=${half:${ppo.gamma}}", "type it as 'ppo.lam=\"${half:${ppo.gamma}}\"'"),
        ("ppo.learning_rate==1", "type it as 'ppo.learning_rate=1'"),
        # Text is quoted, each value of a sweep by itself.
        ("-m name=c#d,e", "type it as 'name=\"c#d\",\"e\"'"),
        ('-m name=c#d,"e"', "type it as 'name=\"c#d\",\"e\"'"),
        ("name=c#d,e", "type it as 'name=\"c#d,e\"'"),
        ("name=it's", 'type it as "name=\\"it\'s\\""'),
        ('name=a"b', "opens a text that does not end; type it as 'name=\"a\\\"b\"'"),
        ('name="x', "type it as 'name=x'"),
        ("name=${x", "type it as 'name=\"\\${x\"'"),
        ("+tags.note=a#b", "type it as '+tags.note=\"a#b\"'"),
        ("name==a", "type it as 'name=a'"),
        ("-m name=c#d,[a,b]", "type it as 'name=\"c#d\",\"[a,b]\"'"),
        # Keys.
        ("ppo.gama=,1", "and there is no key 'ppo.gama'; type it as 'ppo.gamma=1'"),
        ("network.hidden_dims=(1,2)", "type it as 'network.actor_hidden_dims=[1,2]'"),
        ("ppo..gamma=1", "the character '.' at position 4 cannot stand in a key"),
        ("=3", "there is no key before '='"),
        ("ppo.gamma:1", "'=' parts key and value, as in ppo.gamma=1"),
        ("ppo.gamma", "it needs the form key=value, as in ppo.gamma=..."),
    ],
)  # fmt: skip
def test_an_override_that_does_not_parse_is_mended(quick, arguments, expected):
    assert expected in told(quick(PLAN, *arguments.split(" ")))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("ppo.num_envs=3", "unknown key 'ppo.num_envs'; did you mean 'num_envs'?"),
        ("lr=1e-3", "unknown key 'lr'; did you mean 'ppo.learning_rate'?"),
        ("learning_rate=1e-3", "unknown key 'learning_rate'; did you mean 'ppo.learning_rate'?"),
        ("foo.bar=1", "unknown key 'foo.bar'; to see them all: canard-hydra --cfg job"),
        ("seed.x=1", "unknown key 'seed.x': seed is one value, as in seed=1"),
        ("task.reward_weights.alvie=1", "did you mean 'task.reward_weights.alive'?"),
        ("tsk.reward_weights.alive=1", "did you mean 'task.reward_weights.alive'?"),
        ("po=careful", "did you mean 'ppo'?"),
        ("~ppo.lr", "~ppo.lr: unknown key 'ppo.lr'; did you mean 'ppo.learning_rate'?"),
        ("hydra.sweepr.dir=x", "unknown key 'hydra.sweepr'; did you mean 'hydra.sweeper'?"),
        ("hydra.sweeper.n_trials=3", "another is chosen by hydra/sweeper=... (basic, canard"),
        ("hydra.mode=FOO", "FOO"),
        ("hydra.job.chdir=maybe", "hydra.job.chdir=maybe: Value 'maybe' is not a valid bool"),
        # Groups.
        ("ppo=null", "ppo=null: ppo needs one of its options: careful, default"),
        ("ppo=3", "ppo=3: ppo needs one of its options: careful, default"),
        ("ppo={gama:1}", "ppo: is a group; choose one of its options: careful, default"),
        ("task=", "task: needs one of its options: cartpole, "),
        ("+task=cartpole", "task: is chosen twice"),
        ("task@foo=cartpole", "did you mean task=...?"),
        ("ppo/x=3", "ppo/x: there is no such group; there are: experiment, "),
        ("hydra/sweeper=ax", "no such option in hydra/sweeper; pip install hydra-ax-sweeper"),
    ],
)  # fmt: skip
def test_a_key_or_option_that_does_not_exist_is_led_to_one_that_does(quick, arguments, expected):
    assert expected in told(quick(PLAN, *arguments.split(" ")))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--seed=1", "--seed=1: no such option; values are set without dashes: seed=1"),
        ("--num-envs=8", "values are set without dashes: num_envs=8"),
        ("--multirn", "did you mean --multirun?"),
        # To Hydra's parser these are the options -p and -m with something behind them.
        ("-ppo.gamma=0.9", "-ppo.gamma=0.9: no such option; values are set without dashes: ppo.gamma=0.9"),
        ("-max_iterations=2", "values are set without dashes: max_iterations=2"),
        ("-po", "--package o: says what --cfg shows, and there is no --cfg"),
        ("--quiet", "--quiet: no such option; see --hydra-help"),
    ],
)
def test_an_option_that_does_not_exist_is_a_usage_error(quick, arguments, expected):
    assert expected in told(quick(PLAN, *arguments.split(" ")), status=2)


def test_a_key_that_one_option_of_a_swept_group_has_is_forced_on_the_others(quick):
    """hydra-ecosystem/hydra#2888, #283: Hydra composes with the option of the defaults first."""
    key = "task.reward_weights.ctrl_cost_weight"

    line = told(quick(PLAN, "-m", "task=cartpole,halfcheetah", f"{key}=0.1"))

    assert "conf/task/halfcheetah.yaml" in line
    assert f"'++{key}=0.1'" in line
    done = quick(PLAN, "-m", "task=cartpole,halfcheetah", f"++{key}=0.1")
    assert done.returncode == 0, done.stderr
    assert f"{key}=0.1" in done.stdout


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("task_name: X\n  bad: 1\n", "conf/task/mine.yaml:2: cannot be read as YAML"),
        ("task_name: X\ntask_name: Y\n", "mine.yaml:2: cannot be read as YAML: found duplicate key"),
        ("defaults: 3\n", "conf/task/mine.yaml: defaults must be a list"),
        ("defaults: [nope]\n", "conf/task/mine.yaml: its defaults name 'task/nope'"),
        ("defaults:\n- override /ppo: careful\n", "say 'override /ppo@_global_.ppo: ...'"),
        ("defaults:\n- override /pppo: careful\n", "no group 'pppo'; did you mean 'ppo'?"),
        ("task_name: a ${b\n", "task_name: an interpolation cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(quick, directory: Path, text, expected):
    (directory / "conf" / "task").mkdir(parents=True)
    (directory / "conf" / "task" / "mine.yaml").write_text(text)

    assert expected in told(quick(PLAN, "task=mine"))


@pytest.fixture
def own(directory: Path) -> Path:
    """The user's conf/, with a file in every group."""
    files = {
        "task/mine.yaml": "task_name: X-v0\nnum_envs: 20000\n",
        "task/typo.yaml": "task_name: X-v0\nnum_env: 3\n",
        "task/ref.yaml": "task_name: X-v0\ncode_ref: 1234567\n",
        "task/list.yaml": "- task_name\n",
        "ppo/mine.yaml": "gamma: 0.9\nlearning_rate: -1\n",
        "experiment/mine.yaml": "# @package _global_\ndefaults:\n- override /ppo: mine\nppo:\n  lam: 3\n",
        "sweep/mine.yaml": "# @package _global_\nhydra:\n  sweeper:\n    params:\n      seed: 1,2\n",
    }
    for name, text in files.items():
        file = directory / "conf" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return directory / "conf"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        # The file and line of a value; of what it refers to, where it only refers.
        ("ppo=mine", "ppo.learning_rate: should be greater than 0, not -1 (conf/ppo/mine.yaml:2)"),
        ("task=mine", "num_envs: should be less than or equal to 10000, not 20000 (conf/task/mine.yaml:2)"),
        ("experiment=mine", "should be less than or equal to 1, not 3 (conf/experiment/mine.yaml:5)"),
        ("-m task=mine,cartpole", "member 0 (task=mine): num_envs: should be less than or equal to 10000, not"
         " 20000 (conf/task/mine.yaml:2)"),
        ("task=typo", "did you mean 'task.num_envs'? (conf/task/typo.yaml:2)"),
        ("task=ref", 'quote this value where it is written: code_ref: "..." (conf/task/ref.yaml:2)'),
        ("task=list", "task: is a list, but must be a group of keys"),
        # The override, where its key is another one.
        ("task.num_envs=20000", "num_envs: should be less than or equal to 10000, not 20000 (task.num_e"),
        ("ppo.gamma=0.9 seed=${ppo.gamma}", "not 0.9 (ppo.gamma=0.9)"),
        ("num_envs=${num_envs}", "num_envs: cannot be resolved: it refers to itself"),
        # Text that Hydra reads as a number.
        ("+tags.commit=12e4567", "quote this value: '+tags.commit=\"12e4567\"'"),
        ("name=${ppo.gamma} ppo.gamma=0.5", "put it into text, as in 'name=name-${ppo.gamma}'"),
        # Nothing to sweep over.
        ("-m seed=range(5,1)", "seed=range(5,1): has no values"),
        ("-m task=glob(nope*)", "task=glob(nope*): has no values"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_told_with_where_it_was_written(quick, own, arguments, expected):
    assert expected in told(quick(PLAN, *arguments.split(" ")))


def test_a_value_that_was_typed_just_so_needs_no_place(quick):
    line = told(quick(PLAN, "seed=-1"))

    assert line == "seed: should be greater than or equal to 0, not -1"


def test_a_file_with_values_to_sweep_over_is_not_ignored_without_m(quick, own):
    """hydra-ecosystem/hydra#851: the sweep would be left out, and one training sent in its place."""
    assert "a file sweeps over seed, but there is no -m" in told(quick(PLAN, "sweep=mine"), status=2)

    assert "2 members" in quick(PLAN, "-m", "sweep=mine").stdout
    assert "1 member" in quick(PLAN, "sweep=mine", "hydra.mode=RUN").stdout


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12))
def test_the_quoted_form_means_exactly_the_text(text):
    override = f"name={text}"
    if is_readable(override):
        return

    line = unreadable(override)

    if "type it as " in line:
        typed = unquoted_by_the_shell(
            line.rpartition("type it as ")[2].removesuffix(" (the outer quotes are the shell's)")
        )
        value = OverridesParser.create().parse_override(typed).value()
        # A doubled '=' and half a pair of quotes are taken for slips.
        assert str(value).replace("\\${", "${").strip(" '\"=") == text.strip().strip(" '\"=")


def unquoted_by_the_shell(word: str) -> str:
    # Not as text, which would make one kind of line end of all.
    return subprocess.run(["sh", "-c", f"printf %s {word}"], capture_output=True, check=True).stdout.decode()


@pytest.mark.parametrize("text", ["a b", "it's", 'say "x"', "$HOME `id` \\", "a'b\"c$d", "'!'"])
def test_a_shell_gives_back_what_was_quoted_for_it(text):
    assert unquoted_by_the_shell(for_shell(text)) == text
