"""What the package shows, and what an import costs."""

import json
import pickle
import subprocess
import sys

import pytest

import canard
from canard import errors

EXPORTED = [
    "ArtifactNotFoundError",
    "AuthenticationError",
    "CanardError",
    "Client",
    "ConflictError",
    "ConnectionFailedError",
    "CredentialsError",
    "DownloadError",
    "InvalidRequestError",
    "NotFoundError",
    "PlatformError",
    "QueueStatus",
    "RateLimitedError",
    "Run",
    "RunConfig",
    "RunFailedError",
    "RunHandle",
    "RunMetrics",
    "RunNotFoundError",
    "ServerError",
    "SweepConfig",
    "Task",
    "TaskMetrics",
    "TaskNotFoundError",
    "TrainingConfig",
    "TrainingMetrics",
    "WaitTimeoutError",
]

DOCUMENTED_METHODS = {
    "submit_training_run": "name task_name code_url num_envs max_iterations enable_video video_interval seed"
    " checkpoint_url code_ref gpu_count wait training_kwargs",
    "submit_training_sweep": "name task_name code_url sweep_params num_envs max_iterations enable_video seed"
    " code_ref gpu_count wait training_kwargs",
    "submit_run": "name config wait",
    "get_run": "run_slug",
    "list_runs": "limit",
    "get_run_metrics": "run_slug",
    "get_run_tasks": "run_slug",
    "list_artifacts": "run_slug artifact_type",
    "get_artifact_url": "run_slug s3_key",
    "download_artifact": "run_slug s3_key output_dir",
    "get_queue_status": "",
    "close": "",
}


def modules_after(statement: str) -> set[str]:
    program = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    printed = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    return {name.partition(".")[0] for name in json.loads(printed)}


def test_the_exported_names_are_these():
    assert canard.__all__ == EXPORTED
    assert [getattr(canard, name).__name__ for name in EXPORTED] == EXPORTED


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Clent'"):
        canard.Clent  # noqa: B018


@pytest.mark.parametrize(("method", "names"), DOCUMENTED_METHODS.items())
def test_a_client_method_takes_the_documented_arguments(method: str, names: str):
    code = getattr(canard.Client, method).__code__
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 0x08)

    assert set(names.split()) <= set(code.co_varnames[1:count])


def test_importing_canard_loads_nothing_heavy():
    loaded = modules_after("import canard")

    assert not loaded & {"hydra", "omegaconf", "torch", "httpx", "pydantic", "rich", "click", "numpy"}


def test_canard_models_needs_pydantic_and_nothing_else():
    loaded = modules_after("import canard.models, canard.members")

    others = {name for name in loaded if name not in sys.stdlib_module_names and not name.startswith("_")}
    assert others <= {
        "canard",
        "pydantic",
        "pydantic_core",
        "annotated_types",
        "typing_extensions",
        "typing_inspection",
    }


def test_the_client_loads_neither_hydra_nor_torch():
    loaded = modules_after("import canard.client, canard.cli")

    assert "httpx" in loaded
    assert not loaded & {"hydra", "omegaconf", "torch", "sqlalchemy", "fastapi", "canard_platform", "trainer"}


def test_every_error_is_a_canard_error_and_survives_a_process_border():
    made: list[errors.CanardError] = [
        errors.RateLimitedError("slow down", field="f", hint="h", request_id="r", retry_after_s=2.5),
        errors.ServerError("broken", retry_after_s=1.0),
        errors.ConnectionFailedError("no answer", idempotency_key="k"),
        errors.RunFailedError("failed", run=None, tasks=[]),
        errors.WaitTimeoutError("late"),
    ]

    for error in made:
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


def test_waiting_too_long_is_also_a_timeout_error():
    assert issubclass(errors.WaitTimeoutError, TimeoutError)
