"""What the end of a trainer becomes, with a stand-in for ends that the real one does not have."""

import json
import signal
from pathlib import Path

import pytest
from attempts import eventually, is_running
from repositories import Repository
from sqlalchemy import update
from stage import Stage

from canard_platform.store.tables import Task

PLAIN_MODULE = {"hover.py": "import gymnasium\ngymnasium.register('Hover-v0', entry_point=object)\n"}


def test_exit_code_0_without_the_end_marker_is_a_failure_that_is_tried_again(fast_stage, start, standin):
    runner = start(fast_stage, trainer_python=standin, task_name="exit_with:0")

    assert runner.wait() == 0, runner.log
    report = json.loads((runner.folder / "report.json").read_text())
    assert report["outcome"] == "failed"
    assert "ended without its end marker" in report["error"]
    assert runner.task["status"] == "queued"


def test_a_trainer_that_crashes_while_it_shuts_down_has_done_its_task(fast_stage, start, standin):
    runner = start(fast_stage, trainer_python=standin, task_name="crash_when_done")

    assert runner.wait() == 0, runner.log
    assert runner.task["status"] == "completed"


@pytest.mark.parametrize("code", [2, 3])
def test_a_wrong_config_and_a_diverged_training_are_not_tried_again(fast_stage, start, standin, code):
    runner = start(fast_stage, trainer_python=standin, task_name=f"fail_with:{code}:gamma is 7")

    assert runner.wait() == 0, runner.log
    assert runner.task["status"] == "failed"
    assert runner.task["error_message"].splitlines()[0] == "gamma is 7"


def test_a_crash_is_tried_again_until_the_budget_is_used_up_and_shows_the_log(fast_stage, start, standin):
    runner = start(fast_stage, trainer_python=standin, task_name="exit_with:1")
    assert runner.wait() == 0, runner.log
    for _ in range(2):
        fast_stage.clock.advance(60)
        runner = start(fast_stage, trainer_python=standin, slug=runner.slug)
        assert runner.wait() == 0, runner.log

    assert runner.task["status"] == "failed"
    first, *rest = runner.task["error_message"].splitlines()
    assert first == "the trainer ended with exit code 1: last words"
    assert "this is exit_with" in rest
    assert b"last words" in runner.artifact("attempt-3/logs/trainer.log")


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", "the GPU ran out of memory"),
        ("OSError: [Errno 28] No space left on device: 'x'", "the disk of the worker is full"),
    ],
)
def test_well_known_crashes_are_said_plainly(fast_stage, start, standin, said, meaning):
    runner = start(fast_stage, trainer_python=standin, task_name=f"say_and_crash:{said}")

    assert runner.wait() == 0, runner.log
    report = json.loads((runner.folder / "report.json").read_text())
    assert report["error"].startswith(meaning)
    assert report["retryable"]


def test_a_cancel_ends_the_trainer_with_its_helpers(fast_stage, start, standin):
    runner = start(fast_stage, trainer_python=standin, task_name="until_term")
    pids = runner.pids()

    fast_stage.http.post(f"/runs/{runner.slug}/cancel")

    assert runner.wait() == 0, runner.log
    assert runner.task["status"] == "cancelled"
    assert not any(is_running(pid) for pid in pids)


def test_a_notice_is_passed_on_and_the_checkpoint_it_leads_to_is_delivered(fast_stage, start, standin):
    runner = start(fast_stage, trainer_python=standin, task_name="until_term")
    runner.pids()

    runner.process.send_signal(signal.SIGTERM)

    assert runner.wait() == 0, runner.log
    assert runner.task["status"] == "queued"
    assert json.loads((runner.folder / "report.json").read_text())["outcome"] == "preempted"
    assert "attempt-1/checkpoints/model_7.pt" in runner.paths


def test_a_notice_before_there_is_a_trainer_hands_the_task_back(fast_stage, start, repository, tmp_path):
    begun = tmp_path / "begun"
    setup = f"import pathlib, time\npathlib.Path({str(begun)!r}).touch()\ntime.sleep(600)\n"
    repository.commit({"setup.py": setup})
    runner = start(fast_stage, task_name="Hover-v0", code_url=repository.url)
    eventually(begun.exists)

    runner.process.send_signal(signal.SIGTERM)

    assert runner.wait() == 0, runner.log
    assert json.loads((runner.folder / "report.json").read_text())["outcome"] == "preempted"
    assert not (runner.folder / "trainer.log").exists()


