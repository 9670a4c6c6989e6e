"""Keys, signed URLs and bytes: what goes in comes out, under its own name only."""

import hashlib
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import SECRET, ManualClock, Stage, Worker

from canard.errors import APIError, InvalidRequestError
from canard_platform.artifacts.filesystem import FilesystemStore
from canard_platform.artifacts.keys import checked
from canard_platform.artifacts.signing import Grant, Signer

LEGAL = [
    "a b.mp4",
    "a+b.mp4",
    "lr=0.1,seed=2/m.pt",
    "100%25.txt",
    "100%.txt",
    "é机🚀.pt",
    "a#b?.txt",
    "a&b=c;d.txt",
    "'\"<x>.txt",
    ".hidden",
    "...",
    "x" * 255,
]
ILLEGAL = [
    "../x",
    "x/../y",
    "x//y",
    "/etc/passwd",
    "x/",
    ".",
    "x/./y",
    "a\nb",
    "a\0b",
    "\x7f",
    "x" * 256,
    "机" * 86,
    "back\\slash",
]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def worker(stage: Stage) -> Worker:
    stage.submit()
    return stage.claim()


@pytest.mark.parametrize("path", LEGAL)
def test_a_legal_name_comes_back_byte_for_byte(stage: Stage, worker: Worker, path: str):
    content = path.encode() * 3
    artifact = worker.upload(path, content, "log")
    slug = artifact["s3_key"].split("/")[1]

    listed = stage.http.get(f"/runs/{slug}/artifacts").json()["items"]
    found = stage.http.get(f"/runs/{slug}/artifacts/url", params={"key": artifact["s3_key"]}).json()
    fetched = httpx.get(found["url"], trust_env=False)

    assert artifact["s3_key"].endswith(f"/attempt-1/{path}")
    assert [item["s3_key"] for item in listed] == [artifact["s3_key"]]
    assert artifact["filename"] == path.rpartition("/")[2]
    assert (found["size_bytes"], found["sha256"]) == (len(content), sha256(content))
    assert fetched.content == content


@pytest.mark.parametrize("path", ILLEGAL)
def test_an_illegal_name_is_refused_before_anything_is_sent(worker: Worker, path: str):
    said = {"path": path, "artifact_type": "log", "size_bytes": 0, "sha256": sha256(b"")}

    answer = worker.post("uploads", said)

    assert (answer.status_code, answer.json()["field"]) == (422, "path")


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=60))
def test_no_name_that_passes_leaves_its_folder(path: str):
    try:
        checked(path)
    except InvalidRequestError:
        return
    root = Path("/root/of/artifacts")
    assert (root / path).is_relative_to(root)
    assert ".." not in (root / path).parts
    assert (root / path) != root


def test_an_empty_file_is_a_file(stage: Stage, worker: Worker):
    artifact = worker.upload("empty.bin", b"", "log")

    slug = artifact["s3_key"].split("/")[1]
    url = stage.http.get(f"/runs/{slug}/artifacts/url", params={"key": artifact["s3_key"]}).json()["url"]
    assert httpx.get(url, trust_env=False).content == b""


def test_a_part_of_a_file_can_be_asked_for(stage: Stage, worker: Worker):
    worker.upload("m.pt", b"0123456789", "checkpoint")
    [item] = stage.http.get(f"/runs/{slug_of(stage)}/artifacts").json()["items"]
    url = url_of(stage, item["s3_key"])

    part = httpx.get(url, headers={"Range": "bytes=4-"}, trust_env=False)
    beyond = httpx.get(url, headers={"Range": "bytes=10-"}, trust_env=False)
    head = httpx.head(url, trust_env=False)

    assert (part.status_code, part.content, part.headers["content-range"]) == (206, b"456789", "bytes 4-9/10")
    assert beyond.status_code == 416
    assert (head.status_code, head.headers["content-length"]) == (200, "10")


def slug_of(stage: Stage) -> str:
    slug: str = stage.http.get("/runs").json()["items"][0]["slug"]
    return slug


def url_of(stage: Stage, key: str) -> str:
    url: str = stage.http.get(f"/runs/{slug_of(stage)}/artifacts/url", params={"key": key}).json()["url"]
    return url


def announce(worker: Worker, path: str, content: bytes) -> tuple[dict[str, object], str]:
    said = {
        "path": path,
        "artifact_type": "checkpoint",
        "size_bytes": len(content),
        "sha256": sha256(content),
    }
    return said, worker.post("uploads", said).json()["url"]


@pytest.mark.parametrize("sent", [b"other bytes", b"weight", b"weights and more"])
def test_other_bytes_than_announced_are_refused_and_not_kept(stage: Stage, worker: Worker, sent: bytes):
    said, url = announce(worker, "m.pt", b"weights")

    put = httpx.put(url, content=sent, trust_env=False)
    recorded = worker.post("artifacts", said)

    assert put.status_code == 422
    assert (recorded.status_code, recorded.json()["field"]) == (422, "path")
    assert stage.http.get(f"/runs/{slug_of(stage)}/artifacts").json()["items"] == []
    assert [file for file in (stage.home / "artifacts").rglob("*") if file.is_file()] == []


