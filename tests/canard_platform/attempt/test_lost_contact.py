"""The network between runner and platform goes away, or the lease does."""

import json
import threading

from attempts import eventually, is_running


def test_an_outage_shorter_than_the_lease_costs_nothing(fast_stage, start, standin, relay, tmp_path):
    told = tmp_path / "told"
    runner = start(fast_stage, trainer_python=standin, api_url=relay.url, task_name=f"when_told:{told}")
    runner.pids()

    relay.cut()
    eventually(lambda: "was not answered" in runner.log)
    relay.mend()
    eventually(lambda: "answered again" in runner.log)
    told.touch()

    assert runner.wait() == 0, runner.log
    assert runner.task["status"] == "completed"
    assert runner.task["attempt"] == 1


def test_a_task_that_ends_while_the_platform_is_away_is_reported_when_it_is_back(
    fast_stage, start, standin, relay, tmp_path
):
    told = tmp_path / "told"
    runner = start(fast_stage, trainer_python=standin, api_url=relay.url, task_name=f"when_told:{told}")
    runner.pids()
    relay.cut()

    told.touch()
    eventually((runner.folder / "report.json").exists)

    assert json.loads((runner.folder / "report.json").read_text())["outcome"] == "completed"
    assert runner.task["status"] == "running"
    relay.mend()
    assert runner.wait() == 0, runner.log
    assert runner.task["status"] == "completed"
    assert runner.task["attempt"] == 1
    assert "attempt-1/checkpoints/model_10.pt" in runner.paths


def test_a_report_whose_answer_was_lost_is_told_again_and_counts_once(
    fast_stage, start, standin, relay, tmp_path
):
    cut_once = threading.Event()

    def cut_at_commit(sent: bytes) -> None:
        if b"/commit " in sent and not cut_once.is_set():
            cut_once.set()
            # The request goes through; by the time its answer comes there is nobody to take it.
            threading.Timer(0.0, relay.drop_clients).start()

    relay.on_bytes = cut_at_commit
    runner = start(fast_stage, trainer_python=standin, api_url=relay.url, task_name="done")

    assert runner.wait() == 0, runner.log
    assert cut_once.is_set()
    assert runner.task["status"] == "completed"
    assert runner.task["attempt"] == 1


def test_a_runner_that_cannot_renew_stops_its_trainer_before_the_lease_ends(
    open_stage, start, standin, relay_to
):
    stage = open_stage(settings={"heartbeat_s": 0.1, "lease_s": 4.0})
    relay = relay_to(stage)
    runner = start(stage, trainer_python=standin, api_url=relay.url, task_name="deaf")
    [trainer, *_] = runner.pids()

    relay.cut()

    eventually(lambda: not is_running(trainer))
    assert "cannot be renewed" in runner.log
    assert runner.task["status"] == "running"  # the service's clock stands still: the lease has not ended
    relay.mend()
    assert runner.wait() == 0, runner.log
    assert runner.task["status"] == "queued"


def test_a_runner_whose_task_was_given_away_kills_its_trainer_and_writes_nothing_more(
    fast_stage, start, standin
):
    runner = start(fast_stage, trainer_python=standin, task_name="deaf")
    pids = runner.pids()
    before = eventually(lambda: runner.paths)  # the config, delivered while the trainer starts

    answer = runner.worker.commit("preempted")  # as a reaper would end it
    assert answer.status_code == 204

    assert runner.wait() == 0, runner.log
    assert not any(is_running(pid) for pid in pids)
    assert not (runner.folder / "report.json").exists()
    assert runner.paths == before
    assert runner.task["status"] == "queued"


def test_a_runner_that_comes_too_late_starts_nothing(fast_stage, start, standin):
    slug = fast_stage.submit()["slug"]
    worker = fast_stage.claim()
    worker.commit("preempted")
    fast_stage.services.work.clear()

    runner = start(fast_stage, trainer_python=standin, slug=slug, late=worker)

    assert runner.wait() == 0, runner.log
    assert not (runner.folder / "output").exists()
