"""How long a call may take, and what is tried again.

httpx-retries does the trying; this says when to stop, and reads Retry-After in all the forms that servers
and proxies send.
"""

import random
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
from httpx_retries import Retry

from canard.api_url import is_loopback

METHODS = ("GET", "HEAD", "POST")
"""POST too: every POST carries an idempotency key that stays the same over its tries."""

STATUSES = (408, 429, 502, 503, 504)

SECONDS = re.compile(r"[+-]?\d{1,15}(\.\d*)?")


@dataclass(frozen=True, kw_only=True)
class Patience:
    """Bounds of one call, all its tries and waits together."""

    total_s: float = 60.0
    """After this long a call ends, with the last error."""
    tries: int = 6
    backoff_s: float = 0.5
    """First wait when the server names none; it doubles, with jitter."""
    longest_wait_s: float = 30.0
    """A server that asks for a longer wait gets none: the error carries what it asked for."""
    connect_s: float = 10.0
    read_s: float = 30.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def retry(self, *, total_s: float | None = None) -> "BoundedRetry":
        """What one call starts with; `total_s` makes it shorter than usual."""
        within_s = self.total_s if total_s is None else min(total_s, self.total_s)
        return BoundedRetry(patience=self, deadline=self.clock() + within_s)


class NotWorthWaitingError(Exception):
    """The wait would be longer than the caller's patience."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(response.status_code)
        self.response = response


class BoundedRetry(Retry):
    """Retries until the tries are used up or the deadline would pass."""

    def __init__(self, *, patience: Patience, deadline: float, attempts_made: int = 0) -> None:
        super().__init__(
            total=max(0, patience.tries - 1),
            allowed_methods=METHODS,
            status_forcelist=STATUSES,
            backoff_factor=patience.backoff_s / 2,
            backoff_jitter=0.5,
            max_backoff_wait=patience.longest_wait_s,
            attempts_made=attempts_made,
        )
        self.patience = patience
        self.deadline = deadline

    def remaining_s(self) -> float:
        return self.deadline - self.patience.clock()

    def increment(self) -> "BoundedRetry":
        return BoundedRetry(
            patience=self.patience, deadline=self.deadline, attempts_made=self.attempts_made + 1
        )

    def is_exhausted(self) -> bool:
        return super().is_exhausted() or self.remaining_s() <= 0

    def is_retryable_exception(self, exception: Exception) -> bool:
        return super().is_retryable_exception(exception) and may_pass(exception)

    def sleep(self, response: httpx.Response | Exception) -> None:
        """Wait as told, or back off.

        Raises:
            NotWorthWaitingError: the wait that `response` asks for is too long.
            httpx.HTTPError: `response` itself, when there is no time left for another try.
        """
        wait_s = self.wait_s(response)
        if wait_s > self.patience.longest_wait_s or wait_s >= self.remaining_s():
            if isinstance(response, Exception):
                raise response
            raise NotWorthWaitingError(response)
        self.patience.sleep(wait_s)

    def wait_s(self, response: httpx.Response | Exception) -> float:
        told_s = retry_after_s(response) if isinstance(response, httpx.Response) else None
        if not told_s:
            return self.backoff_strategy()
        return told_s * random.uniform(1.0, 1.1)  # noqa: S311 - so that clients told the same come apart


def retry_after_s(response: httpx.Response) -> float | None:
    """Seconds that Retry-After asks for, never negative; None where it is absent or says nothing."""
    text = response.headers.get("Retry-After", "").strip()
    if SECONDS.fullmatch(text):
        return max(0.0, float(text))
    when = _date(text)
    if when is None:
        return None
    # The server's own clock where it tells it: the user's may be off by hours.
    now = _date(response.headers.get("Date", "")) or datetime.now(UTC)
    return max(0.0, (when - now).total_seconds())


def _date(text: str) -> datetime | None:
    try:
        when = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def may_pass(error: BaseException) -> bool:
    """Whether trying again can help: not with a certificate that is wrong or a service that is not there."""
    for cause in causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return False
        if isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME:
            return False
        if isinstance(cause, ConnectionRefusedError) and _asked_this_machine(error):
            return False
    return True


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _asked_this_machine(error: BaseException) -> bool:
    # RuntimeError: httpx sets the request after the transport returned, our transport before.
    try:
        return isinstance(error, httpx.RequestError) and is_loopback(str(error.request.url))
    except RuntimeError:
        return False
