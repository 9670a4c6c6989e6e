"""What every request passes before a route sees it: the size of its body, and that it was noticed."""

import zlib

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from canard.errors import APIError, InvalidRequestError
from canard_platform.api.problems import (
    TooLargeError,
    UnsupportedEncodingError,
    as_problem,
    problem_response,
)
from canard_platform.services import Activity

STREAMED = "/v1/blobs/"
"""Uploads are limited by what their URL was signed for, and never held in memory."""
GZIP_ONLY = 16 + zlib.MAX_WBITS
"""What zlib calls a gzip stream and no other."""


class BodyLimit:
    """Unpacks a gzip body; answers 413 for one over the limit, packed or not, whatever length it says."""

    def __init__(self, app: ASGIApp, *, most_bytes: int) -> None:
        self._app = app
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(STREAMED):
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        try:
            body, last = await self._read(headers, receive)
            encoding = headers.get(b"content-encoding", b"identity").lower()
            if encoding != b"identity":
                body = self._unpacked(body, encoding)
                scope = {**scope, "headers": _of_plain_body(scope["headers"], len(body))}
        except APIError as error:
            await problem_response(as_problem(error), {"Connection": "close"})(scope, receive, send)
            return
        first = {"type": "http.request", "body": body, "more_body": bool(last)}
        await self._app(scope, _replay([first, *last], receive), send)

    async def _read(self, headers: dict[bytes, bytes], receive: Receive) -> tuple[bytes, list[Message]]:
        """The body as it came, and the message that it was cut off, if it was."""
        said = headers.get(b"content-length", b"")
        if said.isdigit() and int(said) > self._most_bytes:
            raise self._too_large()
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return bytes(body), [message]
            body += message.get("body", b"")
            if len(body) > self._most_bytes:
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(body), []

    def _unpacked(self, body: bytes, encoding: bytes) -> bytes:
        if encoding != b"gzip":
            raise UnsupportedEncodingError(
                f"Content-Encoding: {encoding.decode('latin-1')!r} is not known here; send gzip or none"
            )
        unpacker = zlib.decompressobj(wbits=GZIP_ONLY)
        try:
            plain = unpacker.decompress(body, self._most_bytes + 1)
        except zlib.error:
            raise InvalidRequestError("Content-Encoding: says gzip, but the body is none") from None
        if len(plain) > self._most_bytes:
            raise self._too_large()
        if not unpacker.eof or unpacker.unused_data:
            raise InvalidRequestError("Content-Encoding: says gzip, but the body is not one whole")
        return plain

    def _too_large(self) -> TooLargeError:
        return TooLargeError(f"the body is over the limit of {self._most_bytes} bytes")


def _of_plain_body(headers: list[tuple[bytes, bytes]], length: int) -> list[tuple[bytes, bytes]]:
    kept = [one for one in headers if one[0] not in (b"content-encoding", b"content-length")]
    return [*kept, (b"content-length", str(length).encode())]


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
