"""Waiting for a run, and its best checkpoint."""

import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from loopback import FakeTime, run_json

from canard import Client, RunHandle
from canard.errors import (
    ArtifactNotFoundError,
    AuthenticationError,
    ConnectionFailedError,
    RunFailedError,
    WaitTimeoutError,
)
from canard.models import Run
from canard.retries import Patience

SLUG = "run_a1b2c3d4"


def task_json(**fields: Any) -> dict[str, Any]:
    return {
        "id": 11,
        "run_id": 1,
        "params": {"learning_rate": 1e-4},
        "status": "running",
        "created_at": "2026-01-02T03:04:05Z",
        **fields,
    }


class Platform:
    """Answers the routes that waiting needs; `runs` is what one look after the other sees."""

    def __init__(
        self, runs: list[dict[str, Any] | Exception], tasks: list[dict[str, Any]] | None = None
    ) -> None:
        self._runs = iter(runs)
        self._last: dict[str, Any] | Exception = runs[0]
        self._tasks = tasks or [task_json()]
        self.looks = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/tasks"):
            return httpx.Response(200, json={"items": self._tasks, "next_cursor": None})
        self.looks += 1
        self._last = next(self._runs, self._last)
        if isinstance(self._last, Exception):
            raise self._last
        if self._last.get("code"):
            return httpx.Response(self._last["http"], json=self._last)
        return httpx.Response(200, json=self._last)


Attach = Callable[[Callable[[httpx.Request], httpx.Response]], RunHandle]


@pytest.fixture
def attach(fake_time: FakeTime) -> Iterator[Attach]:
    clients: list[Client] = []

    def to(platform: Callable[[httpx.Request], httpx.Response]) -> RunHandle:
        patience = Patience(tries=1, clock=fake_time.monotonic, sleep=fake_time.sleep)
        transport = httpx.MockTransport(platform)
        client = Client("https://api.canard.cloud", "k", patience=patience, transport=transport)
        clients.append(client)
        return RunHandle(client, Run.model_validate(run_json()))

    yield to
    for client in clients:
        client.close()


def test_waiting_ends_when_the_run_has_completed(attach: Attach, fake_time: FakeTime):
    platform = Platform([run_json(), run_json(status="running"), run_json(status="completed")])
    handle = attach(platform)

    run = handle.wait_for_completion(clock=fake_time, poll_s=2)

    assert run.is_complete
    assert handle.status == "completed"
    assert fake_time.slept == [2, 2]


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_run_that_did_not_complete_is_an_error_with_what_its_tasks_died_of(
    attach: Attach, fake_time: FakeTime, status: str
):
    tasks = [
        task_json(index=0, status="completed"),
        task_json(index=1, status=status, error_message="CUDA out of memory\nTraceback ..."),
        task_json(index=2, status=status),
    ]
    handle = attach(Platform([run_json(status=status, num_tasks=3, completed_tasks=1)], tasks))

    with pytest.raises(RunFailedError) as failed:
        handle.wait_for_completion(clock=fake_time)

    assert str(failed.value) == (
        f"{SLUG} {status}: 1 of 3 tasks completed; task 1 (learning_rate=0.0001): CUDA out of memory;"
        f" and 1 more; see: canard logs {SLUG}"
    )
    assert [task.index for task in failed.value.tasks] == [1, 2]
    assert failed.value.run is handle.run


def test_an_unknown_status_is_waited_out(attach: Attach, fake_time: FakeTime):
    handle = attach(Platform([run_json(status="paused")] * 3 + [run_json(status="completed")]))

    handle.wait_for_completion(clock=fake_time)

    assert len(fake_time.slept) == 3


def test_a_wait_that_is_too_long_ends_in_time_and_says_how_to_come_back(attach: Attach, fake_time: FakeTime):
    handle = attach(Platform([run_json(status="running")]))
    began = fake_time.now

    with pytest.raises(WaitTimeoutError, match=f"still running after 7 s.*canard watch {SLUG}") as late:
        handle.wait_for_completion(timeout_s=7, poll_s=2, clock=fake_time)

    assert isinstance(late.value, TimeoutError)
    assert fake_time.now - began == 7


