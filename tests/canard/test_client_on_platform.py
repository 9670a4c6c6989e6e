"""Every documented method against the real service, and what a broken line in between does."""

import http.client
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from loopback import Answer, FakeTime, Hangup, Request, Script, Server

from canard import Client, RunConfig, SweepConfig, TrainingConfig
from canard.errors import (
    ArtifactNotFoundError,
    AuthenticationError,
    ConflictError,
    ConnectionFailedError,
    InvalidRequestError,
    RunFailedError,
    RunNotFoundError,
)
from canard.models import QueueStatus, Run
from canard.retries import Patience

Serve = Callable[[Script], Server]
TRAINING = TrainingConfig(
    task_name="Canard-Cartpole-v0", num_envs=32, max_iterations=2, seed=1, actor_hidden_dims=[8]
)
PHYSICS = RunConfig(
    mode="physics", steps=5, sweep_configs=[SweepConfig(parameter="pole_length", values=[0.5, 1])]
)


@pytest.fixture
def client(platform: Any) -> Iterator[Client]:
    with Client(api_url=platform.url) as client:
        yield client


def training(**fields: Any) -> RunConfig:
    return RunConfig(mode="training", training_config=TRAINING, **fields)


def forward(platform: Any, request: Request) -> Answer:
    """The request as it is, to the real service."""
    connection = http.client.HTTPConnection(urlsplit(platform.url).netloc, timeout=30)
    headers = {name: value for name, value in request.headers.items() if name.lower() != "host"}
    connection.request(request.method, request.path, request.body, headers)
    response = connection.getresponse()
    answer = Answer(response.status, response.read(), {"Content-Type": response.headers["Content-Type"]})
    connection.close()
    return answer


def named(client: Client, name: str) -> list[Run]:
    return [run for run in client.list_runs(limit=1000) if run.name == name]


# The documented methods


