"""Everything Canard raises.

    CanardError
    |- APIError                  the platform answered with an error
    |  |- AuthenticationError    no key, a wrong or revoked key, or one that may not do this
    |  |- NotFoundError
    |  |  |- RunNotFoundError
    |  |  |- TaskNotFoundError
    |  |  `- ArtifactNotFoundError
    |  |- ConflictError          the same idempotency key with another body; a state that does not allow it
    |  |  `- LeaseLostError      a worker's attempt was given to another
    |  |- InvalidRequestError    names the field
    |  |- RateLimitedError       too many requests; with retry_after_s
    |  `- ServerError
    |- ConnectionFailedError     no answer: refused, unresolved, proxy, timeout
    |- CredentialsError          no API key, or a credentials file that others can read
    |- DownloadError             wrong size or sha256, or a key that would leave output_dir
    |- PlatformError             the local platform did not start
    |- RunFailedError            waiting ended with a run that failed or was cancelled
    `- WaitTimeoutError          waiting ended before the run did (also a TimeoutError)

The service raises the same classes, so code, HTTP status and meaning are said once.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from canard.models import Run, Task


class CanardError(Exception):
    """Root of all errors of this package."""


class APIError(CanardError):
    """An error answer of the platform, as problem+json (RFC 9457) carries it."""

    code = "error"
    status = 500

    def __init__(
        self,
        message: str,
        *,
        field: str | None = None,
        hint: str | None = None,
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        """Dotted name of the field that was wrong, where there is one."""
        self.hint = hint
        """What to do about it."""
        self.request_id = request_id
        self.retry_after_s = retry_after_s
        """Seconds that the platform asked to wait before the next try, where it did."""

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self._keywords())

    def _keywords(self) -> dict[str, Any]:
        return {
            "field": self.field,
            "hint": self.hint,
            "request_id": self.request_id,
            "retry_after_s": self.retry_after_s,
        }


def _rebuild(cls: Callable[..., CanardError], message: str, keywords: dict[str, Any]) -> CanardError:
    return cls(message, **keywords)


class AuthenticationError(APIError):
    """No key, a wrong key, or a key that may not do this."""

    code = "unauthenticated"
    status = 401


class NotFoundError(APIError):
    """No such thing, or not yours."""

    code = "not_found"
    status = 404


class RunNotFoundError(NotFoundError):
    """No such run, or not yours."""

    code = "run_not_found"


class TaskNotFoundError(NotFoundError):
    """No such task in this run."""

    code = "task_not_found"


class ArtifactNotFoundError(NotFoundError):
    """No artifact under this key."""

    code = "artifact_not_found"


class ConflictError(APIError):
    """The state does not allow it, or an idempotency key was used with another body."""

    code = "conflict"
    status = 409


class LeaseLostError(ConflictError):
    """This attempt no longer owns its task: stop, write nothing more."""

    code = "lease_lost"


class InvalidRequestError(APIError):
    """A field is unknown, missing or out of bounds."""

    code = "invalid_request"
    status = 422


class RateLimitedError(APIError):
    """Too many requests."""

    code = "rate_limited"
    status = 429


class ServerError(APIError):
    """The platform failed; the request may be repeated."""

    code = "server_error"
    status = 500


class ConnectionFailedError(CanardError):
    """The platform did not answer."""

    def __init__(self, message: str, *, idempotency_key: str | None = None) -> None:
        super().__init__(message)
        self.idempotency_key = idempotency_key
        """Of a submit whose outcome is unknown: passed again with the same body, it makes no second run."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), str(self), {"idempotency_key": self.idempotency_key})


class CredentialsError(CanardError):
    """No API key was found, or its file is open to others."""


class DownloadError(CanardError):
    """What arrived is not what the platform has, or its name is not safe."""


class PlatformError(CanardError):
    """The platform of this machine did not start or stop."""


class RunFailedError(CanardError):
    """A run that was waited for failed or was cancelled."""

    def __init__(self, message: str, *, run: "Run | None" = None, tasks: "Sequence[Task]" = ()) -> None:
        super().__init__(message)
        self.run = run
        self.tasks = list(tasks)
        """Those that did not complete, with their error_message."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), str(self), {"run": self.run, "tasks": self.tasks})


class WaitTimeoutError(CanardError, TimeoutError):
    """The run was still going when the wait ended; it goes on."""
