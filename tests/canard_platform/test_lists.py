"""Lists: every item once whatever arrives meanwhile, in a bounded number of queries."""

import base64
import json
from typing import Any

import pytest
from stage import Stage


def pages(stage: Stage, path: str, limit: int, between: Any = lambda: None) -> list[list[dict[str, Any]]]:
    found, cursor = [], None
    while True:
        query = {"limit": limit} if cursor is None else {"limit": limit, "cursor": cursor}
        page = stage.http.get(path, params=query).json()
        found.append(page["items"])
        cursor = page["next_cursor"]
        if cursor is None:
            return found
        between()


def test_runs_come_newest_first_and_each_once_while_others_arrive(stage: Stage):
    """All made within one instant, so that only the id tells them apart."""
    slugs = [stage.submit()["slug"] for _ in range(7)]

    found = pages(stage, "/runs", 3, between=stage.submit)

    assert [len(page) for page in found] == [3, 3, 1]
    assert [run["slug"] for page in found for run in page] == slugs[::-1]


def test_tasks_come_in_order_and_each_once(stage: Stage):
    slug = stage.submit(sweep_configs=[{"parameter": "seed", "values": list(range(25))}])["slug"]

    found = pages(stage, f"/runs/{slug}/tasks", 10)

    assert [task["index"] for page in found for task in page] == list(range(25))


def test_artifacts_come_each_once(stage: Stage):
    slug = stage.submit()["slug"]
    worker = stage.claim()
    for number in range(5):
        worker.upload(f"videos/{number}.mp4", b"x", "video")

    found = pages(stage, f"/runs/{slug}/artifacts", 2)

    assert [item["filename"] for page in found for item in page] == [f"{number}.mp4" for number in range(5)]


def test_runs_are_filtered_by_status(stage: Stage):
    stage.submit()
    done = stage.submit()["slug"]
    stage.claim().commit("preempted")
    stage.http.post(f"/runs/{done}/cancel")

    found = stage.http.get("/runs", params={"status": "cancelled"}).json()["items"]

    assert [run["slug"] for run in found] == [done]


def encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "!!!",
        "é",
        "a" * 201,
        encoded({}),
        encoded([]),
        encoded([-1]),
        encoded([2**70]),
        encoded([True]),
        encoded(["2026-12-01", 1]),
        encoded(["yesterday", 1]),
        encoded([None, None]),
    ],
)
def test_a_bad_cursor_is_refused(stage: Stage, cursor: str):
    slug = stage.submit()["slug"]

    for path in ("/runs", f"/runs/{slug}/tasks", f"/runs/{slug}/artifacts"):
        answer = stage.http.get(path, params={"cursor": cursor})
        assert (answer.status_code, answer.json()["field"]) == (422, "cursor"), path


@pytest.mark.parametrize("limit", ["0", "-1", "1000000000", "many", "1.5"])
def test_a_bad_limit_is_refused(stage: Stage, limit: str):
    answer = stage.http.get("/runs", params={"limit": limit})

    assert (answer.status_code, answer.json()["field"]) == (422, "limit")


def test_the_number_of_queries_does_not_grow_with_the_list(stage: Stage, counted):
    def queries(path: str) -> int:
        with counted(stage.services.database) as statements:
            assert stage.http.get(path, params={"limit": 1000}).status_code == 200
        return len(statements)

    slug = stage.submit()["slug"]
    paths = ("/runs", f"/runs/{slug}", f"/runs/{slug}/tasks", f"/runs/{slug}/metrics")
    few = [queries(path) for path in paths]
    big = stage.submit(sweep_configs=[{"parameter": "seed", "values": list(range(300))}])["slug"]
    for _ in range(20):
        stage.submit()

    many = [queries(path.replace(slug, big)) for path in paths]

    assert many == few
    assert max(many) <= 8


def test_times_have_their_zone(stage: Stage):
    run = stage.submit()

    assert run["created_at"] == "2026-12-01T04:00:00Z"


def test_the_queue_counts_tasks_and_workers(stage: Stage):
    stage.submit(sweep_configs=[{"parameter": "seed", "values": [1, 2, 3, 4]}])
    stage.claim().complete()
    stage.claim().commit("failed", error="x", retryable=False)
    stage.claim()

    assert stage.http.get("/queue").json() == {
        "queued": 1,
        "running": 1,
        "completed": 1,
        "failed": 1,
        "active_workers": 1,
    }
