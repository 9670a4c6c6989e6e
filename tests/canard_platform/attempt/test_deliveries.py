"""Events and files on their way to a real service."""

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from stage import Stage, Worker, iteration, summary

from canard.wire import AttemptReport
from canard_platform.attempt.api import AttemptApi
from canard_platform.attempt.contents import content_of, end_of
from canard_platform.attempt.delivery import deliver
from canard_platform.attempt.events import EventSender
from canard_platform.attempt.folders import Folders
from canard_platform.attempt.results import Results
from canard_platform.attempt.stop import StopOrder
from canard_platform.attempt.tail import EventTail
from canard_platform.attempt.uploads import Upload, Uploader


@pytest.fixture
def slug(stage: Stage) -> str:
    return stage.submit()["slug"]


@pytest.fixture
def worker(stage: Stage, slug: str) -> Worker:
    worker = stage.claim()
    worker.start()
    return worker


@pytest.fixture
def api(stage: Stage, worker: Worker) -> Iterator[AttemptApi]:
    api = AttemptApi(api_url=stage.url, attempt_id=worker.claim.attempt_id, token=worker.claim.token)
    yield api
    api.close()


@pytest.fixture
def stop() -> StopOrder:
    return StopOrder()


@pytest.fixture
def uploader(api: AttemptApi, stop: StopOrder) -> Uploader:
    return Uploader(api, stop)


def artifacts(stage: Stage, slug: str) -> dict[str, dict]:
    items = stage.http.get(f"/runs/{slug}/artifacts").json()["items"]
    return {item["s3_key"].partition("/attempt-1/")[2]: item for item in items}


def history(stage: Stage, slug: str) -> list[int]:
    points = stage.http.get(f"/runs/{slug}/metrics").json()["training"]["reward_history"]
    return [point["iteration"] for point in points]


def test_more_events_than_a_batch_holds_all_arrive(stage, slug, api, stop, tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(iteration(n, 1.0)) + "\n" for n in range(1, 1201)))
    sender = EventSender(api, EventTail(path), stop)

    sender.start()
    sender.finish()

    assert history(stage, slug) == list(range(1, 1201))


def test_an_event_that_cannot_be_sent_takes_no_other_along(stage, slug, api, stop, tmp_path):
    events = [iteration(n, 1.0) for n in range(1, 8)]
    events[3]["note"] = "half a pair: \ud800"
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    sender = EventSender(api, EventTail(path), stop)
    sender.warn("a warning of the runner")

    sender.start()
    sender.finish()

    assert history(stage, slug) == [1, 2, 3, 5, 6, 7]


def test_the_sender_ends_when_the_lease_is_lost(worker, api, stop, tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps(iteration(1, 1.0)) + "\n")
    worker.commit("preempted")
    sender = EventSender(api, EventTail(path), stop)

    sender.start()
    sender.finish()

    assert stop.lost.is_set()


def test_a_file_that_grows_while_it_is_sent_arrives_as_it_was(stage, slug, uploader, tmp_path):
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(b"begun")

    def looked_at_then_written_to():
        content = content_of(path)
        with path.open("ab") as file:
            file.write(b" and gone on")
        return content

    uploader.add(Upload(path="tensorboard/a", artifact_type="tensorboard", content=looked_at_then_written_to))
    uploader.start()

    assert uploader.finish(within_s=60)
    assert uploader.failures == {}
    assert artifacts(stage, slug)["tensorboard/a"]["size_bytes"] == 5


def test_what_the_platform_refuses_and_what_is_gone_hold_nothing_up(stage, slug, uploader, tmp_path):
    path = tmp_path / "model_1.pt"
    path.write_bytes(b"weights")
    for name, file in (("a/../b", path), ("gone.pt", tmp_path / "gone"), ("checkpoints/model_1.pt", path)):
        uploader.add(Upload(path=name, artifact_type="checkpoint", content=partial(content_of, file)))
    uploader.start()

    assert uploader.finish(within_s=60)
    assert set(uploader.failures) == {"a/../b", "gone.pt"}
    assert set(artifacts(stage, slug)) == {"checkpoints/model_1.pt"}


