"""The same command again: what was trained is there, what goes on is come back to, the rest is submitted."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from loopback import Answer, Hangup, Request, Server
from stage import Stage

SMALL = ("platform=self_hosted", "max_iterations=10", "num_envs=64")
SWEEP = ("-m", *SMALL, "ppo.learning_rate=1e-4,3e-4")


@pytest.fixture
def stage(tmp_path: Path, environment: dict[str, str]) -> Iterator[Stage]:
    """A platform that trains nothing by itself; CANARD_API_URL and the key lead to it."""
    (tmp_path / "platform").mkdir()
    stage = Stage(tmp_path / "platform")
    key = stage.key_of("local")["Authorization"].removeprefix("Bearer ")
    environment |= {"CANARD_API_URL": stage.url, "CANARD_API_KEY": key}
    yield stage
    stage.close()


def runs(stage: Stage) -> list[dict[str, Any]]:
    """The newest first."""
    items: list[dict[str, Any]] = stage.http.get("/runs").json()["items"]
    return items


def statuses(stage: Stage, slug: str) -> list[str]:
    return [task["status"] for task in stage.tasks(slug)]


def trained(quick: Callable[..., Any], stage: Stage, *arguments: str) -> str:
    """Slug of a run of this command that has completed."""
    done = quick(*arguments)
    assert done.returncode == 0, done.stderr
    run = runs(stage)[0]
    for _ in range(run["num_tasks"]):
        worker = stage.claim()
        worker.start()
        worker.complete()
    return str(run["slug"])


def test_the_same_command_again_shows_what_was_trained_and_submits_nothing_to_train(quick, stage):
    first = trained(quick, stage, *SWEEP)

    done = quick(*SWEEP)

    assert done.returncode == 0, done.stderr
    again = runs(stage)[0]["slug"]
    assert f"Submitted {again} (cartpole): 2 tasks (2 trained before, 0 to train)" in done.stdout
    assert "Estimated cost" not in done.stdout
    assert statuses(stage, again) == ["completed", "completed"]
    assert "9.00" in done.stdout, "the results are there, so they are shown"
    assert f"{first}/1" in done.stdout


def test_an_extended_grid_adds_only_what_is_new(quick, stage):
    trained(quick, stage, *SWEEP)

    done = quick("-m", *SMALL, "ppo.learning_rate=1e-4,3e-4,1e-3")

    assert "3 tasks (2 trained before, 1 to train)" in done.stdout
    assert "Estimated cost: less than $0.01 (1 task" in done.stdout
    assert statuses(stage, runs(stage)[0]["slug"]) == ["completed", "completed", "queued"]
    assert stage.claim().start()["config"]["learning_rate"] == 1e-3


def test_reuse_false_trains_all_of_it_again(quick, stage):
    trained(quick, stage, *SWEEP)

    done = quick(*SWEEP, "reuse=false")

    assert "2 tasks\n" in done.stdout
    assert statuses(stage, runs(stage)[0]["slug"]) == ["queued", "queued"]


def test_the_same_command_while_its_run_goes_on_comes_back_to_it(quick, stage):
    quick(*SWEEP)

    done = quick(*SWEEP)

    [run] = runs(stage)
    assert done.returncode == 0, done.stderr
    assert f"Came back to {run['slug']} (cartpole), which is the same and goes on: 2 tasks" in done.stdout


def test_a_member_that_another_run_trains_is_waited_for(quick, stage):
    quick(*SMALL, "ppo.learning_rate=1e-4")
    [first] = runs(stage)

    done = quick(*SWEEP)

    assert f"2 tasks (1 being trained in {first['slug']}, 1 to train)" in done.stdout
    worker = stage.claim()
    worker.start()
    worker.complete()
    assert statuses(stage, runs(stage)[0]["slug"]) == ["completed", "queued"]


def test_a_plan_says_what_would_be_reused_and_leaves_it_out_of_the_costs(quick, stage):
    first = trained(quick, stage, *SWEEP)

    done = quick("-m", *SMALL, "ppo.learning_rate=1e-4,3e-4,1e-3", "mode=plan")

    assert done.returncode == 0, done.stderr
    assert "Reuse: 2 trained before, 1 to train; reuse=false trains them all" in done.stdout
    assert f"{first}/1" in done.stdout
    assert len(runs(stage)) == 1
    everything = quick(*SWEEP, "mode=plan")
    assert "Total: nothing is left to train" in everything.stdout


def test_a_plan_names_the_run_that_a_submit_comes_back_to(quick, stage):
    quick(*SWEEP)

    done = quick(*SWEEP, "mode=plan")

    assert f"Reuse: a submit comes back to {runs(stage)[0]['slug']}, which is the same" in done.stdout


def test_a_plan_does_without_a_platform_that_does_not_answer(quick, environment):
    environment |= {"CANARD_API_URL": "http://127.0.0.1:9", "CANARD_API_KEY": "k" * 40}

    done = quick(*SWEEP, "mode=plan")

    assert done.returncode == 0, done.stderr
    assert "What was trained before is not known: " in done.stdout
    assert "2 members = 2" in done.stdout


def test_a_plan_does_without_an_address(quick):
    done = quick(*SWEEP, "mode=plan")

    assert done.returncode == 0, done.stderr
    assert "What was trained before is not known: platform.api_url is not set" in done.stdout


def test_a_plan_on_a_machine_where_nothing_was_trained_says_nothing_of_it(quick):
    done = quick("-m", "seed=1,2", "mode=plan")

    assert done.returncode == 0, done.stderr
    assert "trained before" not in done.stdout


def test_a_run_above_max_cost_is_refused_before_it_is_submitted(quick, stage):
    done = quick("-m", *SMALL[:1], "seed=1,2,3", "num_envs=4096", "max_iterations=10000", "max_cost=1.5")

    assert done.returncode == 1
    assert "max_cost: 3 members to train, estimated at $" in done.stderr
    assert "more than $1.50; nothing was submitted" in done.stderr
    assert runs(stage) == []


def test_what_was_trained_before_does_not_count_for_max_cost(quick, stage):
    long = ("-m", *SMALL[:1], "num_envs=4096", "max_iterations=10000")
    trained(quick, stage, *long, "seed=1,2,3")
    [cost] = [
        float(line.partition("$")[2].partition(" ")[0])
        for line in quick(*long, "seed=4", "mode=plan").stdout.splitlines()
        if line.startswith("Total:")
    ]

    refused = quick(*long, "seed=1,2,3,4", f"max_cost={cost * 0.9:.2f}")
    taken = quick(*long, "seed=1,2,3,4", f"max_cost={cost * 1.1:.2f}")

    assert (refused.returncode, taken.returncode) == (1, 0), taken.stderr
    assert "max_cost: 1 member to train" in refused.stderr
    assert runs(stage)[0]["config"]["max_cost"] == pytest.approx(cost * 1.1, abs=0.01)


def test_a_plan_above_max_cost_says_so_and_fails(quick):
    done = quick("-m", "seed=1,2", "num_envs=4096", "max_iterations=10000", "mode=plan", "max_cost=0.1")

    assert done.returncode == 1
    assert "2 members" in done.stdout
    assert "max_cost: 2 members to train" in done.stderr


@pytest.mark.parametrize("cap", ["-1", "much", "[1]", "inf"])
def test_a_cap_that_is_no_amount_is_refused(quick, service, cap):
    done = quick(*SWEEP, f"max_cost={cap}")

    assert done.returncode == 1
    assert done.stderr.startswith("canard-hydra: max_cost: ")
    assert service.submits == []


def test_a_submit_leaves_what_it_sent_beside_multirun_yaml(quick, stage, directory):
    quick(*SWEEP, "hydra.sweep.dir=sweep", "name=mine")

    said = json.loads((directory / "sweep" / "submission.json").read_text())

    [run] = runs(stage)
    assert (directory / "sweep" / "multirun.yaml").exists()
    assert (said["run"], said["name"], said["api_url"]) == (run["slug"], "mine", stage.url)
    assert said["config"]["tasks"] == [{"learning_rate": 1e-4}, {"learning_rate": 3e-4}]
    text = (directory / "sweep" / "submission.json").read_text()
    assert stage.http.headers["Authorization"].removeprefix("Bearer ") not in text


def test_a_single_training_leaves_it_beside_dot_hydra(quick, stage, directory):
    quick(*SMALL, "hydra.run.dir=one")

    assert json.loads((directory / "one" / "submission.json").read_text())["run"] == runs(stage)[0]["slug"]
    assert (directory / "one" / ".hydra").is_dir()


def test_another_submit_from_the_same_folder_keeps_the_names_of_the_earlier_runs(quick, stage, directory):
    quick(*SWEEP, "hydra.sweep.dir=sweep")
    quick(*SWEEP, "hydra.sweep.dir=sweep", "seed=1")

    said = json.loads((directory / "sweep" / "submission.json").read_text())

    second, first = runs(stage)
    assert (said["earlier_runs"], said["run"]) == ([first["slug"]], second["slug"])


def test_a_command_that_was_killed_before_the_answer_comes_back_to_its_run(
    stage: Stage, environment: dict[str, str], directory: Path
):
    """The run is committed, and the command dies before it hears of it."""
    between = _Between(stage)
    environment |= {"CANARD_API_URL": between.url}
    command = [sys.executable, "-m", "canard_hydra", *SWEEP, "reuse=false", "hydra.sweep.dir=sweep"]
    with subprocess.Popen(command, cwd=directory, env=environment) as process:
        between.kills = process.pid
        assert process.wait(60) == -signal.SIGKILL
    assert json.loads((directory / "sweep" / "submission.json").read_text())["run"] is None

    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=60, check=False
    )

    between.close()
    [run] = runs(stage)
    assert done.returncode == 0, done.stderr
    assert f"Came back to {run['slug']} (cartpole), which this submit made before: 2 tasks" in done.stdout
    assert json.loads((directory / "sweep" / "submission.json").read_text())["run"] == run["slug"]


class _Between(Server):
    """Passes requests on; after the first submit it kills the process `kills` in place of an answer."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(self._pass_on)
        self._stage = stage
        self.kills: int | None = None

    def _pass_on(self, request: Request) -> Answer | Hangup:
        names = ("authorization", "content-type", "content-encoding", "idempotency-key")
        headers = {name: value for name, value in request.headers.items() if name.lower() in names}
        url = f"{self._stage.url}{request.path}"
        answer = httpx.request(
            request.method, url, content=request.body, headers=headers, trust_env=False, timeout=30
        )
        if self.kills is not None and request.path == "/v1/runs":
            os.kill(self.kills, signal.SIGKILL)
            self.kills = None
            return Hangup()
        return Answer(status=answer.status_code, body=answer.json())