def test_no_time_at_all_is_still_one_look(attach: Attach, fake_time: FakeTime):
    handle = attach(Platform([run_json(status="completed")]))

    assert handle.wait_for_completion(timeout_s=0, clock=fake_time).is_complete


BROKEN = [
    httpx.ConnectError("refused"),
    httpx.ReadTimeout("slow"),
    {"http": 503, "code": "server_error", "detail": "restarting"},
    {"http": 429, "code": "rate_limited", "detail": "slow down"},
]


@pytest.mark.parametrize("accident", BROKEN)
def test_a_passing_outage_is_outlived_and_told(
    attach: Attach, fake_time: FakeTime, accident: Any, capsys: pytest.CaptureFixture[str]
):
    runs = [run_json(status="running"), accident, accident, run_json(status="completed")]
    handle = attach(Platform(runs))

    assert handle.wait_for_completion(clock=fake_time).is_complete
    assert capsys.readouterr().out.count("no word from the platform, trying on") == 1


def test_an_outage_is_outlived_for_a_bounded_time(attach: Attach, fake_time: FakeTime):
    handle = attach(Platform([run_json(status="running"), httpx.ConnectError("refused")]))
    began = fake_time.now

    with pytest.raises(ConnectionFailedError):
        handle.wait_for_completion(clock=fake_time, outage_s=30, poll_s=5)

    assert 30 <= fake_time.now - began <= 40


def test_outages_do_not_add_up(attach: Attach, fake_time: FakeTime):
    out, up = httpx.ConnectError("refused"), run_json(status="running")
    handle = attach(Platform([*[out, out, up] * 20, run_json(status="completed")]))

    assert handle.wait_for_completion(clock=fake_time, outage_s=15, poll_s=5).is_complete


def test_an_error_that_will_not_pass_ends_the_wait(attach: Attach, fake_time: FakeTime):
    revoked = {"http": 401, "code": "unauthenticated", "detail": "revoked"}
    handle = attach(Platform([run_json(), revoked]))

    with pytest.raises(AuthenticationError, match="revoked"):
        handle.wait_for_completion(clock=fake_time)


def test_ctrl_c_is_passed_on_and_nothing_is_cancelled(attach: Attach):
    class Pressed(FakeTime):
        def sleep(self, seconds: float, /) -> None:
            raise KeyboardInterrupt

    methods: list[str] = []
    platform = Platform([run_json(status="running")])

    def watched(request: httpx.Request) -> httpx.Response:
        methods.append(request.method)
        return platform(request)

    with pytest.raises(KeyboardInterrupt):
        attach(watched).wait_for_completion(clock=Pressed())

    assert set(methods) == {"GET"}


def training_json(done: int, reward: float | None) -> dict[str, Any]:
    return {"current_iteration": done, "max_iterations": 100, "mean_reward": reward}


def test_without_a_terminal_progress_is_a_line_now_and_then(
    attach: Attach, fake_time: FakeTime, capsys: pytest.CaptureFixture[str]
):
    tasks = [
        task_json(training=training_json(50, 3.0)),
        task_json(training=training_json(20, 5.0)),
        task_json(),
    ]
    going = run_json(status="running", num_tasks=3, progress_fraction=0.25)
    handle = attach(
        Platform([run_json(), *[going] * 35, run_json(status="completed", completed_tasks=1)], tasks)
    )

    handle.wait_for_completion(clock=fake_time, poll_s=1)

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{SLUG}: queued, 0%")
    assert lines[1] == f"{SLUG}: running, 25%, tasks 0/3, iterations 70/200, mean reward 4.00"
    assert lines[-1].startswith(f"{SLUG}: completed, 100%")
    assert 4 <= len(lines) <= 6


def test_on_a_terminal_progress_is_a_live_bar(
    attach: Attach, fake_time: FakeTime, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "200")
    handle = attach(
        Platform(
            [run_json(), run_json(status="running", progress_fraction=0.5), run_json(status="completed")]
        )
    )

    handle.wait_for_completion(clock=fake_time)

    shown = capsys.readouterr().out
    assert "\x1b[" in shown
    assert "completed, 100%" in shown