def test_recording_an_upload_twice_is_recording_it_once(stage: Stage, worker: Worker):
    said, url = announce(worker, "m.pt", b"weights")
    httpx.put(url, content=b"weights", trust_env=False).raise_for_status()

    answers = [worker.post("artifacts", said) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert len(stage.http.get(f"/runs/{slug_of(stage)}/artifacts").json()["items"]) == 1


def test_a_file_that_grew_replaces_itself_when_it_is_recorded(stage: Stage, worker: Worker):
    artifact = worker.upload("tensorboard/events", b"one", "tensorboard")
    said, url = announce(worker, "tensorboard/events", b"one two")
    httpx.put(url, content=b"one two", trust_env=False).raise_for_status()
    before = httpx.get(url_of(stage, artifact["s3_key"]), trust_env=False).content

    worker.post("artifacts", said)

    after = httpx.get(url_of(stage, artifact["s3_key"]), trust_env=False).content
    assert (before, after) == (b"one", b"one two")


def test_an_upload_url_that_is_used_after_the_end_changes_nothing(stage: Stage, worker: Worker):
    _, old_url = announce(worker, "checkpoints/model_10.pt", b"stale")
    worker.complete(iteration=10)

    httpx.put(old_url, content=b"stale", trust_env=False)

    [item] = stage.http.get(f"/runs/{slug_of(stage)}/artifacts").json()["items"]
    assert httpx.get(url_of(stage, item["s3_key"]), trust_env=False).content == b"weights"


def test_a_name_cannot_be_a_file_and_a_folder(worker: Worker):
    worker.upload("logs", b"x", "log")
    said, url = announce(worker, "logs/a", b"y")
    httpx.put(url, content=b"y", trust_env=False).raise_for_status()

    answer = worker.post("artifacts", said)

    assert answer.status_code == 409


def test_a_url_is_for_its_method_until_it_expires_and_cannot_be_changed(stage: Stage, worker: Worker):
    artifact = worker.upload("m.pt", b"weights", "checkpoint")
    _, put_url = announce(worker, "n.pt", b"")
    get_url = url_of(stage, artifact["s3_key"])
    forged = f"{get_url[:-4]}AAAA"

    codes = [
        httpx.put(get_url, content=b"x", trust_env=False).status_code,
        httpx.get(put_url, trust_env=False).status_code,
        httpx.get(forged, trust_env=False).status_code,
        httpx.get(get_url, trust_env=False).status_code,
    ]
    stage.clock.advance(3601)
    late = httpx.get(get_url, trust_env=False)

    assert codes == [403, 403, 401, 200]
    assert (late.status_code, late.json()["code"]) == (403, "forbidden")


def test_a_signature_for_one_purpose_is_worth_nothing_for_another():
    grant = Grant(method="GET", key="k", expires=10**12)
    token = Signer(SECRET, purpose="sessions").sign(grant)

    with pytest.raises(APIError):
        Signer(SECRET, purpose="blobs").read(token, method="GET", now=ManualClock().now())


def test_a_one_task_run_has_its_checkpoints_under_the_documented_key(stage: Stage, worker: Worker):
    worker.upload("checkpoints/model_5.pt", b"old", "checkpoint", iteration=5)
    worker.commit("preempted")
    stage.claim().upload("checkpoints/model_5.pt", b"new", "checkpoint", iteration=5)

    url = url_of(stage, f"runs/{slug_of(stage)}/checkpoints/model_5.pt")

    assert httpx.get(url, trust_env=False).content == b"new"


def test_a_missing_artifact_says_what_there_is(stage: Stage, worker: Worker):
    worker.upload("checkpoints/model_5.pt", b"x", "checkpoint", iteration=5)

    answer = stage.http.get(f"/runs/{slug_of(stage)}/artifacts/url", params={"key": "runs/x/model_6.pt"})

    assert (answer.status_code, answer.json()["code"]) == (404, "artifact_not_found")
    assert "model_5.pt" in answer.json()["hint"]


def test_artifacts_are_filtered_by_type_and_task(stage: Stage, worker: Worker):
    worker.upload("m.pt", b"x", "checkpoint")
    worker.upload("v.mp4", b"x", "video")
    path = f"/runs/{slug_of(stage)}/artifacts"

    videos = stage.http.get(path, params={"artifact_type": "video"}).json()["items"]
    others = stage.http.get(path, params={"task_id": 999}).json()["items"]

    assert [item["filename"] for item in videos] == ["v.mp4"]
    assert others == []


def test_uploads_that_nobody_recorded_are_swept_when_they_are_old(tmp_path: Path):
    clock = ManualClock()
    signer = Signer(SECRET, purpose="blobs")
    store = FilesystemStore(tmp_path, signer=signer, base_url="http://x", url_ttl_s=60, clock=clock)
    url = store.upload_url("a", size_bytes=1, sha256=sha256(b"x")).url
    upload = store.receive(store.read_grant(url.rpartition("/")[2], method="PUT"))
    upload.write(b"x")
    upload.finish()
    upload.close()
    [waiting] = (tmp_path / ".incoming").iterdir()
    written_at = waiting.stat().st_mtime

    kept = store.sweep(older_than=clock.now().fromtimestamp(written_at - 1).astimezone())
    swept = store.sweep(older_than=clock.now().fromtimestamp(written_at + 1).astimezone())

    assert (kept, swept) == (0, 1)
    assert list((tmp_path / ".incoming").iterdir()) == []