@pytest.mark.timeout(120)
def test_a_training_from_submit_to_its_best_checkpoint(
    client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    handle = client.submit_run(
        "whole", training(sweep_configs=[SweepConfig(parameter="gamma", values=[0.9, 0.99])])
    )

    assert "Estimated cost" in capsys.readouterr().out
    assert handle.run.num_tasks == 2
    assert handle.url == f"{client.api_url}/runs/{handle.slug}"
    handle.wait_for_completion(timeout_s=100)
    assert (handle.run.is_complete, handle.run.progress, handle.run.completed_tasks) == (True, 1.0, 2)

    tasks = client.get_run_tasks(handle.slug)
    assert [task.params for task in tasks] == [{"gamma": 0.9}, {"gamma": 0.99}]
    assert [(task.status, task.progress_percent) for task in tasks] == [("completed", 100.0)] * 2
    metrics = client.get_run_metrics(handle.slug)
    assert metrics.mode == "training"
    assert metrics.training is not None
    assert metrics.training.current_iteration == metrics.training.max_iterations

    kinds = {artifact["artifact_type"] for artifact in client.list_artifacts(handle.slug)}
    assert {"checkpoint", "policy", "summary"} <= kinds
    [*_, newest] = client.list_artifacts(handle.slug, "checkpoint")
    url = client.get_artifact_url(handle.slug, newest["s3_key"])
    assert len(httpx.get(url).raise_for_status().content) == newest["size_bytes"]
    downloaded = client.download_artifact(handle.slug, newest["s3_key"], tmp_path)
    assert downloaded == tmp_path / newest["filename"].rpartition("/")[2]
    assert downloaded.stat().st_size == newest["size_bytes"]
    assert handle.download_best_checkpoint(tmp_path / "best").stat().st_size > 0
    assert client.get_task_log(handle.slug, tasks[0].id)


@pytest.mark.timeout(120)
def test_a_physics_run_fills_the_task_metrics(client: Client):
    handle = client.submit_run("physics", PHYSICS, wait=True)

    metrics = handle.get_metrics()
    assert (metrics.mode, metrics.completed_tasks, metrics.total_tasks) == ("physics", 2, 2)
    assert metrics.avg_physics_fps is not None
    assert metrics.avg_physics_fps > 0
    for task in handle.get_tasks():
        assert task.metrics is not None
        assert task.metrics.episode_duration is not None


@pytest.mark.timeout(120)
def test_a_run_that_fails_says_why_to_who_waits(client: Client):
    config = RunConfig(
        mode="training", training_config=TRAINING.model_copy(update={"task_name": "No-Such-Task-v0"})
    )
    handle = client.submit_run("fails", config)

    with pytest.raises(RunFailedError, match="No-Such-Task-v0"):
        handle.wait_for_completion(timeout_s=100)
    with pytest.raises(ArtifactNotFoundError, match="no checkpoint"):
        handle.download_best_checkpoint("nowhere")


def test_a_run_can_be_read_back_as_it_was_submitted(client: Client):
    submitted = client.submit_run("3.10", training(tags={"who": "ada"}))
    try:
        run = client.get_run(submitted.slug)
    finally:
        submitted.cancel()

    assert (run.name, run.num_tasks, run.slug) == ("3.10", 1, submitted.slug)
    assert run.config == training(tags={"who": "ada"})
    assert run.created_at.tzinfo is not None


def test_a_cancelled_run_is_cancelled_for_good(client: Client):
    handle = client.submit_run(
        "cancelled", training(num_samples=2, sweep_configs=[SweepConfig(parameter="seed", values=[1, 2, 3])])
    )

    handle.cancel()

    with pytest.raises(RunFailedError, match="cancelled"):
        handle.wait_for_completion(timeout_s=60)
    assert {task.status for task in handle.get_tasks()} <= {"cancelled", "completed"}


def test_the_queue_has_a_status(client: Client):
    status = client.get_queue_status()

    assert isinstance(status, QueueStatus)
    assert status.active_workers >= 1


@pytest.mark.parametrize(
    "call", ["get_run", "get_run_metrics", "get_run_tasks", "list_artifacts", "cancel_run"]
)
def test_a_run_that_is_not_there_is_a_run_not_found_error(client: Client, call: str):
    with pytest.raises(RunNotFoundError, match="run_zzzzzzzz"):
        getattr(client, call)("run_zzzzzzzz")


def test_an_artifact_that_is_not_there_is_named(client: Client, tmp_path: Path):
    handle = client.submit_run("no artifact", training())
    handle.cancel()

    with pytest.raises(ArtifactNotFoundError, match=r"model_7\.pt"):
        client.download_artifact(handle.slug, f"runs/{handle.slug}/checkpoints/model_7.pt", tmp_path)
    assert list(tmp_path.iterdir()) == []


# Refusals of the service


def test_a_wrong_key_is_refused_and_said(platform: Any):
    with (
        Client(platform.url, "wrong") as client,
        pytest.raises(AuthenticationError, match="the api_key argument"),
    ):
        client.list_runs()


def test_a_key_of_another_platform_in_the_environment_is_named(
    platform: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CANARD_API_KEY", "of-the-cloud")
    with Client(platform.url) as client, pytest.raises(AuthenticationError, match="CANARD_API_KEY"):
        client.get_queue_status()


def test_a_checkpoint_that_is_not_there_is_refused_at_submit(client: Client):
    with pytest.raises(InvalidRequestError) as refused:
        client.submit_run(
            "resume",
            RunConfig(
                mode="training",
                training_config=TRAINING.model_copy(
                    update={"checkpoint_url": "s3://b/runs/run_zzzzzzzz/checkpoints/model_5.pt"}
                ),
            ),
        )

    assert "checkpoint_url" in (refused.value.field or "")
    assert named(client, "resume") == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "raw", "config": {"mode": "physics", "stepz": 5}}, "stepz"),
        ({"name": "raw", "config": {"mode": "physics"}, "extra": 1}, "extra"),
        (
            {"name": "raw", "config": {"mode": "training", "training_config": {"task_name": "a", "ppo": 1}}},
            "ppo",
        ),
        ({"name": "", "config": {}}, "name"),
    ],
)
def test_the_service_itself_refuses_unknown_fields_by_name(platform: Any, body: dict[str, Any], field: str):
    response = httpx.post(
        f"{platform.url}/v1/runs",
        json=body,
        headers={"Authorization": f"Bearer {platform.api_key}", "Idempotency-Key": f"raw-{field}"},
    )

    assert response.status_code == 422
    assert response.json()["field"].endswith(field)


def test_one_key_with_two_bodies_is_a_conflict(client: Client):
    first = client.submit_run("conflict", training(), idempotency_key="conflict-1")
    again = client.submit_run("conflict", training(), idempotency_key="conflict-1")
    first.cancel()

    assert again.slug == first.slug
    with pytest.raises(ConflictError):
        client.submit_run("conflict", PHYSICS, idempotency_key="conflict-1")
    assert len(named(client, "conflict")) == 1


