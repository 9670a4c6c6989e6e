"""A runner from its launch file to its report, with the real service and the real trainer."""

import json
import signal

from attempts import eventually
from repositories import hover_project


def test_an_attempt_trains_delivers_everything_and_is_committed(fast_stage, start):
    runner = start(fast_stage, max_iterations=3)

    assert runner.wait() == 0, runner.log
    task = runner.task
    assert task["status"] == "completed"
    assert task["training"]["current_iteration"] == 3
    assert (
        f"/attempt-1/{json.loads(runner.artifact('attempt-1/summary.json'))['best_checkpoint']}"
        in task["s3_key"]
    )
    files = {path.rpartition("/")[2] for path in runner.paths}
    assert {"training.json", "model_3.pt", "policy.pt", "policy.onnx", "summary.json", "trainer.log"} <= files
    assert any("tensorboard/" in path for path in runner.paths)
    assert json.loads(runner.artifact("attempt-1/training.json"))["max_iterations"] == 3
    points = fast_stage.http.get(f"/runs/{runner.slug}/metrics").json()["training"]["reward_history"]
    assert [point["iteration"] for point in points] == [1, 2, 3]


def test_a_repository_is_installed_imported_and_pinned(fast_stage, start, repository):
    commit = repository.commit(hover_project())

    runner = start(fast_stage, task_name="Hover-v0", code_url=repository.url)

    assert runner.wait() == 0, runner.log
    assert runner.task["status"] == "completed"
    assert runner.task["code_commit"] == commit


def test_a_physics_task_is_stepped_and_its_summary_is_the_result(fast_stage, start):
    slug = fast_stage.submit(mode="physics", training_config=None, steps=20)["slug"]

    runner = start(fast_stage, slug=slug)

    assert runner.wait() == 0, runner.log
    assert runner.task["status"] == "completed"
    assert runner.task["s3_key"].endswith("/summary.json")
    assert runner.task["metrics"]["avg_fps"] > 0


def test_a_notice_leads_to_a_checkpoint_and_the_next_attempt_goes_on_from_it(fast_stage, start):
    first = start(fast_stage, max_iterations=100_000)
    eventually(lambda: first.task["training"]["current_iteration"] >= 2)

    first.process.send_signal(signal.SIGTERM)

    assert first.wait() == 0, first.log
    assert first.task["status"] == "queued"
    reached = first.task["training"]["current_iteration"]
    assert f"attempt-1/checkpoints/model_{reached}.pt" in first.paths
    second = start(fast_stage, slug=first.slug)
    eventually(lambda: second.task["training"]["current_iteration"] > reached)
    second.process.send_signal(signal.SIGTERM)
    assert second.wait() == 0, second.log
    points = fast_stage.http.get(f"/runs/{first.slug}/metrics").json()["training"]["reward_history"]
    iterations = [point["iteration"] for point in points]
    assert iterations == list(range(1, iterations[-1] + 1))
    assert iterations[-1] > reached


def test_a_task_that_was_finished_but_not_committed_is_only_committed(fast_stage, start):
    first = start(fast_stage, max_iterations=2)
    eventually(lambda: "attempt-1/checkpoints/model_2.pt" in first.paths)
    first.process.kill()
    first.process.wait()
    first.kill()
    answer = first.worker.commit("failed", error="the machine was lost")
    if answer.status_code == 409:  # it was faster than the kill
        assert first.task["status"] == "completed"
        return
    fast_stage.clock.advance(60)

    second = start(fast_stage, slug=first.slug)

    assert second.wait() == 0, second.log
    assert second.task["status"] == "completed", second.task["error_message"]
    assert second.task["training"]["current_iteration"] == 2


def test_a_wrong_task_name_fails_once_with_the_trainers_own_words(fast_stage, start):
    runner = start(fast_stage, task_name="Canard-Cartpol-v0")

    assert runner.wait() == 0, runner.log
    assert runner.task["status"] == "failed"
    first_line = runner.task["error_message"].splitlines()[0]
    assert "Canard-Cartpol-v0" in first_line
    assert "Canard-Cartpole-v0" in first_line
