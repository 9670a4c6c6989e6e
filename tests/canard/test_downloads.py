"""Downloads, against a real server on loopback that breaks off, lies and expires."""

import hashlib
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from loopback import Answer, FakeTime, Hangup, Request, Script, Server

from canard.downloads import Downloader, file_name
from canard.errors import APIError, AuthenticationError, ConnectionFailedError, DownloadError
from canard.retries import Patience
from canard.wire import ArtifactUrl

Serve = Callable[[Script], Server]
Ask = Callable[[], ArtifactUrl]
CONTENT = bytes(range(256)) * 400
KEY = "runs/run_a1b2c3d4/tasks/1/attempt-1/checkpoints/model_50.pt"


def ticket(url: str, content: bytes = CONTENT, **fields: object) -> ArtifactUrl:
    told = {
        "url": url if "?" in url else f"{url}/blob?signature=1",
        "size_bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "expires_at": datetime(2026, 1, 1, tzinfo=UTC),
        **fields,
    }
    return ArtifactUrl.model_validate(told)


def ranged(request: Request, content: bytes = CONTENT, *, cut_at: int | None = None) -> Answer:
    """As a store answers GET, with or without Range."""
    asked = re.match(r"bytes=(\d+)-", request.headers.get("Range", ""))
    if asked is None:
        return Answer(200, content, cut_at=cut_at)
    start = int(asked.group(1))
    if start >= len(content):
        return Answer(416, b"", {"Content-Range": f"bytes */{len(content)}"})
    span = f"bytes {start}-{len(content) - 1}/{len(content)}"
    return Answer(206, content[start:], {"Content-Range": span}, cut_at=cut_at)


@pytest.fixture
def downloader(fake_time: FakeTime) -> Downloader:
    return Downloader(patience=Patience(clock=fake_time.monotonic, sleep=fake_time.sleep))


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "out"


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def ranges(server: Server) -> list[str | None]:
    return [request.headers.get("Range") for request in server.requests]


def test_a_file_arrives_whole_under_its_name(serve: Serve, downloader: Downloader, output: Path):
    server = serve(ranged)

    path = downloader.download(KEY, output, ask_url=lambda: ticket(server.url))

    assert path == output / "model_50.pt"
    assert path.read_bytes() == CONTENT
    assert names(output) == ["model_50.pt"]
    assert "Authorization" not in server.requests[0].headers


def test_an_empty_file_arrives(serve: Serve, downloader: Downloader, output: Path):
    server = serve(lambda request: ranged(request, b""))

    path = downloader.download(KEY, output, ask_url=lambda: ticket(server.url, b""))

    assert path.read_bytes() == b""


def test_a_broken_transfer_goes_on_where_it_stopped(serve: Serve, downloader: Downloader, output: Path):
    cuts = iter([1000, 5000, None])
    server = serve(lambda request: ranged(request, cut_at=next(cuts)))

    path = downloader.download(KEY, output, ask_url=lambda: ticket(server.url))

    assert path.read_bytes() == CONTENT
    assert ranges(server) == [None, "bytes=1000-", "bytes=6000-"]


def test_a_transfer_that_breaks_very_often_still_ends_as_long_as_bytes_arrive(
    serve: Serve, downloader: Downloader, output: Path
):
    server = serve(lambda request: ranged(request, cut_at=5000))

    path = downloader.download(KEY, output, ask_url=lambda: ticket(server.url))

    assert path.read_bytes() == CONTENT
    assert len(server.requests) == 21


def test_a_later_call_goes_on_with_what_an_earlier_one_left(serve: Serve, output: Path, fake_time: FakeTime):
    def dying(request: Request) -> Answer | Hangup:
        return ranged(request, cut_at=1000) if len(server.requests) == 1 else Hangup()

    server = serve(dying)
    impatient = Downloader(patience=Patience(tries=2, clock=fake_time.monotonic, sleep=fake_time.sleep))
    with pytest.raises(ConnectionFailedError):
        impatient.download(KEY, output, ask_url=lambda: ticket(server.url))
    assert not (output / "model_50.pt").exists()

    server.script = ranged
    server.requests.clear()
    path = impatient.download(KEY, output, ask_url=lambda: ticket(server.url))

    assert path.read_bytes() == CONTENT
    assert ranges(server) == ["bytes=1000-"]
    assert names(output) == ["model_50.pt"]