def test_the_next_attempt_gets_the_newest_checkpoint_that_is_sound(fast_stage, start, standin):
    first = start(fast_stage, trainer_python=standin, task_name="resumed")
    eventually(lambda: first.task["status"] == "running")
    first.kill()
    spec_worker = first.worker
    spec_worker.start()
    for iteration in (1, 2, 10):
        path = f"checkpoints/model_{iteration}.pt"
        spec_worker.upload(path, f"weights of {iteration}".encode(), "checkpoint", iteration=iteration)
    stored = fast_stage.home / "artifacts" / f"runs/{first.slug}/tasks/{first.task['id']}/attempt-1"
    (stored / "checkpoints" / "model_10.pt").write_bytes(b"weights of")
    spec_worker.commit("preempted")

    second = start(fast_stage, trainer_python=standin, slug=first.slug)

    assert second.wait() == 0, second.log
    log = second.artifact("attempt-2/logs/trainer.log").decode()
    assert "resumed from weights of 2" in log
    assert "model_10.pt is not sound" in second.log


def test_a_checkpoint_that_the_user_named_and_that_is_gone_is_no_fresh_start(
    fast_stage, start, standin, tmp_path
):
    checkpoint = tmp_path / "model_5.pt"
    checkpoint.write_bytes(b"weights")
    slug = fast_stage.submit(
        training_config={"task_name": "resumed", "max_iterations": 9, "checkpoint_url": str(checkpoint)}
    )["slug"]
    checkpoint.unlink()

    runner = start(fast_stage, trainer_python=standin, slug=slug)

    assert runner.wait() == 0, runner.log
    assert runner.task["status"] == "failed"
    assert runner.task["error_message"].startswith(f"checkpoint_url: {checkpoint} is no file")


def test_a_repository_of_plain_modules_is_used_as_it_lies(fast_stage, start, standin, tmp_path):
    repository = Repository(tmp_path / "plain")
    repository.commit(PLAIN_MODULE)

    runner = start(fast_stage, trainer_python=standin, task_name="done", code_url=repository.url)

    assert runner.wait() == 0, runner.log
    assert "--import hover" in runner.log
    assert runner.task["status"] == "completed"


def test_a_commit_that_another_attempt_has_pinned_meanwhile_wins(
    fast_stage, start, standin, repository, relay
):
    """Two tasks of a run look a branch up at once, and it moves in between."""
    repository.commit(PLAIN_MODULE)
    config = {"task_name": "done", "code_url": repository.url}
    slug = fast_stage.submit(training_config=config)["slug"]
    pin(fast_stage, None)
    relay.on_bytes = lambda sent: pin(fast_stage, "1" * 40) if b'"code_commit":"' in sent else None

    runner = start(fast_stage, trainer_python=standin, api_url=relay.url, slug=slug)

    assert runner.wait() == 0, runner.log
    assert json.loads((runner.folder / "report.json").read_text())["outcome"] == "preempted"
    assert not (runner.folder / "trainer.log").exists()
    assert runner.task["status"] == "queued"


def pin(stage: Stage, commit: str | None) -> None:
    with stage.services.database.write() as session:
        session.execute(update(Task).values(code_commit=commit))


def test_a_trainer_that_cannot_be_executed_is_named(fast_stage, start):
    runner = start(fast_stage, trainer_python="/nowhere/python")

    assert runner.wait() == 0, runner.log
    assert runner.task["status"] == "failed"
    assert "/nowhere/python cannot be run" in runner.task["error_message"]


def test_the_token_does_not_stay_on_disk_nor_reach_the_trainer_or_a_log(fast_stage, start, standin, tmp_path):
    told = tmp_path / "told"
    runner = start(fast_stage, trainer_python=standin, task_name=f"when_told:{told}")
    [trainer, *_] = runner.pids()
    token = runner.worker.claim.token.encode()
    environment = Path(f"/proc/{trainer}/environ").read_bytes()
    told.touch()

    assert runner.wait() == 0, runner.log
    assert token not in environment
    assert not [path for path in runner.folder.rglob("*") if path.is_file() and token in path.read_bytes()]


def test_what_was_delivered_does_not_fill_the_disk(fast_stage, start, standin):
    runner = start(fast_stage, trainer_python=standin, task_name="done")

    assert runner.wait() == 0
    left = {path.name for path in runner.folder.iterdir()}
    assert left == {"exit.json", "report.json", "runner.log", "trainer.log", "training.json"}
