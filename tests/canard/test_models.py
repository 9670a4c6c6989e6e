"""The documented models: every field, default and bound, and what is refused."""

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from canard.models import (
    QueueStatus,
    Run,
    RunConfig,
    RunMetrics,
    SweepConfig,
    Task,
    TaskMetrics,
    TrainingConfig,
    TrainingMetrics,
)

UNSET = object()

TRAINING_FIELDS: list[tuple[str, Any, list[Any], list[Any]]] = [
    # field, default, accepted, refused
    ("task_name", UNSET, ["Ant-v5", "my_env:Hover-v0"], ["", 3, None]),
    ("num_envs", 1000, [1, 10_000, 64.0], [0, 10_001, 1.5, True, "64", None]),
    ("max_iterations", 1500, [1, 100_000, 1e3], [0, 100_001, True]),
    ("video_enabled", False, [True, False], ["yes", 1]),
    ("video_interval", 2000, [1], [0, True]),
    ("seed", None, [0, 42, None], [-1, 1.5, True]),
    ("checkpoint_url", None, ["s3://bucket/runs/run_a1b2c3d4/checkpoints/model_5.pt", None], ["", 5]),
    ("code_url", None, ["https://github.com/a/b", None], ["", 5]),
    ("code_ref", None, ["main", "695e0514", "0012345", None], ["", 1234567, math.inf]),
    ("gpu_count", 1, [1, 2, 4, 8], [0, 3, 16, True, "2"]),
    ("learning_rate", None, [1e-5, 1, None], [0, -1e-3, math.nan, math.inf, "1e-5", True]),
    ("clip_param", None, [0.2, 1.0], [0, 1.1]),
    ("entropy_coef", None, [0.0, 0.01], [-0.1, math.nan]),
    ("gamma", None, [0.0, 0.99, 1.0], [-0.1, 1.1]),
    ("lam", None, [0.0, 0.95, 1.0], [-0.1, 1.1]),
    ("num_learning_epochs", None, [1, 5], [0, 1.5]),
    ("num_mini_batches", None, [1, 4], [0, True]),
    ("desired_kl", None, [0.01, None], [0.0, math.inf]),
    ("max_grad_norm", None, [0.5], [0.0]),
    ("schedule", None, ["adaptive", "fixed", None], ["linear", ""]),
    ("actor_hidden_dims", None, [[256, 128], [64]], [[], [0], [64, True], 64, "256,128"]),
    ("critic_hidden_dims", None, [[256, 128]], [[], [-1]]),
    ("activation", None, ["relu", "elu"], ["", 1]),
    ("init_noise_std", None, [0.5], [0.0, math.nan]),
    (
        "reward_weights",
        None,
        [{"alive": 1.0, "torque": -1e-5}, {}],
        [{"alive": math.nan}, {"alive": "1"}, [1]],
    ),
]


def training(**fields: Any) -> TrainingConfig:
    return TrainingConfig(**{"task_name": "Ant-v5", **fields})


def test_training_config_has_the_documented_fields_in_the_documented_order():
    assert list(TrainingConfig.model_fields) == [field for field, *_ in TRAINING_FIELDS]


@pytest.mark.parametrize(
    ("field", "default"), [(row[0], row[1]) for row in TRAINING_FIELDS if row[1] is not UNSET]
)
def test_a_training_field_has_its_documented_default(field: str, default: Any):
    assert getattr(training(), field) == default


@pytest.mark.parametrize(("field", "value"), [(row[0], value) for row in TRAINING_FIELDS for value in row[2]])
def test_a_training_field_keeps_an_allowed_value(field: str, value: Any):
    kept = getattr(training(**{field: value}), field)

    assert kept == value
    if isinstance(TrainingConfig.model_fields[field].default, int) and not isinstance(value, bool):
        assert type(kept) is int


