"""Retries, budgets, cancels and the words that a person reads, told through the API."""

import pytest
from stage import Stage, iteration, summary

from canard_platform.queue.endings import reap
from canard_platform.queue.states import RULES, TERMINAL, Move, State, run_state


def reap_now(stage: Stage) -> None:
    with stage.services.database.write() as session:
        reap(session, settings=stage.services.settings, now=stage.clock.now())


def test_completed_is_final_and_failed_is_left_by_retry_only():
    for state in TERMINAL:
        ways_out = {move for move, rule in RULES.items() if state in rule.sources}
        assert ways_out == (set() if state is State.COMPLETED else {Move.RETRY})


@pytest.mark.parametrize(
    ("counts", "state"),
    [
        ({State.QUEUED: 2}, State.QUEUED),
        ({State.QUEUED: 1, State.COMPLETED: 1}, State.RUNNING),
        ({State.RUNNING: 1, State.FAILED: 1}, State.RUNNING),
        ({State.COMPLETED: 2}, State.COMPLETED),
        ({State.COMPLETED: 1, State.FAILED: 1, State.CANCELLED: 1}, State.FAILED),
        ({State.COMPLETED: 1, State.CANCELLED: 1}, State.CANCELLED),
    ],
)
def test_a_run_is_what_its_tasks_are(counts, state):
    assert run_state(counts) == state


def test_a_task_that_completes_shows_its_result(stage: Stage):
    run = stage.submit()
    worker = stage.claim()
    worker.start()

    worker.complete(iteration=10)

    [task] = stage.tasks(run["slug"])
    assert task["status"] == "completed"
    assert task["progress_percent"] == 100
    assert task["s3_key"] == f"runs/{run['slug']}/tasks/{task['id']}/attempt-1/checkpoints/model_10.pt"
    assert task["metrics"]["total_reward"] == 9.0
    assert (task["training"]["first_mean_reward"], task["training"]["best_mean_reward"]) == (1.0, 10.0)
    assert stage.run(run["slug"])["status"] == "completed"
    assert stage.run(run["slug"])["progress_fraction"] == 1


def test_errors_are_retried_up_to_the_budget_with_growing_waits(stage: Stage):
    run = stage.submit()
    waits = []
    for number in (1, 2, 3):
        worker = stage.claim()
        assert worker.claim.number == number
        worker.commit("failed", exit_code=1, error=f"crash {number}\nthe tail of its log")
        while number < 3 and not waits_over(stage):
            stage.clock.advance(0.5)
            waits.append(number)

    [task] = stage.tasks(run["slug"])
    assert (task["status"], task["attempt"]) == ("failed", 3)
    assert task["error_message"] == "crash 3\nthe tail of its log"
    assert waits.count(2) == 2 * waits.count(1) == 4
    assert stage.run(run["slug"])["failed_tasks"] == 1


def waits_over(stage: Stage) -> bool:
    from sqlalchemy import select

    from canard_platform.store.tables import Task

    with stage.services.database.read() as session:
        return session.scalar(select(Task.available_at)) <= stage.clock.now()


def test_what_another_attempt_cannot_help_fails_at_once(stage: Stage):
    run = stage.submit()

    stage.claim().commit("failed", exit_code=2, error="num_envs: no", retryable=False)

    [task] = stage.tasks(run["slug"])
    assert (task["status"], task["error_message"]) == ("failed", "num_envs: no")


def test_preemptions_do_not_use_up_the_budget_of_errors(open_stage):
    stage = open_stage(settings={"max_attempts": 2, "retry_delay_s": 0})
    run = stage.submit()

    for _ in range(5):
        stage.claim().commit("preempted", exit_code=75)
    stage.claim().commit("failed", error="once")
    worker = stage.claim()

    assert worker.claim.number == 7
    worker.complete()
    assert stage.run(run["slug"])["status"] == "completed"


def test_a_task_that_is_preempted_for_ever_ends(open_stage):
    stage = open_stage(settings={"max_preemptions": 2})
    run = stage.submit()

    for _ in range(3):
        stage.claim().commit("preempted")

    [task] = stage.tasks(run["slug"])
    assert task["status"] == "failed"
    assert "preempted 3 times" in task["error_message"]


