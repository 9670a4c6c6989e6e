"""The same training has the same identity, and another one another."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from canard.identity import content_identity, repository_name
from canard.members import members
from canard.models import RunConfig, TrainingConfig

COMMIT = "a" * 40
NUMBERS = st.one_of(st.integers(1, 50), st.floats(1e-6, 50, allow_nan=False))
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "num_envs": st.integers(1, 10_000),
    "max_iterations": st.integers(1, 100_000),
    "video_enabled": st.booleans(),
    "seed": st.none() | st.integers(0, 2**32 - 1),
    "gpu_count": st.sampled_from([1, 2, 4, 8]),
    "learning_rate": st.none() | NUMBERS,
    "entropy_coef": st.none() | NUMBERS | st.sampled_from([0, 0.0, -0.0]),
    "gamma": st.none() | st.sampled_from([0, 1, 0.0, 1.0, 0.99]),
    "num_mini_batches": st.none() | st.integers(1, 16),
    "schedule": st.none() | st.sampled_from(["adaptive", "fixed"]),
    "actor_hidden_dims": st.none() | st.lists(st.integers(1, 512), min_size=1, max_size=3),
    "reward_weights": st.none()
    | st.dictionaries(st.sampled_from(["alive", "energy", "tilt"]), NUMBERS | st.integers(-5, 5)),
}
CONFIGS = st.fixed_dictionaries({}, optional=FIELDS)


def identity(fields: dict[str, Any], **stated: Any) -> str:
    config = TrainingConfig.model_validate({"task_name": "Ant-v5", **fields})
    return content_identity(config.model_dump(mode="json"), **{"mode": "training", "version": "1", **stated})


def resolved(fields: dict[str, Any]) -> TrainingConfig:
    config = TrainingConfig.model_validate({"task_name": "Ant-v5", **fields})
    return config if config.reward_weights else config.model_copy(update={"reward_weights": None})


def said_otherwise(fields: dict[str, Any], draw: st.DataObject) -> dict[str, Any]:
    """The same training, written in another order, with other forms of the numbers, defaults said or not."""
    names = draw.draw(st.permutations(list(fields)))
    other = {name: in_another_form(fields[name], draw) for name in names}
    for name, field in TrainingConfig.model_fields.items():
        default = field.get_default()
        if name != "task_name" and name not in fields and draw.draw(st.booleans()):
            other[name] = default
        elif other.get(name, ...) == default and draw.draw(st.booleans()):
            del other[name]
    return other


def in_another_form(value: Any, draw: st.DataObject) -> Any:
    if isinstance(value, dict):
        names = draw.draw(st.permutations(list(value)))
        return {name: in_another_form(value[name], draw) for name in names}
    if isinstance(value, float) and value == 0:
        return draw.draw(st.sampled_from([0, 0.0, -0.0]))
    return value


@given(fields=CONFIGS, draw=st.data())
def test_however_it_is_written_the_same_training_has_the_same_identity(fields, draw):
    assert identity(said_otherwise(fields, draw)) == identity(fields)


@given(fields=CONFIGS, others=CONFIGS)
def test_identities_are_equal_exactly_when_the_resolved_configs_are(fields, others):
    assert (identity(fields) == identity(others)) == (resolved(fields) == resolved(others))


@given(fields=CONFIGS, draw=st.data())
def test_another_value_of_any_field_is_another_training(fields, draw):
    name = draw.draw(st.sampled_from(sorted(FIELDS)))
    changed = {**fields, name: draw.draw(FIELDS[name])}

    assert (identity(changed) != identity(fields)) == (resolved(changed) != resolved(fields))


@pytest.mark.parametrize(("one", "other"), [(3, 3.0), (0.5, 5e-1), (1e-05, 0.00001), (-0.0, 0)])
def test_forms_of_a_number_are_one_number(one, other):
    assert identity({"reward_weights": {"a": one}}) == identity({"reward_weights": {"a": other}})


def test_true_is_not_one_among_free_physics_parameters():
    physics = {"task_name": "x", "params": {"flag": True}}

    other = content_identity({**physics, "params": {"flag": 1}}, mode="physics", version="1")
    assert content_identity(physics, mode="physics", version="1") != other


def test_a_swept_value_and_the_same_value_in_the_base_are_the_same_training():
    base = TrainingConfig(task_name="Ant-v5", learning_rate=3e-4, reward_weights={"alive": 1})
    plain = RunConfig(mode="training", training_config=base)
    swept = RunConfig(
        mode="training",
        training_config=TrainingConfig(task_name="Ant-v5"),
        tasks=[{"reward_weights.alive": 1.0, "learning_rate": 0.0003}],
    )

    [one], [other] = (
        [
            content_identity(m.config.model_dump(mode="json"), mode="training", version="1")
            for m in members(run)
        ]
        for run in (plain, swept)
    )

    assert one == other


def test_the_commit_stands_for_the_name_that_led_to_it():
    url = "https://example.org/a/b"

    main = identity({"code_url": url, "code_ref": "main"}, commit=COMMIT)

    assert main == identity({"code_url": url, "code_ref": "v1"}, commit=COMMIT)
    assert main == identity({"code_url": "git@EXAMPLE.org:a/b.git"}, commit=COMMIT)
    assert main != identity({"code_url": url, "code_ref": "main"}, commit="b" * 40)
    assert main != identity({"code_url": "https://example.org/a/c"}, commit=COMMIT)


def test_the_content_of_a_checkpoint_stands_for_its_address():
    one = identity({"checkpoint_url": "runs/run_a/checkpoints/model_5.pt"}, checkpoint="c" * 64)

    assert one == identity({"checkpoint_url": "/copies/m.pt"}, checkpoint="c" * 64)
    assert one != identity({"checkpoint_url": "/copies/m.pt"}, checkpoint="d" * 64)
    assert one != identity({})


@pytest.mark.parametrize("field", ["code_url", "checkpoint_url"])
def test_what_is_not_known_has_no_identity(field):
    with pytest.raises(ValueError, match=field):
        identity({field: "/somewhere"})


def test_mode_and_version_of_the_trainer_count():
    assert len({identity({}), identity({}, mode="physics"), identity({}, version="2")}) == 3


@pytest.mark.parametrize(
    ("spellings", "name"),
    [
        (
            [
                "https://github.com/a/b",
                "https://GitHub.com/a/b.git",
                "https://github.com:443/a/b/",
                "ssh://git@github.com/a/b",
                "ssh://git@github.com:22/a/b.git",
                "git@github.com:a/b.git",
            ],
            "github.com/a/b",
        ),
        (["https://git.example.org:8443/a/b.git"], "git.example.org:8443/a/b"),
        (["/home/ada/env", "/home/ada/env/", "/home/ada/./x/../env"], "/home/ada/env"),
    ],
)
def test_spellings_of_one_repository_are_one_name(spellings, name):
    assert {repository_name(url) for url in spellings} == {name}


def test_it_is_the_same_in_every_process():
    """No hash seed, dictionary order or locale of one process in it."""
    program = (
        "from canard.identity import content_identity as identity\n"
        "print(identity({'b': 1e-05, 'a': {'y': 1, 'x': 2.0}, 'n': None}, mode='training', version='1'))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }

    here = content_identity({"a": {"x": 2, "y": 1.0}, "b": 0.00001}, mode="training", version="1")
    assert printed == {f"{here}\n"}