@pytest.mark.parametrize(("field", "value"), [(row[0], value) for row in TRAINING_FIELDS for value in row[3]])
def test_a_training_field_refuses_what_is_out_of_bounds_or_of_another_type(field: str, value: Any):
    with pytest.raises(ValidationError) as refused:
        training(**{field: value})

    assert refused.value.errors()[0]["loc"][0] == field


def test_task_name_is_required():
    with pytest.raises(ValidationError, match="task_name"):
        TrainingConfig()  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("model", "fields", "told"),
    [
        (TrainingConfig, {"task_name": "a", "learing_rate": 1e-5}, "did you mean 'learning_rate'"),
        (SweepConfig, {"parameter": "gamma", "values": [1], "value": 2}, "did you mean 'values'"),
        (RunConfig, {"training_cfg": {}}, "did you mean 'training_config'"),
        (
            RunConfig,
            {"training_config": {"task_name": "a", "max_iteration": 3}},
            "did you mean 'max_iterations'",
        ),
        (TrainingConfig, {"task_name": "a", "qqq": 1}, "known fields: activation"),
    ],
)
def test_an_unknown_field_is_refused_naming_the_nearest(model: Any, fields: dict[str, Any], told: str):
    with pytest.raises(ValidationError, match=told):
        model(**fields)


def test_reward_weights_take_any_term():
    assert training(reward_weights={"whatever_term": 2}).reward_weights == {"whatever_term": 2.0}


def test_a_model_is_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        training().num_envs = 3


REAL = st.floats(min_value=1e-12, max_value=1.0)
TRAININGS = st.builds(
    TrainingConfig,
    task_name=st.text(min_size=1, max_size=20),
    num_envs=st.integers(1, 10_000),
    seed=st.none() | st.integers(0, 2**32 - 1),
    code_ref=st.none() | st.text(min_size=1) | st.from_regex(r"[0-9]{1,8}e[0-9]{1,6}", fullmatch=True),
    gpu_count=st.sampled_from([1, 2, 4, 8]),
    learning_rate=st.none() | st.sampled_from([1e-5, 5e-6, 1e-3, 1.0]) | REAL,
    gamma=st.none() | st.floats(0, 1),
    desired_kl=st.none() | REAL,
    actor_hidden_dims=st.none() | st.lists(st.integers(1, 4096), min_size=1, max_size=4),
    reward_weights=st.none() | st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False)),
)


@given(TRAININGS)
def test_a_training_config_survives_json_with_values_and_types(config: TrainingConfig):
    text = config.model_dump_json()
    again = TrainingConfig.model_validate_json(text)
    through_plain_json = TrainingConfig.model_validate(json.loads(json.dumps(json.loads(text))))

    assert again == config == through_plain_json
    for field in ("learning_rate", "gamma", "desired_kl"):
        assert type(getattr(again, field)) is type(getattr(config, field))


@pytest.mark.parametrize("text", ["1e-5", "1e-05", "5E-6", "0.00001"])
def test_a_small_learning_rate_in_json_is_a_float(text: str):
    config = TrainingConfig.model_validate_json(f'{{"task_name": "a", "learning_rate": {text}}}')

    assert type(config.learning_rate) is float
    assert config.learning_rate == float(text)


@pytest.mark.parametrize("ref", ["695e0514", "12e4567", "1234567", "0012345", "3.10", "1:30", "1E234"])
def test_a_ref_and_a_name_that_look_like_numbers_keep_their_characters(ref: str):
    assert TrainingConfig.model_validate_json(training(code_ref=ref).model_dump_json()).code_ref == ref


RUN_CONFIG_DEFAULTS = {
    "mode": "physics",
    "training_config": None,
    "sweep_configs": None,
    "num_samples": None,
    "steps": 1000,
}


