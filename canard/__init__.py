"""Canard: describe a robot-learning experiment, train it with one call.

    from canard import Client

    with Client(api_url="http://127.0.0.1:8787") as client:
        run = client.submit_training_run(name="cartpole", task_name="Canard-Cartpole-v0", code_url=...)
        run.wait_for_completion(show_progress=True)

Names load on first use, so that `canard.models` works in an environment that has pydantic and nothing else
(a simulator's own Python).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from canard.client import Client
    from canard.errors import (
        ArtifactNotFoundError,
        AuthenticationError,
        CanardError,
        ConflictError,
        ConnectionFailedError,
        CredentialsError,
        DownloadError,
        InvalidRequestError,
        NotFoundError,
        PlatformError,
        RateLimitedError,
        RunFailedError,
        RunNotFoundError,
        ServerError,
        TaskNotFoundError,
        WaitTimeoutError,
    )
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
    from canard.run_handle import RunHandle

__version__ = "0.1.0"

_HOME = {
    "Client": "canard.client",
    "RunHandle": "canard.run_handle",
    **dict.fromkeys(
        (
            "ArtifactNotFoundError",
            "AuthenticationError",
            "CanardError",
            "ConflictError",
            "ConnectionFailedError",
            "CredentialsError",
            "DownloadError",
            "InvalidRequestError",
            "NotFoundError",
            "PlatformError",
            "RateLimitedError",
            "RunFailedError",
            "RunNotFoundError",
            "ServerError",
            "TaskNotFoundError",
            "WaitTimeoutError",
        ),
        "canard.errors",
    ),
    **dict.fromkeys(
        (
            "QueueStatus",
            "Run",
            "RunConfig",
            "RunMetrics",
            "SweepConfig",
            "Task",
            "TaskMetrics",
            "TrainingConfig",
            "TrainingMetrics",
        ),
        "canard.models",
    ),
}

__all__ = [
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


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'canard' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
