"""The attempt's side of the attempt routes: each method is one try, and says clearly how it failed."""

import threading
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    sleep_using_event,
    stop_after_delay,
    stop_any,
    stop_when_event_set,
    wait_random_exponential,
)

from canard.connection import SystemTransport, explain
from canard.errors import APIError, ConnectionFailedError, RateLimitedError, ServerError
from canard.http import error_of
from canard.wire import (
    Artifact,
    AttemptReport,
    AttemptSpec,
    EventBatch,
    EventBatchAnswer,
    Heartbeat,
    HeartbeatAnswer,
    UploadRequest,
    UploadTicket,
)

ModelT = TypeVar("ModelT", bound=BaseModel)

CONNECT_TIMEOUT_S = 10.0
TIMEOUT_S = 60.0
CHUNK_BYTES = 2**20
LONGEST_RETRY_AFTER_S = 30.0


class AttemptApi:
    """One attempt's calls. Safe to use from several threads.

    Raises (every method):
        LeaseLostError: the attempt no longer owns its task.
        APIError: the platform refused, or failed.
        ConnectionFailedError: there was no answer.
    """

    def __init__(
        self, *, api_url: str, attempt_id: str, token: str, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._base = f"{api_url.rstrip('/')}/v1/attempts/{attempt_id}"
        self._headers = {"Authorization": f"Bearer {token}"}
        self._client = httpx.Client(
            transport=transport or SystemTransport(),
            timeout=httpx.Timeout(TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
        )

    def close(self) -> None:
        self._client.close()

    def start(self) -> AttemptSpec:
        return self._post("start", None, AttemptSpec)

    def heartbeat(self, beat: Heartbeat, *, timeout_s: float) -> HeartbeatAnswer:
        return self._post("heartbeat", beat, HeartbeatAnswer, timeout_s=timeout_s)

    def send_events(self, batch: EventBatch) -> EventBatchAnswer:
        return self._post("events", batch, EventBatchAnswer)

    def announce(self, upload: UploadRequest) -> UploadTicket:
        return self._post("uploads", upload, UploadTicket)

    def put(self, ticket: UploadTicket, chunks: Iterable[bytes], *, size_bytes: int) -> None:
        """Send exactly `size_bytes` to where the ticket says; the attempt's token does not go there."""
        headers = {
            **ticket.headers,
            "Content-Length": str(size_bytes),
            "Content-Type": "application/octet-stream",
        }
        self._send(ticket.method, ticket.url, content=chunks, headers=headers)

    def record(self, upload: UploadRequest) -> Artifact:
        return self._post("artifacts", upload, Artifact)

    def commit(self, report: AttemptReport) -> None:
        self._send(
            "POST",
            f"{self._base}/commit",
            content=report.model_dump_json(),
            headers={**self._headers, "Content-Type": "application/json"},
        )

    def download(self, url: str) -> Iterator[bytes]:
        """The bytes under a signed URL."""
        try:
            with self._client.stream("GET", url) as response:
                if not response.is_success:
                    response.read()
                    raise error_of(response, "GET of a checkpoint")
                yield from response.iter_raw(CHUNK_BYTES)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _no_answer(error, url) from error

    def _post(
        self, path: str, body: BaseModel | None, model: type[ModelT], *, timeout_s: float | None = None
    ) -> ModelT:
        content = body.model_dump_json() if body is not None else None
        headers = {**self._headers, "Content-Type": "application/json"}
        response = self._send(
            "POST", f"{self._base}/{path}", content=content, headers=headers, timeout_s=timeout_s
        )
        try:
            return model.model_validate_json(response.content)
        except ValidationError as error:
            raise ServerError(f"POST {path}: the platform's answer cannot be read ({error})") from None

    def _send(
        self,
        method: str,
        url: str,
        *,
        content: str | Iterable[bytes] | None,
        headers: dict[str, str],
        timeout_s: float | None = None,
    ) -> httpx.Response:
        timeout: Any = httpx.USE_CLIENT_DEFAULT if timeout_s is None else timeout_s
        try:
            response = self._client.request(method, url, content=content, headers=headers, timeout=timeout)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _no_answer(error, url) from error
        if not response.is_success:
            raise error_of(response, f"{method} {httpx.URL(url).path}"[:200])
        return response


def patiently(
    ended: threading.Event, *, longest_wait_s: float = 5.0, total_s: float | None = None
) -> Retrying:
    """Tries again what may pass by itself, until `ended` is set or `total_s` is over; then the last error."""
    stops = [stop_when_event_set(ended)]
    if total_s is not None:
        stops.append(stop_after_delay(total_s))  # type: ignore[arg-type]
    return Retrying(
        retry=retry_if_exception(may_pass),
        wait=_WaitAsTold(longest_wait_s),
        stop=stop_any(*stops),
        sleep=sleep_using_event(ended),
        reraise=True,
    )


def may_pass(error: BaseException) -> bool:
    """Whether the same request may succeed later."""
    return isinstance(error, ConnectionFailedError | ServerError | RateLimitedError)


class _WaitAsTold(wait_random_exponential):
    """Back off with jitter; longer where the platform asks for it, within a cap."""

    def __init__(self, longest_wait_s: float) -> None:
        super().__init__(multiplier=0.2, max=longest_wait_s)

    def __call__(self, retry_state: RetryCallState) -> float:
        backoff_s = super().__call__(retry_state)
        error = retry_state.outcome.exception() if retry_state.outcome else None
        told_s = error.retry_after_s if isinstance(error, APIError) else None
        return max(backoff_s, min(told_s or 0.0, LONGEST_RETRY_AFTER_S))


def _no_answer(error: Exception, url: str) -> ConnectionFailedError:
    return ConnectionFailedError(explain(error, url) if isinstance(error, httpx.HTTPError) else str(error))