def test_progress_can_be_left_out(attach: Attach, fake_time: FakeTime, capsys: pytest.CaptureFixture[str]):
    attach(Platform([run_json(status="completed")])).wait_for_completion(show_progress=False, clock=fake_time)

    assert capsys.readouterr().out == ""


def test_very_many_tasks_are_not_fetched_at_every_look(attach: Attach, fake_time: FakeTime):
    paths: list[str] = []
    platform = Platform([run_json(num_tasks=2000), run_json(num_tasks=2000, status="completed")])

    def watched(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.path)
        return platform(request)

    attach(watched).wait_for_completion(clock=fake_time)

    assert paths == [f"/v1/runs/{SLUG}"] * 2


def test_cancel_and_refresh_show_the_new_state(attach: Attach):
    def platform(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            assert request.url.path == f"/v1/runs/{SLUG}/cancel"
            return httpx.Response(200, json=run_json(status="cancelled"))
        return httpx.Response(200, json=run_json(status="running"))

    handle = attach(platform)

    assert handle.refresh().status == handle.status == "running"
    assert handle.cancel().status == handle.status == "cancelled"


# The best checkpoint

NUMBERS = itertools.count()


def checkpoint(iteration: int, reward: float | None, task_id: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "s3_key": f"runs/{SLUG}/tasks/{task_id}/attempt-1/checkpoints/model_{iteration}.pt",
        "artifact_type": "checkpoint",
        "filename": f"model_{iteration}.pt",
        "task_id": task_id,
        "attempt": 1,
        "size_bytes": 1,
        "sha256": "0" * 64,
        "iteration": iteration,
        "mean_reward": reward,
        "created_at": f"2026-01-02T03:04:{next(NUMBERS) % 60:02}Z",
        **fields,
    }


class Recorder(RunHandle):
    """A handle whose platform has these checkpoints; records which one is fetched."""

    def __init__(self, checkpoints: list[dict[str, Any]], status: str = "completed") -> None:
        self.fetched: list[str] = []
        recorder = self

        class Fetches:
            def list_artifacts(self, slug: str, artifact_type: str | None) -> list[dict[str, Any]]:
                assert (slug, artifact_type) == (SLUG, "checkpoint")
                return checkpoints

            def download_artifact(self, slug: str, s3_key: str, output_dir: Path | str) -> Path:
                recorder.fetched.append(s3_key)
                return Path(output_dir) / s3_key.rpartition("/")[2]

            def get_run(self, slug: str) -> Run:
                return Run.model_validate(run_json(status=status))

        super().__init__(Fetches(), Run.model_validate(run_json()))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("checkpoints", "best"),
    [
        ([checkpoint(50, 1.0), checkpoint(100, 3.0), checkpoint(150, 2.0)], 100),
        ([checkpoint(999, 5.0), checkpoint(1000, 5.0), checkpoint(200, 5.0)], 1000),
        ([checkpoint(50, -3.0), checkpoint(100, None)], 50),
        ([checkpoint(50, -3.0), checkpoint(100, math.nan), checkpoint(150, math.inf)], 50),
        ([checkpoint(50, None), checkpoint(100, None), checkpoint(60, None)], 100),
        ([checkpoint(50, 1.0, task_id=1), checkpoint(25, 9.0, task_id=2)], 25),
        ([checkpoint(50, 0)], 50),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_the_best_checkpoint_has_the_highest_reward_and_of_equal_ones_is_the_later(
    checkpoints: list[dict[str, Any]], best: int, *, turned: bool
):
    handle = Recorder(checkpoints[::-1] if turned else checkpoints)

    path = handle.download_best_checkpoint("out")

    assert path == Path("out") / f"model_{best}.pt"
    assert handle.fetched[0].endswith(f"/model_{best}.pt")


def test_a_run_without_a_checkpoint_says_so():
    with pytest.raises(ArtifactNotFoundError, match=f"{SLUG} has no checkpoint yet \\(it is queued\\)"):
        Recorder([], status="queued").download_best_checkpoint("out")
    with pytest.raises(ArtifactNotFoundError, match=f"{SLUG} has no checkpoint \\(it is failed\\)"):
        Recorder([], status="failed").download_best_checkpoint("out")