def test_an_attempt_that_goes_silent_loses_its_task_after_the_lease(stage: Stage):
    run = stage.submit()
    silent = stage.claim()
    silent.start()
    stage.clock.advance(59)
    reap_now(stage)
    assert stage.run(run["slug"])["status"] == "running"

    stage.clock.advance(2)
    reap_now(stage)

    assert stage.run(run["slug"])["status"] == "queued"
    stage.clock.advance(5)
    assert stage.claim().claim.number == 2


def test_a_heartbeat_keeps_the_lease(stage: Stage):
    run = stage.submit()
    worker = stage.claim()
    for _ in range(5):
        stage.clock.advance(50)
        assert worker.heartbeat().json() == {"lease_s": 60.0, "stop": None}
        reap_now(stage)

    assert stage.run(run["slug"])["status"] == "running"


def test_a_service_that_stops_says_so_with_each_heartbeat(stage: Stage):
    stage.submit()
    worker = stage.claim()
    stage.services.stopping.set()

    assert worker.heartbeat().json()["stop"] == "preempt"


def test_a_stale_attempt_is_refused_everywhere_and_changes_nothing(stage: Stage):
    run = stage.submit()
    stale = stage.claim()
    stale.start()
    stage.clock.advance(61)
    reap_now(stage)
    stage.clock.advance(5)
    owner = stage.claim()
    owner.start()
    said = {"path": "m.pt", "artifact_type": "checkpoint", "size_bytes": 0, "sha256": "0" * 64}

    answers = [
        stale.post("start"),
        stale.heartbeat(),
        stale.events(0, iteration(1, 5.0)),
        stale.post("uploads", said),
        stale.post("artifacts", said),
        stale.commit("failed", error="stale"),
        stale.commit("completed", summary=summary(10)),
    ]

    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(409, "lease_lost")] * 7
    [task] = stage.tasks(run["slug"])
    assert (task["status"], task["attempt"], task["training"]["current_iteration"]) == ("running", 2, 0)
    owner.complete()
    assert stage.run(run["slug"])["status"] == "completed"


def test_a_late_report_counts_while_nobody_else_took_over(stage: Stage):
    """The service was away for longer than the lease; the work is not done twice (C46)."""
    run = stage.submit()
    worker = stage.claim()
    worker.start()
    stage.clock.advance(3600)

    worker.complete()
    reap_now(stage)

    assert stage.run(run["slug"])["status"] == "completed"


def test_the_same_report_again_is_accepted_and_another_is_not(stage: Stage):
    stage.submit()
    worker = stage.claim()

    answers = [worker.commit("failed", error="x"), worker.commit("failed", error="x")]
    other = worker.commit("failed", error="y")

    assert [answer.status_code for answer in answers] == [204, 204]
    assert other.status_code == 409


def test_a_result_that_was_not_received_is_refused(stage: Stage):
    run = stage.submit()
    worker = stage.claim()

    nothing = worker.commit("completed")
    no_file = worker.commit("completed", summary=summary(10))

    assert (nothing.status_code, nothing.json()["field"]) == (422, "summary")
    assert (no_file.status_code, no_file.json()["field"]) == (422, "summary.best_checkpoint")
    assert "model_10.pt" in no_file.json()["detail"]
    assert stage.run(run["slug"])["status"] == "running"


def test_the_best_checkpoint_may_be_an_earlier_attempts(stage: Stage):
    run = stage.submit()
    first = stage.claim()
    first.upload("checkpoints/model_4.pt", b"best", "checkpoint", iteration=4)
    first.commit("preempted")
    second = stage.claim()
    second.upload("checkpoints/model_10.pt", b"last", "checkpoint", iteration=10)

    second.commit("completed", summary=summary(10, best_checkpoint="checkpoints/model_4.pt"))

    [task] = stage.tasks(run["slug"])
    assert task["s3_key"].endswith("attempt-1/checkpoints/model_4.pt")


def test_the_next_attempt_goes_on_from_the_newest_checkpoint_by_number_not_by_name(stage: Stage):
    stage.submit()
    first = stage.claim()
    for number in (1000, 999, 5):
        first.upload(f"checkpoints/model_{number}.pt", b"x", "checkpoint", iteration=number)
    first.commit("preempted")

    resume = stage.claim().start()["resume"]

    assert [found["iteration"] for found in resume] == [1000, 999, 5]
    assert stage.http.get(resume[0]["url"]).content == b"x"


