"""Base and deltas make exactly the members that were composed, whatever they are."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from canard.members import members
from canard.models import RunConfig
from canard_hydra.composed import Composed
from canard_hydra.experiment import make_experiment

FIELDS = st.fixed_dictionaries(
    {"task_name": st.sampled_from(["A-v0", "B-v0"])},
    optional={
        "num_envs": st.sampled_from([1, 64, 1000]),
        "seed": st.sampled_from([0, 7]),
        "learning_rate": st.sampled_from([1e-5, 3e-4]),
        "video_enabled": st.booleans(),
        "actor_hidden_dims": st.sampled_from([[64], [256, 128]]),
        "code_ref": st.sampled_from(["main", "12e4567"]),
        "reward_weights": st.dictionaries(
            st.sampled_from(["alive", "energy"]), st.sampled_from([1.0, -0.5]), min_size=1
        ),
    },
)


def composed(fields: dict[str, Any], **control: Any) -> Composed:
    return Composed(overrides=(), fields=fields, control=control, task_choice="cartpole")


@settings(max_examples=300, deadline=None)
@given(st.lists(FIELDS, min_size=1, max_size=6))
def test_the_run_makes_the_members_that_were_composed(fields):
    experiment = make_experiment([composed(one) for one in fields])

    # As the service sees it: through JSON.
    sent = RunConfig.model_validate_json(experiment.run.model_dump_json())
    made = [member.config.model_dump() for member in members(sent)]
    assert made == [config.model_dump() for config in experiment.configs]
    for config, one in zip(experiment.configs, fields, strict=True):
        assert {name: getattr(config, name) for name in one} == one


@settings(max_examples=100, deadline=None)
@given(st.lists(FIELDS, min_size=2, max_size=6))
def test_a_delta_names_what_sets_members_apart_and_nothing_else(fields):
    experiment = make_experiment([composed(one) for one in fields])

    for name in {name for one in experiment.params for name in one if not name.startswith("reward_weights")}:
        assert len({str(getattr(config, name)) for config in experiment.configs}) > 1


def test_a_swept_field_is_a_delta_even_when_it_is_alone():
    experiment = make_experiment(
        [composed({"task_name": "A-v0", "seed": 7, "num_envs": 8})], swept_keys=["seed"]
    )

    assert experiment.params == ({"seed": 7},)
    assert experiment.run.tasks == [{"seed": 7}]


def test_many_names_are_shortened():
    experiment = make_experiment([composed({"task_name": "A-v0"}, name=f"n{index}") for index in range(10)])

    assert experiment.name == "n0, n1, n2, n3 and 6 more"


def test_one_name_is_left_as_it_is():
    experiment = make_experiment([composed({"task_name": "A-v0"}, name="n" * 400)])

    assert experiment.name == "n" * 400