def test_a_store_that_knows_no_ranges_sends_it_all_again(serve: Serve, downloader: Downloader, output: Path):
    cuts = iter([1000, None])
    server = serve(lambda _: Answer(200, CONTENT, cut_at=next(cuts)))

    path = downloader.download(KEY, output, ask_url=lambda: ticket(server.url))

    assert path.read_bytes() == CONTENT


def leave_behind(serve: Serve, output: Path, content: bytes) -> Path:
    """What an interrupted download of CONTENT leaves, but with other bytes in it."""
    server = serve(lambda request: ranged(request, cut_at=10))
    fast = Patience(tries=1)

    def stop() -> ArtifactUrl:
        return ticket(server.url)

    server.script = lambda request: ranged(request, cut_at=10) if len(server.requests) == 1 else Hangup()
    with pytest.raises(ConnectionFailedError):
        Downloader(patience=fast).download(KEY, output, ask_url=stop)
    [part] = output.iterdir()
    part.write_bytes(content)
    return part


@pytest.mark.parametrize("left", [b"x" * 500, b"x" * len(CONTENT), b"x" * (len(CONTENT) + 5)])
def test_a_left_over_with_other_bytes_is_fetched_anew(
    serve: Serve, downloader: Downloader, output: Path, left: bytes
):
    leave_behind(serve, output, left)
    server = serve(ranged)

    path = downloader.download(KEY, output, ask_url=lambda: ticket(server.url))

    assert path.read_bytes() == CONTENT
    assert names(output) == ["model_50.pt"]


@pytest.mark.parametrize("sent", [CONTENT[:-1] + b"!", CONTENT + b"more"])
def test_a_file_that_is_not_what_the_platform_told_is_thrown_away(
    serve: Serve, downloader: Downloader, output: Path, sent: bytes
):
    server = serve(lambda request: ranged(request, sent))

    with pytest.raises(DownloadError, match=r"model_50\.pt: what arrived .*sha256.*thrown away"):
        downloader.download(KEY, output, ask_url=lambda: ticket(server.url))

    assert names(output) == []


def test_a_store_that_has_less_than_told_is_an_error(serve: Serve, downloader: Downloader, output: Path):
    server = serve(lambda request: ranged(request, CONTENT[:100]))

    with pytest.raises((ConnectionFailedError, DownloadError)):
        downloader.download(KEY, output, ask_url=lambda: ticket(server.url))

    assert not (output / "model_50.pt").exists()
    assert len(server.requests) < 30


def test_a_wrong_file_never_replaces_a_right_one(serve: Serve, downloader: Downloader, output: Path):
    output.mkdir(parents=True)
    (output / "model_50.pt").write_bytes(b"mine")
    server = serve(lambda request: ranged(request, b"y" * len(CONTENT)))

    with pytest.raises(DownloadError):
        downloader.download(KEY, output, ask_url=lambda: ticket(server.url))

    assert (output / "model_50.pt").read_bytes() == b"mine"


def test_what_is_already_there_is_not_fetched_again(serve: Serve, downloader: Downloader, output: Path):
    output.mkdir(parents=True)
    (output / "model_50.pt").write_bytes(CONTENT)
    server = serve(ranged)

    downloader.download(KEY, output, ask_url=lambda: ticket(server.url))

    assert server.requests == []


@pytest.mark.parametrize("status", [401, 403, 410])
def test_an_expired_url_is_replaced_and_the_transfer_goes_on(
    serve: Serve, downloader: Downloader, output: Path, status: int
):
    def script(request: Request) -> Answer:
        if "signature=old" in request.path:
            first = len(server.requests) == 1
            return ranged(request, cut_at=1000) if first else Answer(status, b"expired")
        return ranged(request)

    server = serve(script)
    urls = iter([f"{server.url}/b?signature=old", f"{server.url}/b?signature=new"])

    path = downloader.download(KEY, output, ask_url=lambda: ticket(next(urls)))

    assert path.read_bytes() == CONTENT
    assert ranges(server)[-1] == "bytes=1000-"


def test_a_store_that_refuses_every_url_is_an_error_after_one_new_url(
    serve: Serve, downloader: Downloader, output: Path
):
    server = serve(lambda _: Answer(403, b"<Error>AccessDenied</Error>"))
    asked: list[int] = []

    def ask() -> ArtifactUrl:
        asked.append(1)
        return ticket(server.url)

    with pytest.raises(AuthenticationError, match="AccessDenied") as refused:
        downloader.download(KEY, output, ask_url=ask)

    assert len(asked) == 2
    assert "signature" not in str(refused.value)