# A broken line


def lost_answer(platform: Any, request: Request) -> Answer | Hangup:
    forward(platform, request)
    return Hangup()


def cut_answer(platform: Any, request: Request) -> Answer | Hangup:
    whole = forward(platform, request)
    return Answer(whole.status, whole.body, whole.headers, cut_at=20)


def gateway_timeout(platform: Any, request: Request) -> Answer | Hangup:
    forward(platform, request)
    return Answer(504, b"gateway timeout", {"Content-Type": "text/plain"})


def never_arrived(platform: Any, request: Request) -> Answer | Hangup:
    return Hangup()


@pytest.mark.parametrize("accident", [lost_answer, cut_answer, gateway_timeout, never_arrived])
def test_a_submit_over_a_broken_line_makes_exactly_one_run(
    platform: Any, client: Client, serve: Serve, fake_time: FakeTime, accident: Callable[..., Answer | Hangup]
):
    line = serve(
        lambda request: accident(platform, request) if len(line.requests) < 3 else forward(platform, request)
    )
    patience = Patience(clock=fake_time.monotonic, sleep=fake_time.sleep)
    with Client(line.url, platform.api_key, patience=patience) as over_the_line:
        handle = over_the_line.submit_run(f"one {accident.__name__}", training())

    assert [run.slug for run in named(client, f"one {accident.__name__}")] == [handle.slug]
    assert len(line.requests) == 3
    client.cancel_run(handle.slug)


def test_a_submit_that_got_no_answer_can_be_repeated_with_its_key(
    platform: Any, client: Client, serve: Serve, fake_time: FakeTime
):
    line = serve(lambda request: lost_answer(platform, request))
    patience = Patience(tries=2, clock=fake_time.monotonic, sleep=fake_time.sleep)
    with Client(line.url, platform.api_key, patience=patience) as over_the_line:
        with pytest.raises(ConnectionFailedError) as lost:
            over_the_line.submit_run("by hand", training())
        assert lost.value.idempotency_key

    handle = client.submit_run("by hand", training(), idempotency_key=lost.value.idempotency_key)

    assert [run.slug for run in named(client, "by hand")] == [handle.slug]
    handle.cancel()


def test_pages_stay_whole_while_runs_arrive(platform: Any, client: Client, serve: Serve):
    before = [client.submit_run("listed", training()).cancel().slug for _ in range(5)]

    def script(request: Request) -> Answer:
        # A run arrives before every page; pages hold two.
        with Client(platform.url, platform.api_key) as other:
            other.submit_run("arrives", training()).cancel()
        url = httpx.URL(f"http://x{request.path}").copy_set_param("limit", "2")
        return forward(
            platform, Request(request.method, url.raw_path.decode(), request.headers, request.body)
        )

    with Client(serve(script).url, platform.api_key) as paging:
        runs = list(paging._http.pages("/v1/runs", Run))

    seen = [run.slug for run in runs]
    assert len(seen) == len(set(seen))
    assert [slug for slug in seen if slug in before] == before[::-1]


def test_a_bad_cursor_is_refused(client: Client):
    with pytest.raises(InvalidRequestError, match="cursor"):
        client._http.get("/v1/runs", Run, params={"cursor": "no-cursor-of-ours"})


def test_many_clients_at_once_each_get_their_own_run(platform: Any, client: Client):
    def submit(number: int) -> str:
        with Client(platform.url, platform.api_key) as one:
            return one.submit_run(f"crowd {number}", training()).cancel().slug

    with ThreadPoolExecutor(8) as pool:
        slugs = list(pool.map(submit, range(8)))

    assert len(set(slugs)) == 8


def test_small_numbers_arrive_as_numbers(client: Client):
    handle = client.submit_run(
        "numbers", training(tasks=[{"learning_rate": 1e-5}, {"learning_rate": 5e-6}, {"desired_kl": None}])
    )
    handle.cancel()

    params = [task.params for task in handle.get_tasks()]
    assert params == [{"learning_rate": 1e-5}, {"learning_rate": 5e-6}, {"desired_kl": None}]
    assert type(params[0]["learning_rate"]) is float
    assert json.dumps(params[0]) == '{"learning_rate": 1e-05}'