def test_a_queued_task_is_cancelled_at_once(stage: Stage):
    run = stage.submit(sweep_configs=[{"parameter": "seed", "values": [1, 2]}])
    first, second = stage.tasks(run["slug"])

    answer = stage.http.post(f"/runs/{run['slug']}/tasks/{first['id']}/cancel")

    assert answer.json()["status"] == "cancelled"
    assert stage.claim().claim.task_id == second["id"]


def test_a_running_task_is_cancelled_when_its_attempt_has_stopped(stage: Stage):
    run = stage.submit()
    worker = stage.claim()

    cancelled = stage.http.post(f"/runs/{run['slug']}/cancel")

    assert cancelled.json()["status"] == "running"
    assert worker.heartbeat().json()["stop"] == "cancel"
    worker.commit("cancelled")
    assert stage.run(run["slug"])["status"] == "cancelled"


@pytest.mark.parametrize("outcome", ["failed", "preempted"])
def test_a_cancelled_task_does_not_come_back(stage: Stage, outcome: str):
    run = stage.submit()
    worker = stage.claim()
    stage.http.post(f"/runs/{run['slug']}/cancel")

    worker.commit(outcome)

    assert stage.run(run["slug"])["status"] == "cancelled"


def test_a_result_that_was_ready_before_the_cancel_counts(stage: Stage):
    run = stage.submit()
    worker = stage.claim()
    stage.http.post(f"/runs/{run['slug']}/cancel")

    worker.complete()

    assert stage.run(run["slug"])["status"] == "completed"


def test_cancelling_twice_is_cancelling_once_and_what_ended_otherwise_cannot_be(stage: Stage):
    run = stage.submit()
    path = f"/runs/{run['slug']}/cancel"
    assert stage.http.post(path).json()["status"] == "cancelled"
    assert stage.http.post(path).status_code == 200
    other = stage.submit()
    stage.claim().complete()

    answer = stage.http.post(f"/runs/{other['slug']}/cancel")

    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


def test_retry_queues_what_failed_with_fresh_budgets_and_keeps_what_completed(stage: Stage):
    run = stage.submit(sweep_configs=[{"parameter": "seed", "values": [1, 2]}])
    stage.claim().complete()
    stage.claim().commit("failed", error="x", retryable=False)
    assert stage.run(run["slug"])["status"] == "failed"

    again = stage.http.post(f"/runs/{run['slug']}/retry")

    assert again.json()["status"] == "running"
    done, retried = stage.tasks(run["slug"])
    assert (done["status"], retried["status"], retried["error_message"]) == ("completed", "queued", None)
    worker = stage.claim()
    assert (worker.claim.task_id, worker.claim.number) == (retried["id"], 2)
    worker.commit("failed", error="y")
    assert stage.tasks(run["slug"])[1]["status"] == "queued"


def test_there_is_nothing_to_retry_in_a_run_that_goes_well(stage: Stage):
    run = stage.submit()

    answer = stage.http.post(f"/runs/{run['slug']}/retry")

    assert answer.status_code == 409


def test_the_first_checkout_pins_the_commit_for_all_tasks_with_the_same_code(stage: Stage):
    code = {"task_name": "x", "code_url": "https://example.org/a/b", "code_ref": "main"}
    run = stage.submit(
        training_config=code,
        tasks=[{"seed": 1}, {"seed": 2}, {"code_ref": "other"}],
    )
    workers = [stage.claim() for _ in range(2)]

    answers = [
        workers[0].heartbeat(code_commit="a" * 40).json()["stop"],
        workers[0].heartbeat(code_commit="a" * 40).json()["stop"],
        workers[1].heartbeat(code_commit="b" * 40).json()["stop"],
    ]

    assert answers == [None, None, "preempt"]
    assert [task["code_commit"] for task in stage.tasks(run["slug"])] == ["a" * 40, "a" * 40, None]


def test_tasks_are_claimed_by_priority_then_by_age(stage: Stage):
    from sqlalchemy import update

    from canard_platform.store.tables import Task

    stage.submit(sweep_configs=[{"parameter": "seed", "values": [1, 2, 3]}])
    with stage.services.database.write() as session:
        session.execute(update(Task).where(Task.index == 2).values(priority=5))

    order = [stage.claim().start()["config"]["seed"] for _ in range(3)]

    assert order == [3, 1, 2]