def test_a_busy_store_is_waited_for(serve: Serve, downloader: Downloader, output: Path, fake_time: FakeTime):
    server = serve(
        lambda request: (
            Answer(503, b"", {"Retry-After": "4"}) if len(server.requests) == 1 else ranged(request)
        )
    )

    downloader.download(KEY, output, ask_url=lambda: ticket(server.url))

    assert 4 <= fake_time.slept[0] <= 4.4


def test_a_store_that_is_busy_for_hours_is_an_error(serve: Serve, downloader: Downloader, output: Path):
    server = serve(lambda _: Answer(503, b"", {"Retry-After": "86400"}))

    with pytest.raises(APIError) as busy:
        downloader.download(KEY, output, ask_url=lambda: ticket(server.url))

    assert busy.value.retry_after_s == 86400


def test_a_redirect_of_the_store_is_followed(serve: Serve, downloader: Downloader, output: Path):
    store = serve(ranged)
    front = serve(lambda _: Answer(307, b"", {"Location": f"{store.url}/real"}))

    path = downloader.download(KEY, output, ask_url=lambda: ticket(front.url))

    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize(
    "name",
    ["a b.mp4", "a+b.mp4", "lr=0.1,seed=2.pt", "100%25.txt", "é机🚀.pt", "a#b?.txt", "...", ".hidden", "-rf"],
)
def test_an_odd_but_legal_name_is_kept(serve: Serve, downloader: Downloader, output: Path, name: str):
    server = serve(ranged)

    path = downloader.download(f"runs/r/{name}", output, ask_url=lambda: ticket(server.url))

    assert path.name == name
    assert path.read_bytes() == CONTENT


def test_a_name_that_the_disk_cannot_take_is_an_error(serve: Serve, downloader: Downloader, output: Path):
    server = serve(ranged)

    with pytest.raises(DownloadError, match="File name too long"):
        downloader.download(f"runs/{'x' * 300}", output, ask_url=lambda: ticket(server.url))


def test_a_file_where_the_directory_should_be_is_an_error(
    serve: Serve, downloader: Downloader, tmp_path: Path
):
    (tmp_path / "out").write_text("a file")
    server = serve(ranged)

    with pytest.raises(DownloadError, match="out"):
        downloader.download(KEY, tmp_path / "out", ask_url=lambda: ticket(server.url))


def test_a_link_in_place_of_the_unfinished_file_is_not_followed(
    serve: Serve, downloader: Downloader, output: Path, tmp_path: Path
):
    part = leave_behind(serve, output, b"")
    part.unlink()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    part.symlink_to(victim)
    server = serve(ranged)

    with pytest.raises(DownloadError):
        downloader.download(KEY, output, ask_url=lambda: ticket(server.url))

    assert victim.read_text() == "precious"


def test_a_hash_from_the_platform_cannot_lead_out_of_the_directory(
    serve: Serve, downloader: Downloader, output: Path, tmp_path: Path
):
    server = serve(ranged)

    with pytest.raises(DownloadError):
        downloader.download(KEY, output, ask_url=lambda: ticket(server.url, sha256="../../../victim"))

    assert names(tmp_path) == ["deep"]
    assert names(output) == []


def test_the_file_has_the_permissions_of_any_new_file(serve: Serve, downloader: Downloader, output: Path):
    server = serve(ranged)
    before = os.umask(0o027)
    try:
        path = downloader.download(KEY, output, ask_url=lambda: ticket(server.url))
    finally:
        os.umask(before)

    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "key", ["..", "a/..", "../a", "a//b", "/a", "a/", "", "a/./b", "a\x00", "a\nb", "a\\b"]
)
def test_a_key_that_could_lead_out_of_the_directory_is_refused(key: str):
    with pytest.raises(DownloadError, match="not safe"):
        file_name(key)


def test_a_transport_of_the_callers_is_used_and_left_open(output: Path):
    class Counting(httpx.MockTransport):
        closed = 0

        def close(self) -> None:
            self.closed += 1

    transport = Counting(lambda _: httpx.Response(200, stream=httpx.ByteStream(CONTENT)))

    path = Downloader(transport=transport).download(
        KEY, output, ask_url=lambda: ticket("https://store.invalid")
    )

    assert path.read_bytes() == CONTENT
    assert transport.closed == 0
