"""Live views: the run as it is, then what changed, then the end."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from stage import Stage, iteration


@pytest.fixture
def stage(open_stage) -> Stage:
    return open_stage(settings={"live_interval_s": 0.02})


def runs(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line.startswith("data:"):
            yield json.loads(line.removeprefix("data:"))


@pytest.mark.timeout(60)
def test_changes_are_sent_until_the_run_has_ended(stage: Stage):
    slug = stage.submit()["slug"]

    with stage.http.stream("GET", f"/runs/{slug}/events") as stream:
        seen = runs(stream.iter_lines())
        first = next(seen)
        worker = stage.claim()
        second = next(seen)
        worker.events(0, iteration(5, 1.0))
        third = next(seen)
        worker.complete()
        rest = list(seen)

    assert stream.headers["content-type"].startswith("text/event-stream")
    assert [first["status"], second["status"], rest[-1]["status"]] == ["queued", "running", "completed"]
    assert third["progress_fraction"] == 0.5


@pytest.mark.timeout(60)
def test_a_stopping_service_ends_its_live_views(stage: Stage):
    slug = stage.submit()["slug"]

    with stage.http.stream("GET", f"/runs/{slug}/events") as stream:
        seen = runs(stream.iter_lines())
        next(seen)
        stage.services.stopping.set()
        assert list(seen) == []


def test_a_run_that_is_not_there_is_an_error_and_not_an_empty_stream(stage: Stage):
    answer = stage.http.get("/runs/run_zzzzzzzz/events")

    assert (answer.status_code, answer.json()["code"]) == (404, "run_not_found")
