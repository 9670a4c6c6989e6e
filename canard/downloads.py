"""Files from the platform: whole and right, or not there at all.

Bytes land in a hidden file beside the target. A transfer that breaks goes on where it stopped, also in a
later call; the file gets its name only when size and sha256 are those that the platform told.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from httpx_retries import RetryTransport
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from canard.connection import SystemTransport, chunks, explain, whole
from canard.errors import ConnectionFailedError, DownloadError
from canard.http import error_of
from canard.retries import NotWorthWaitingError, Patience
from canard.wire import ArtifactUrl

REFUSED = (401, 403, 410)
"""What a store answers to a URL that has expired."""

UNSAFE_CHARACTERS = re.compile(r"[\x00-\x1f\x7f\\]" if os.name == "posix" else r'[\x00-\x1f\x7f\\:*?"<>|]')

Landed = Callable[[int], None]
"""Told how many bytes of the file are there."""


def file_name(key: str) -> str:
    """The last part of an artifact's key, safe to put under a directory.

    Raises:
        DownloadError: the key could lead out of the directory.
    """
    parts = key.split("/")
    if any(part in ("", ".", "..") for part in parts) or UNSAFE_CHARACTERS.search(key):
        raise DownloadError(f"artifact key {key!r} is not safe as a file name: nothing was downloaded")
    return parts[-1]


class Downloader:
    """Downloads from short-lived URLs; no API key is ever sent to them."""

    def __init__(
        self,
        *,
        patience: Patience | None = None,
        transport: httpx.BaseTransport | None = None,
        console: Console | None = None,
    ) -> None:
        self._patience = patience or Patience()
        self._transport = transport
        self._console = console or Console()

    def download(self, key: str, output_dir: Path | str, *, ask_url: Callable[[], ArtifactUrl]) -> Path:
        """The artifact at `key` as a file in `output_dir`.

        Args:
            ask_url: gives a fresh URL, the first one and the next when one has expired.

        Raises:
            DownloadError: what arrived is not the artifact, its key is not safe, or the disk refuses it.
            ConnectionFailedError: the store did not answer.
        """
        name = file_name(key)
        told = ask_url()
        try:
            target = _directory(output_dir) / name
            if target.is_file() and _is_right(target, told):
                return target
            part = _Part(target.parent, told.sha256)
            self._fetch_right(part, told, ask_url, name)
            os.replace(part.path, target)
        except OSError as error:
            raise DownloadError(f"{error.filename or output_dir}: {error.strerror or error}") from error
        return target

    def _fetch_right(
        self, part: "_Part", told: ArtifactUrl, ask_url: Callable[[], ArtifactUrl], name: str
    ) -> None:
        went_on = part.size > 0
        with _progress(self._console, name, told.size_bytes) as landed:
            self._fetch(part, told, ask_url, landed)
            if went_on and not _is_right(part.path, told):
                # What an earlier call left behind was not the beginning of this file.
                part.discard()
                self._fetch(part, told, ask_url, landed)
        if not _is_right(part.path, told):
            size = part.size
            part.discard()
            raise DownloadError(
                f"{name}: what arrived ({size} bytes) does not have the size ({told.size_bytes}) and sha256"
                f" ({told.sha256}) that the platform told; it was thrown away"
            )

    def _fetch(
        self, part: "_Part", told: ArtifactUrl, ask_url: Callable[[], ArtifactUrl], landed: Landed
    ) -> None:
        """Goes on as long as bytes arrive: the tries of `Patience` count from the last progress."""
        url, asked_again = told.url, False
        part.touch()
        with self._client(part, told, landed) as client:
            while part.size < told.size_bytes:
                before = part.size
                response, error = self._try(client, url)
                if part.size > before:
                    asked_again = False
                elif response is not None and response.status_code in REFUSED and not asked_again:
                    url, asked_again = ask_url().url, True
                elif response is not None:
                    raise error_of(response, f"GET {httpx.URL(url).host}")
                elif error is not None:
                    raise ConnectionFailedError(explain(error, url)) from error

    def _try(self, client: httpx.Client, url: str) -> tuple[httpx.Response | None, httpx.HTTPError | None]:
        try:
            return client.get(url, extensions={"retry": self._patience.retry()}), None
        except NotWorthWaitingError as given_up:
            return given_up.response, None
        except httpx.HTTPError as error:
            return None, error

    def _client(self, part: "_Part", told: ArtifactUrl, landed: Landed) -> httpx.Client:
        landing = _Landing(self._transport or SystemTransport(), part, told.size_bytes, landed)
        return httpx.Client(
            transport=RetryTransport(landing),
            headers={"Accept-Encoding": "identity"},
            timeout=httpx.Timeout(self._patience.read_s, connect=self._patience.connect_s),
            follow_redirects=True,
        )


class _Part:
    """The bytes that are there so far, in a file named after what it will be."""

    def __init__(self, directory: Path, sha256: str) -> None:
        self.path = directory / f".{hashlib.sha256(sha256.encode()).hexdigest()[:16]}.part"

    @property
    def size(self) -> int:
        return self.path.lstat().st_size if self.path.exists() else 0

    def touch(self) -> None:
        os.close(self._open())

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)

    def write(self, received: Iterator[bytes], *, start: int, limit: int, landed: Landed) -> None:
        """Write from `start` on, and nothing beyond `limit`."""
        with os.fdopen(self._open(), "r+b") as file:
            file.truncate(start)
            file.seek(start)
            for chunk in received:
                file.write(chunk)
                landed(file.tell())
                if file.tell() > limit:
                    break
            file.flush()
            os.fsync(file.fileno())

    def _open(self) -> int:
        # Never through a link that somebody else put there.
        return os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)


class _Landing(httpx.BaseTransport):
    """Asks for what is missing of a file and writes it there; a retry asks for less."""

    def __init__(self, inner: httpx.BaseTransport, part: _Part, size: int, landed: Landed) -> None:
        self._inner = inner
        self._part = part
        self._size = size
        self._landed = landed

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        have = self._part.size
        request.headers.pop("Range", None)
        if have:
            request.headers["Range"] = f"bytes={have}-"
        response = self._inner.handle_request(request)
        try:
            if response.is_success:
                self._land(response, start=_start(response))
                return httpx.Response(200)
            if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE and have:
                self._part.discard()
                self._part.touch()
                raise httpx.RemoteProtocolError("the store has less than what is already here")
            return whole(response, b"".join(chunks(response)))
        finally:
            response.close()

    def close(self) -> None:
        if isinstance(self._inner, SystemTransport):  # another one belongs to whoever passed it
            self._inner.close()

    def _land(self, response: httpx.Response, *, start: int) -> None:
        if start > self._part.size:
            raise httpx.RemoteProtocolError("the store skipped a part of the file")
        self._part.write(chunks(response), start=start, limit=self._size, landed=self._landed)
        if self._part.size < self._size:
            raise httpx.RemoteProtocolError("the store ended the transfer early")


def _start(response: httpx.Response) -> int:
    """Where the bytes of this answer begin: a store may ignore Range."""
    if response.status_code != httpx.codes.PARTIAL_CONTENT:
        return 0
    said = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    if said is None:
        raise httpx.RemoteProtocolError("the store sent a part without saying which")
    return int(said.group(1))


def _directory(output_dir: Path | str) -> Path:
    directory = Path(output_dir).expanduser()
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _is_right(path: Path, told: ArtifactUrl) -> bool:
    if path.stat().st_size != told.size_bytes:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == told.sha256.lower()


@contextmanager
def _progress(console: Console, name: str, size: int) -> Iterator[Landed]:
    """A bar on a terminal, nothing elsewhere."""
    if not console.is_terminal:
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn())
    with Progress(*columns, TransferSpeedColumn(), console=console) as progress:
        bar = progress.add_task(name, total=size)
        yield lambda there: progress.update(bar, completed=there)
