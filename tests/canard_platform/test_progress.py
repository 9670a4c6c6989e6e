"""From the trainer's events to current numbers, curves and aggregated metrics."""

from typing import Any

import pytest
from stage import Stage, Worker, iteration, summary


def metrics(stage: Stage, slug: str) -> dict[str, Any]:
    return stage.http.get(f"/runs/{slug}/metrics").json()


def history(stage: Stage, slug: str) -> list[tuple[int, float | None]]:
    points = metrics(stage, slug)["training"]["reward_history"]
    return [(point["iteration"], point["mean_reward"]) for point in points]


@pytest.fixture
def slug(stage: Stage) -> str:
    return stage.submit()["slug"]


@pytest.fixture
def worker(stage: Stage, slug: str) -> Worker:
    return stage.claim()


def test_current_numbers_follow_the_events(stage: Stage, slug: str, worker: Worker):
    worker.events(0, iteration(1, 1.0), iteration(2, 7.0), iteration(3, 4.0))

    [task] = stage.tasks(slug)
    assert task["progress_percent"] == 30
    assert task["training"]["current_iteration"] == 3
    assert task["training"]["first_mean_reward"] == 1.0
    assert task["training"]["mean_reward"] == 4.0
    assert task["training"]["best_mean_reward"] == 7.0
    assert stage.run(slug)["progress_fraction"] == pytest.approx(0.3)


def test_a_batch_sent_again_changes_nothing(stage: Stage, slug: str, worker: Worker):
    batch = (iteration(1, 1.0), iteration(2, 2.0))
    assert worker.events(0, *batch).json() == {"next_seq": 2}

    again = worker.events(0, *batch)
    overlapping = worker.events(1, iteration(2, 99.0), iteration(3, 3.0))

    assert (again.json(), overlapping.json()) == ({"next_seq": 2}, {"next_seq": 3})
    assert history(stage, slug) == [(1, 1.0), (2, 2.0), (3, 3.0)]


def test_a_batch_after_a_gap_is_not_taken_and_told_where_to_go_on(stage: Stage, slug: str, worker: Worker):
    answer = worker.events(5, iteration(6, 6.0))

    assert answer.json() == {"next_seq": 0}
    assert history(stage, slug) == []


def test_after_a_resume_the_curve_has_one_value_for_each_iteration(stage: Stage, slug: str, worker: Worker):
    worker.events(0, *(iteration(number, float(number)) for number in range(1, 6)))
    worker.commit("preempted")
    second = stage.claim()

    second.events(0, {"event": "started", "iteration": 3, "max_iterations": 10}, iteration(4, 44.0))

    assert history(stage, slug) == [(1, 1.0), (2, 2.0), (3, 3.0), (4, 44.0)]
    [task] = stage.tasks(slug)
    assert task["training"]["first_mean_reward"] == 1.0


def test_an_attempt_that_starts_over_starts_the_curve_over(stage: Stage, slug: str, worker: Worker):
    worker.events(0, iteration(1, 50.0), iteration(2, 60.0))
    worker.commit("preempted")

    stage.claim().events(0, {"event": "started", "iteration": 0, "max_iterations": 10}, iteration(1, 2.0))

    assert history(stage, slug) == [(1, 2.0)]
    training = stage.tasks(slug)[0]["training"]
    assert (training["first_mean_reward"], training["best_mean_reward"]) == (2.0, 2.0)


def test_numbers_that_json_cannot_say_are_null_and_marked(stage: Stage, slug: str, worker: Worker):
    worker.events(0, iteration(1, None, nonfinite=["mean_reward"]))

    [point] = metrics(stage, slug)["training"]["reward_history"]
    assert point["mean_reward"] is None
    assert point["nonfinite"] == ["mean_reward"]
    assert stage.tasks(slug)[0]["training"]["mean_reward"] is None


def test_a_bare_nan_from_a_runner_becomes_null_and_is_marked(stage: Stage, slug: str, worker: Worker):
    text = (
        '{"first_seq": 0, "events": [{"event": "iteration", "iteration": 1, "mean_reward": NaN,'
        ' "losses": {"value": Infinity}}]}'
    )
    token = {"Authorization": f"Bearer {worker.claim.token}", "Content-Type": "application/json"}

    answer = stage.http.post(f"/attempts/{worker.claim.attempt_id}/events", content=text, headers=token)

    assert answer.status_code == 200
    [point] = metrics(stage, slug)["training"]["reward_history"]
    assert point["nonfinite"] == ["mean_reward"]


