"""What every request passes before a route sees it: the size of its body, and that it was noticed."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from canard_platform.api.problems import TooLargeError, as_problem, problem_response
from canard_platform.services import Activity

STREAMED = "/v1/blobs/"
"""Uploads are limited by what their URL was signed for, and never held in memory."""


class BodyLimit:
    """Answers 413 for a body over the limit, whether or not it says its length."""

    def __init__(self, app: ASGIApp, *, most_bytes: int) -> None:
        self._app = app
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(STREAMED):
            await self._app(scope, receive, send)
            return
        messages = await self._read(scope, receive)
        if messages is None:
            error = TooLargeError(f"the body is over the limit of {self._most_bytes} bytes")
            await problem_response(as_problem(error), {"Connection": "close"})(scope, receive, send)
            return
        await self._app(scope, _replay(messages, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> list[Message] | None:
        said = dict(scope["headers"]).get(b"content-length", b"")
        if said.isdigit() and int(said) > self._most_bytes:
            return None
        messages: list[Message] = []
        size = 0
        while True:
            message = await receive()
            messages.append(message)
            size += len(message.get("body", b""))
            if size > self._most_bytes:
                return None
            if message["type"] != "http.request" or not message.get("more_body", False):
                return messages


class Noticed:
    """Tells `Activity` of every request."""

    def __init__(self, app: ASGIApp, *, activity: Activity) -> None:
        self._app = app
        self._activity = activity

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._activity.seen()
        await self._app(scope, receive, send)


def _replay(messages: list[Message], receive: Receive) -> Receive:
    waiting = iter(messages)

    async def next_message() -> Message:
        message = next(waiting, None)
        return message if message is not None else await receive()

    return next_message
