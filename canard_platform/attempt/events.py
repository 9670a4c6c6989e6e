"""Sends the trainer's events, and warnings of our own, in the order and under the numbers of the wire."""

import logging
import threading
from collections import deque
from datetime import UTC, datetime
from typing import Any

from canard.errors import CanardError, InvalidRequestError, LeaseLostError
from canard.wire import EventBatch
from canard_platform.attempt.api import AttemptApi, patiently
from canard_platform.attempt.stop import StopOrder, StopReason
from canard_platform.attempt.tail import EventTail

log = logging.getLogger(__name__)

IDLE_S = 0.3
MOST_EVENTS = 500
MOST_WAIT_S = 30.0


class EventSender:
    """A thread that follows one file; what it could not send yet stays in the file, not in memory."""

    def __init__(self, api: AttemptApi, tail: EventTail, stop: StopOrder) -> None:
        self._api = api
        self._tail = tail
        self._stop = stop
        self._own: deque[dict[str, Any]] = deque()
        self._next_seq = 0
        self._sent = threading.Condition()
        self._sent_to = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def warn(self, message: str) -> None:
        """An event of the runner itself."""
        log.warning("%s", message)
        now = datetime.now(UTC).isoformat()
        self._own.append({"event": "warning", "time": now, "message": message})

    def wait_until_sent(self, position: int) -> None:
        """Until the platform has the events before this position of the file; not for ever."""
        with self._sent:
            self._sent.wait_for(
                lambda: self._sent_to >= position or self._stop.lost.is_set() or not self._thread.is_alive(),
                timeout=MOST_WAIT_S,
            )

    def finish(self) -> None:
        """Return when everything was sent, or nothing more may be; the trainer writes no more."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.lost.is_set():
            closing = self._closing.is_set()
            try:
                if self._send_some():
                    continue
            except LeaseLostError:
                self._stop.give(StopReason.LEASE_LOST)
                return
            except CanardError as error:
                log.error("events could not be sent: %s", error)
            if closing:
                return
            self._closing.wait(IDLE_S)

    def _send_some(self) -> bool:
        """Whether there may be more."""
        events = [self._own.popleft() for _ in range(len(self._own))]
        events += self._tail.read()
        for start in range(0, len(events), MOST_EVENTS):
            self._send(events[start : start + MOST_EVENTS])
        with self._sent:
            self._sent_to = self._tail.position
            self._sent.notify_all()
        return bool(events) or not self._tail.at_end()

    def _send(self, events: list[dict[str, Any]]) -> None:
        """One batch; of a refused one the halves, so that a single bad event does not take others along."""
        try:
            batch = EventBatch(first_seq=self._next_seq, events=events)
            answer = patiently(self._stop.lost)(self._api.send_events, batch)
        except (InvalidRequestError, ValueError) as error:  # ValueError: it is no text that UTF-8 can hold
            if len(events) == 1:
                log.warning("an event was refused: %s", error)
                return
            middle = len(events) // 2
            self._send(events[:middle])
            self._send(events[middle:])
            return
        self._next_seq = answer.next_seq