@pytest.mark.parametrize(("field", "default"), RUN_CONFIG_DEFAULTS.items())
def test_a_run_field_has_its_documented_default(field: str, default: Any):
    assert getattr(RunConfig(), field) == default


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"mode": "dance"}, "mode"),
        ({"mode": "training"}, "needs training_config"),
        ({"steps": 0}, "steps"),
        ({"num_samples": 0}, "num_samples"),
        ({"num_samples": True}, "num_samples"),
        ({"tasks": []}, "tasks"),
        ({"tasks": [{}], "num_samples": 1}, "leave out sweep_configs"),
        ({"tasks": [{"gamma": math.nan}]}, "finite"),
        ({"sweep_configs": [{"parameter": "gamma", "values": [0.9, math.inf]}]}, "finite"),
        ({"sweep_configs": [{"parameter": "gamma", "values": []}]}, "values"),
        ({"sweep_configs": [{"parameter": "", "values": [1]}]}, "parameter"),
        ({"sweep_configs": [{"parameter": "gamma", "values": [object()]}]}, "must be text"),
    ],
)
def test_a_run_config_refuses_what_makes_no_run(fields: dict[str, Any], told: str):
    with pytest.raises(ValidationError, match=told):
        RunConfig(**fields)


def test_swept_values_keep_null_booleans_and_look_alikes_through_json():
    values = [None, True, False, "null", "true", "", "yes", 1, 1.0, 1e-5, [256, 128], {"a": None}]
    config = RunConfig(sweep_configs=[SweepConfig(parameter="p", values=values)])

    again = RunConfig.model_validate_json(config.model_dump_json())

    assert again.sweep_configs is not None
    kept = again.sweep_configs[0].values
    assert kept == values
    assert [type(value) for value in kept] == [type(value) for value in values]


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RUN = {
    "id": 1,
    "slug": "run_a1b2c3d4",
    "name": "go2",
    "user_id": "local",
    "config": {"mode": "physics"},
    "status": "running",
    "num_tasks": 4,
    "completed_tasks": 1,
    "created_at": "2026-01-02T03:04:05Z",
    "updated_at": "2026-01-02T03:04:05Z",
}


@pytest.mark.parametrize(
    ("model", "documented"),
    [
        (
            Run,
            "id slug name user_id config status num_tasks completed_tasks tensorboard_url created_at"
            " updated_at dashboard_url is_complete is_failed is_running progress",
        ),
        (
            Task,
            "id run_id params status worker_id s3_key metrics error_message created_at completed_at"
            " progress_percent",
        ),
        (TaskMetrics, "avg_fps total_reward collision_count episode_duration success"),
        (
            RunMetrics,
            "avg_physics_fps success_rate avg_episode_reward total_collisions completed_tasks total_tasks"
            " mode training",
        ),
        (
            TrainingMetrics,
            "mean_reward mean_episode_length current_iteration max_iterations progress_percent"
            " reward_history",
        ),
        (QueueStatus, "queued running completed failed active_workers"),
        (SweepConfig, "parameter values"),
    ],
)
def test_a_response_has_the_documented_names(model: Any, documented: str):
    names = set(model.model_fields) | {
        name for name in dir(model) if isinstance(getattr(model, name, None), property)
    }

    assert set(documented.split()) <= names


def test_a_run_knows_its_state():
    run = Run.model_validate(RUN)

    assert (run.is_running, run.is_complete, run.is_failed, run.is_terminal) == (True, False, False, False)
    assert run.created_at == NOW
    assert run.progress == 0.25
    assert Run.model_validate({**RUN, "progress_fraction": 0.4}).progress == 0.4
    assert Run.model_validate({**RUN, "status": "cancelled"}).is_terminal


def test_an_unknown_status_and_unknown_fields_of_a_newer_server_are_kept():
    config = {
        "mode": "distillation",
        "teacher": "x",
        "training_config": {"task_name": "a", "num_envs": 5, "moe": 8},
    }

    run = Run.model_validate({**RUN, "status": "paused", "priority": 7, "config": config})

    assert run.status == "paused"
    assert not run.is_terminal
    assert run.model_extra == {"priority": 7}
    assert run.config.mode == "distillation"
    assert run.config.training_config is not None
    assert run.config.training_config.num_envs == 5