def test_the_newest_checkpoint_goes_first_and_logs_last(stage, slug, uploader, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x")
    content = partial(content_of, path)
    uploader.add(Upload(path="logs/trainer.log", artifact_type="log", content=content))
    for number in (1, 2, 10):
        uploader.add(
            Upload(path=f"model_{number}.pt", artifact_type="checkpoint", content=content, iteration=number)
        )
    uploader.start()

    assert uploader.finish(within_s=60)
    assert list(artifacts(stage, slug)) == ["model_10.pt", "model_2.pt", "model_1.pt", "logs/trainer.log"]


def test_the_end_of_a_long_log_says_what_is_left_out(tmp_path):
    path = tmp_path / "trainer.log"
    path.write_bytes(b"0123456789")

    assert b"".join(end_of(path, most_bytes=4).chunks()) == b"[6 bytes before this are left out]\n6789"
    assert b"".join(end_of(path, most_bytes=10).chunks()) == b"0123456789"


def test_logs_are_sent_while_training_when_they_have_grown(stage, slug, uploader, tmp_path):
    folders = Folders(tmp_path)
    folders.output.mkdir()
    folders.trainer_log.write_text("one\n")
    now = [0.0]
    results = Results(folders, uploader, clock=lambda: now[0])
    uploader.start()

    results.follow()
    now[0] = 31.0
    results.follow()

    assert uploader.finish(within_s=60)
    assert artifacts(stage, slug)["logs/trainer.log"]["size_bytes"] == 4


def test_a_checkpoint_counts_only_when_what_led_to_it_is_told(
    stage, slug, api, stop, uploader, tmp_path, monkeypatch
):
    """A runner that is killed in between would leave a gap: the next attempt begins after the checkpoint."""
    folders = Folders(tmp_path)
    (folders.output / "checkpoints").mkdir(parents=True)
    (folders.output / "checkpoints/model_2.pt").write_bytes(b"weights")
    checkpoint = {"event": "checkpoint", "iteration": 2, "path": "checkpoints/model_2.pt"}
    events = [iteration(1, 1.0), iteration(2, 1.0), checkpoint]
    folders.events.write_text("".join(json.dumps(event) + "\n" for event in events))
    send, record, told = api.send_events, api.record, []

    def slowly(batch):
        time.sleep(1.0)
        return send(batch)

    def recorded(said):
        told.append(history(stage, slug))
        record(said)

    monkeypatch.setattr(api, "send_events", slowly)
    monkeypatch.setattr(api, "record", recorded)
    sender = EventSender(api, EventTail(folders.events), stop)
    sender.start()
    uploader.start()

    Results(folders, uploader, wait_until_told=sender.wait_until_sent).follow()

    assert uploader.finish(within_s=60)
    sender.finish()
    assert told == [[1, 2]]


def test_an_event_cannot_name_a_file_outside_the_output(stage, slug, uploader, tmp_path):
    folders = Folders(tmp_path)
    folders.output.mkdir()
    (tmp_path / "secret").write_text("s")
    folders.events.write_text(
        json.dumps({"event": "checkpoint", "iteration": 1, "path": "../secret"})
        + "\n"
        + json.dumps({"event": "video", "path": str(tmp_path / "secret")})
        + "\n"
    )
    uploader.start()

    Results(folders, uploader).follow()

    assert uploader.finish(within_s=60)
    assert artifacts(stage, slug) == {}


def test_a_completed_report_without_its_result_becomes_a_failure(stage, slug, api, stop, tmp_path):
    report = AttemptReport(outcome="completed", exit_code=0, summary=summary(10))

    taken = deliver(report, api, stop, record=tmp_path / "report.json", longest_wait_s=1)

    assert taken
    [task] = stage.tasks(slug)
    assert task["status"] == "queued"
    kept = json.loads(Path(tmp_path / "report.json").read_text())
    assert kept["outcome"] == "failed"
    assert "was not received" in kept["error"]