@pytest.mark.parametrize(
    "event",
    [
        {"event": "iteration"},
        {"event": "iteration", "iteration": "soon"},
        {"event": "iteration", "iteration": 10**30},
        {"event": "iteration", "iteration": 1, "mean_reward": "high"},
        {"event": "started", "iteration": -1},
        {"event": None},
        {},
    ],
)
def test_an_event_that_cannot_be_read_is_passed_over(stage: Stage, slug: str, worker: Worker, event):
    answer = worker.events(0, event, iteration(2, 5.0))

    assert answer.json() == {"next_seq": 2}
    assert history(stage, slug) == [(2, 5.0)]


def test_a_long_history_is_thinned_and_keeps_its_end(open_stage):
    stage = open_stage(settings={"history_points": 10})
    slug = stage.submit()["slug"]
    worker = stage.claim()
    worker.events(0, *(iteration(number, float(number)) for number in range(1, 98)))

    kept = [number for number, _ in history(stage, slug)]

    assert kept == [*range(10, 98, 10), 97]


def test_a_sweep_adds_up(stage: Stage):
    slug = stage.submit(sweep_configs=[{"parameter": "seed", "values": [1, 2, 3]}])["slug"]
    first, second = stage.claim(), stage.claim()
    first.events(0, iteration(5, 10.0))
    second.events(0, iteration(1, 2.0), iteration(2, 4.0))

    found = metrics(stage, slug)

    assert (found["mode"], found["total_tasks"], found["completed_tasks"]) == ("training", 3, 0)
    training = found["training"]
    assert (training["current_iteration"], training["max_iterations"]) == (5, 10)
    assert training["progress_percent"] == pytest.approx(100 * (0.5 + 0.2) / 3)
    assert (training["mean_reward"], training["best_mean_reward"]) == (7.0, 10.0)
    assert [point["task_id"] for point in training["reward_history"]] == sorted(
        point["task_id"] for point in training["reward_history"]
    )


def test_physics_results_add_up(stage: Stage):
    slug = stage.submit(
        mode="physics",
        training_config=None,
        steps=100,
        sweep_configs=[{"parameter": "pole_length", "values": [0.5, 1.0, 2.0]}],
    )["slug"]
    results = [
        {"avg_fps": 100.0, "total_reward": 10.0, "collision_count": 1, "success": True},
        {"avg_fps": 300.0, "total_reward": float("nan"), "collision_count": 2, "success": False},
    ]
    for result in results:
        worker = stage.claim()
        assert worker.start()["mode"] == "physics"
        worker.upload("summary.json", b"{}", "summary")
        said = {"status": "completed", "mode": "physics", "task_metrics": finite(result)}
        assert worker.commit("completed", summary=said).status_code == 204
    stage.claim().commit("failed", error="x", retryable=False)

    found = metrics(stage, slug)

    assert found["training"] is None
    assert found["avg_physics_fps"] == 200.0
    assert found["avg_episode_reward"] == 10.0
    assert found["total_collisions"] == 3
    assert found["success_rate"] == pytest.approx(100 / 3)
    assert [task["s3_key"] and task["s3_key"].rpartition("/")[2] for task in stage.tasks(slug)] == [
        "summary.json",
        "summary.json",
        None,
    ]


def finite(result: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value != value else value for name, value in result.items()}  # noqa: PLR0124


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"mean_reward": "high"}, "summary.mean_reward"),
        ({"iteration": True}, "summary.iteration"),
        ({"task_metrics": {"collision_count": "many"}}, "summary.task_metrics.collision_count"),
        ({"task_metrics": [1]}, "summary.task_metrics"),
        ({"best_checkpoint": 7}, "summary.best_checkpoint"),
    ],
)
def test_a_summary_that_cannot_be_read_is_refused_by_field(worker: Worker, bad, field: str):
    worker.upload("checkpoints/model_10.pt", b"x", "checkpoint", iteration=10)

    answer = worker.commit("completed", summary=summary(10, **bad))

    assert (answer.status_code, answer.json()["field"]) == (422, field)
