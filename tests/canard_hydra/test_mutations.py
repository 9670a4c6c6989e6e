"""Command lines that are nearly right: they are refused in words, or they mean what Hydra's grammar says."""

import itertools
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from canard.members import members
from canard.models import RunConfig
from canard_hydra.exact_text import TEXT_KEYS
from canard_hydra.fields import FIELD_OF_KEY, REWARD_KEY

SEVERAL = (
    "ppo.learning_rate=1e-3,1e-5",
    "seed=1,2",
    "seed=range(1,4)",
    "network.actor_hidden_dims=[64],[32,32]",
    "task=cartpole,halfcheetah",
    'name="12e4567",b',
    "ppo.desired_kl=null,0.01",
)
ONE = (
    "num_envs=64",
    "seed=7",
    "ppo.gamma=0.9",
    "ppo.learning_rate=5E-6",
    "ppo=careful",
    "ppo.schedule=fixed",
    "network.actor_hidden_dims=[256, 128]",
    "network.activation=elu",
    "task.reward_weights.alive=2.5",
    'task.code_ref="0012345"',
    "name=run one",
    'name="c#d, e"',
    "video_enabled=true",
    "max_iterations=1e2",
    "+tags.team=legs",
)
ODD = "=,[](){}'\"#.+~$\\ -:e0x|é\n"
GROUPS = {"task", "ppo", "network", "sweep", "platform", "experiment"}
CONTROL = {
    "name",
    "mode",
    "wait",
    "zip",
    "repeats",
    "reuse",
    "max_cost",
    "dry_run_iterations",
    "metric",
    "tags",
}


@st.composite
def mutated(draw: st.DrawFn, overrides: list[str]) -> list[str]:
    """With one to three slips of the finger."""
    arguments = list(overrides)
    for _ in range(draw(st.integers(1, 3))):
        index = draw(st.integers(0, len(arguments) - 1))
        text = arguments[index]
        place = draw(st.integers(0, max(len(text) - 1, 0)))
        slip = draw(st.sampled_from(["drop", "insert", "double", "swap", "prefix", "value", "repeat", "cut"]))
        if slip == "drop":
            text = text[:place] + text[place + 1 :]
        elif slip == "insert":
            text = text[:place] + draw(st.sampled_from(ODD)) + text[place:]
        elif slip == "double":
            text = text[:place] + text[place : place + 1] * 2 + text[place + 1 :]
        elif slip == "swap":
            text = text[:place] + text[place : place + 2][::-1] + text[place + 2 :]
        elif slip == "prefix":
            text = draw(st.sampled_from(["+", "++", "~", "-", "--"])) + text
        elif slip == "value":
            other = draw(st.sampled_from([*ONE, *SEVERAL])).partition("=")[2]
            text = f"{text.partition('=')[0]}={other}"
        elif slip == "repeat":
            arguments.append(draw(st.sampled_from(ONE)))
        else:
            text = text[:place]
        arguments[index] = text
    return arguments


@st.composite
def command_lines(draw: st.DrawFn) -> tuple[list[str], bool]:
    multirun = draw(st.booleans())
    pool = [*ONE, *SEVERAL] if multirun else list(ONE)
    chosen = draw(
        st.lists(st.sampled_from(pool), min_size=1, max_size=4, unique_by=lambda one: one.partition("=")[0])
    )
    return draw(mutated(chosen)), multirun


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(command_lines())
def test_a_slip_is_refused_in_words_or_means_what_was_typed(quick, service, line):
    arguments, multirun = line
    service.requests.clear()

    done = quick("platform=self_hosted", *arguments, *(["-m"] if multirun else []))

    assert "Traceback" not in done.stderr
    assert "HYDRA_FULL_ERROR" not in done.stderr
    if done.returncode == 0:
        [submit] = service.submits
        assert_it_means(submit, arguments)
    else:
        assert done.returncode in (1, 2)
        assert done.stderr.startswith(("canard-hydra: ", "usage: "))
        assert not service.submits


def assert_it_means(submit: dict[str, Any], arguments: list[str]) -> None:
    """Every override that sets a field is found in the members, of Hydra's number and in Hydra's order."""
    last = {
        one.get_key_element().lstrip("+"): one for one in OverridesParser.create().parse_overrides(arguments)
    }
    for key in last:
        assert is_known(key), key
    made = [member.config.model_dump() for member in members(RunConfig.model_validate(submit["config"]))]
    points = list(itertools.product(*(values_of(one) for one in last.values())))
    assert len(made) == len(points)
    for config, point in zip(made, points, strict=True):
        for (key, override), value in zip(last.items(), point, strict=True):
            if override.type is not OverrideType.DEL and "${" not in str(value):
                assert_value(key, value, config, submit)


def is_known(key: str) -> bool:
    top = key.partition(".")[0]
    bare = key.lstrip("~")
    return (
        bare in FIELD_OF_KEY
        or bare in GROUPS | CONTROL
        or bare.startswith((REWARD_KEY, "tags."))
        or (top == "task" and key.removeprefix("task.") in ("num_envs", "max_iterations"))
    )


def values_of(override: Override) -> list[Any]:
    if not override.is_sweep_override():
        return [override.value()]
    return [
        OverridesParser.create().parse_override(f"x={text}").value()
        for text in override.sweep_string_iterator()
    ]


def assert_value(key: str, value: Any, config: dict[str, Any], submit: dict[str, Any]) -> None:
    if key == "name":
        assert value is None or str(value) in submit["name"]
    elif key.startswith(REWARD_KEY):
        assert value is None or config["reward_weights"][key.removeprefix(REWARD_KEY)] == value
    elif key in TEXT_KEYS:
        assert value is None or (isinstance(value, str) and config[FIELD_OF_KEY[key]] == value)
    elif key in FIELD_OF_KEY and not isinstance(value, dict):
        given = config[FIELD_OF_KEY[key]]
        default = {"video_enabled": False, "gpu_count": 1}.get(key)
        assert given == value or (value is None and given == default)
        assert isinstance(given, bool) == isinstance(value, bool) or value is None
