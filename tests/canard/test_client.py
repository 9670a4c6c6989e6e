"""What the client sends, prints and refuses."""

import logging
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import Answer, FakeTime, Request, Script, Server, problem, run_json

from canard import Client, RunConfig, TrainingConfig
from canard.credentials import store_key
from canard.errors import (
    CredentialsError,
    DownloadError,
    InvalidRequestError,
    RunFailedError,
    RunNotFoundError,
    ServerError,
)
from canard.retries import Patience

Serve = Callable[[Script], Server]
CODE_URL = "https://github.com/canard-cloud/go2-standing-env"


@pytest.fixture
def server(serve: Serve) -> Server:
    """Takes every run."""
    return serve(lambda request: Answer(201, run_json(num_tasks=1)))


@pytest.fixture
def client(server: Server, fake_time: FakeTime) -> Iterator[Client]:
    patience = Patience(clock=fake_time.monotonic, sleep=fake_time.sleep)
    with Client(server.url, "s3cret", patience=patience) as client:
        yield client


def sent_config(server: Server) -> dict[str, Any]:
    [request] = server.requests
    return request.json["config"]


# Submitting


def test_the_documented_example_sends_what_it_says(client: Client, server: Server):
    run = client.submit_training_run(
        name="custom-ppo",
        task_name="Template-Go2-Standing-Direct-v0",
        code_url=CODE_URL,
        num_envs=4096,
        max_iterations=5000,
        gpu_count=2,
        learning_rate=3e-4,
        clip_param=0.2,
        entropy_coef=0.01,
        gamma=0.99,
        desired_kl=0.01,
    )

    assert run.slug == "run_a1b2c3d4"
    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/v1/runs")
    assert request.headers["Authorization"] == "Bearer s3cret"
    assert request.headers["Idempotency-Key"]
    assert request.json["name"] == "custom-ppo"
    config = RunConfig.model_validate(request.json["config"])
    assert config == RunConfig(
        mode="training",
        training_config=TrainingConfig(
            task_name="Template-Go2-Standing-Direct-v0",
            code_url=CODE_URL,
            num_envs=4096,
            max_iterations=5000,
            gpu_count=2,
            learning_rate=3e-4,
            clip_param=0.2,
            entropy_coef=0.01,
            gamma=0.99,
            desired_kl=0.01,
        ),
    )


def test_a_large_body_is_sent_packed_and_a_small_one_as_it_is(client: Client, server: Server):
    client.submit_training_run("small", code_url=CODE_URL)
    client.submit_training_sweep("large", code_url=CODE_URL, sweep_params={"seed": list(range(5000))})

    small, large = server.requests
    assert "Content-Encoding" not in small.headers
    assert large.headers["Content-Encoding"] == "gzip"
    [sweep] = large.json["config"]["sweep_configs"]
    assert sweep["values"] == list(range(5000))
    assert len(large.body) < len(str(sweep["values"])) / 2


def test_the_defaults_are_the_documented_ones_of_the_client(client: Client, server: Server):
    client.submit_training_run("a", code_url=CODE_URL)

    training = sent_config(server)["training_config"]
    assert training["task_name"] == "Template-G1-Training-Direct-v0"
    assert (training["num_envs"], training["max_iterations"], training["gpu_count"]) == (1000, 1500, 2)
    assert (training["video_enabled"], training["video_interval"]) == (False, 2000)


def test_every_ppo_network_and_reward_field_is_taken_as_a_keyword(client: Client, server: Server):
    fields: dict[str, Any] = {
        "learning_rate": 1e-5,
        "clip_param": 0.1,
        "entropy_coef": 0.0,
        "gamma": 0.9,
        "lam": 0.9,
        "num_learning_epochs": 3,
        "num_mini_batches": 2,
        "desired_kl": 0.02,
        "max_grad_norm": 0.5,
        "schedule": "fixed",
        "actor_hidden_dims": [64, 32],
        "critic_hidden_dims": [64],
        "activation": "relu",
        "init_noise_std": 0.3,
        "reward_weights": {"alive": 2.0},
    }

    client.submit_training_run(
        "a", code_url=CODE_URL, enable_video=True, video_interval=50, seed=7, code_ref="12e4567", **fields
    )

    sent = sent_config(server)["training_config"]
    assert {name: sent[name] for name in fields} == fields
    assert (sent["video_enabled"], sent["video_interval"], sent["seed"]) == (True, 50, 7)
    assert sent["code_ref"] == "12e4567"


@pytest.mark.parametrize(
    ("arguments", "field", "told"),
    [
        ({"learing_rate": 1e-4}, "learing_rate", "did you mean 'learning_rate'"),
        ({"video_enabled": True}, "video_enabled", "this method calls it enable_video"),
        ({"enable_vide": True}, "enable_vide", "did you mean 'enable_video'"),
        ({"num_envs": 20_000}, "num_envs", "num_envs: should be less than or equal to 10000, not 20000"),
        ({"enable_video": "yes"}, "enable_video", "enable_video: should be a valid boolean, not 'yes'"),
        ({"gpu_count": 3}, "gpu_count", "gpu_count: must be 1, 2, 4 or 8, not 3"),
        ({"learning_rate": math.nan}, "learning_rate", "learning_rate: should be a finite number"),
        ({"seed": True}, "seed", "seed: must be a number, not True"),
        ({"code_ref": 1234567}, "code_ref", "code_ref: .*quote it: '1234567'"),
        (
            {"reward_weights": {"alive": "x"}},
            "reward_weights.alive",
            "reward_weights.alive: must be a number",
        ),
        ({"code_url": None}, "code_url", "code_url: is required here.*submit_run"),
        ({"code_url": ""}, "code_url", "code_url"),
        ({"name": ""}, "name", "name: "),
        ({"name": 3.1}, "name", "name: .*quote it: '3.1'"),
    ],
)
def test_a_wrong_argument_is_refused_here_naming_it(
    client: Client, server: Server, arguments: dict[str, Any], field: str, told: str
):
    with pytest.raises(InvalidRequestError, match=told) as refused:
        client.submit_training_run(**{"name": "a", "code_url": CODE_URL, **arguments})

    assert refused.value.field == field
    assert server.requests == []


def test_code_url_must_be_said(client: Client):
    with pytest.raises(TypeError, match="code_url"):
        client.submit_training_run("a")  # type: ignore[call-arg]


def test_a_relative_path_to_code_is_sent_as_an_absolute_one(
    client: Client, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "my-env").mkdir()
    monkeypatch.chdir(tmp_path)

    client.submit_training_run("a", code_url="my-env")

    assert sent_config(server)["training_config"]["code_url"] == str(tmp_path / "my-env")


def test_a_sweep_is_one_run_with_a_task_for_each_combination(client: Client, server: Server):
    client.submit_training_sweep(
        "sweep",
        code_url=CODE_URL,
        sweep_params={"learning_rate": [1e-4, 3e-4], "reward_weights.alive": (1, 2)},
        gamma=0.99,
        video_interval=100,
    )

    config = sent_config(server)
    assert config["sweep_configs"] == [
        {"parameter": "learning_rate", "values": [1e-4, 3e-4]},
        {"parameter": "reward_weights.alive", "values": [1, 2]},
    ]
    assert config["training_config"]["gamma"] == 0.99
    assert config["training_config"]["video_interval"] == 100


@pytest.mark.parametrize("sweep_params", [None, {}])
def test_a_sweep_over_nothing_is_one_training(client: Client, server: Server, sweep_params: Any):
    client.submit_training_sweep("sweep", code_url=CODE_URL, sweep_params=sweep_params)

    assert sent_config(server)["sweep_configs"] is None


@pytest.mark.parametrize(
    ("sweep_params", "field", "told"),
    [
        ({"learing_rate": [1]}, "sweep_params.learing_rate", "did you mean 'learning_rate'"),
        ({"learning_rate": []}, "sweep_params.learning_rate.values", "at least 1 item"),
        ({"learning_rate": 1e-4}, "sweep_params.learning_rate", "must be a list of values, not 0.0001"),
        ({"activation": "relu"}, "sweep_params.activation", "must be a list of values"),
        ({"learning_rate": [1e-4, math.inf]}, "sweep_params.learning_rate.values.1", "finite"),
        ({"num_envs": [64, 20_000]}, "num_envs", r"member 1 \(num_envs=20000\).*10000"),
    ],
)
def test_a_wrong_sweep_is_refused_here(
    client: Client, server: Server, sweep_params: dict[str, Any], field: str, told: str
):
    with pytest.raises(InvalidRequestError, match=told) as refused:
        client.submit_training_sweep("sweep", code_url=CODE_URL, sweep_params=sweep_params)

    assert refused.value.field == field
    assert server.requests == []


def test_a_raw_config_is_checked_like_any_other(client: Client, server: Server):
    with pytest.raises(
        InvalidRequestError, match=r"training_config: unknown field 'nun_envs'|num_envs"
    ) as refused:
        client.submit_run(
            "a", {"mode": "training", "training_config": {"task_name": "Ant-v5", "nun_envs": 5}}
        )
    assert refused.value.field == "training_config.nun_envs"

    client.submit_run("a", {"mode": "physics", "steps": 10})
    assert sent_config(server)["steps"] == 10


def test_two_submits_have_two_idempotency_keys_and_a_given_one_is_kept(client: Client, server: Server):
    client.submit_run("a", RunConfig())
    client.submit_run("a", RunConfig())
    client.submit_run("a", RunConfig(), idempotency_key="mine")

    first, second, third = (request.headers["Idempotency-Key"] for request in server.requests)
    assert len({first, second, third}) == 3
    assert third == "mine"


def test_a_submit_prints_the_estimated_cost_and_the_whole_dashboard_url(
    client: Client, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "20")
    # 4100 envs on one GPU: 1.2 s an iteration, 1500 of them: half an hour at $0.50.
    run = client.submit_training_run("[bold]", code_url=CODE_URL, num_envs=4100, gpu_count=1)

    printed = capsys.readouterr().out
    assert "$0.25" in printed
    assert "on this machine it costs nothing" in printed
    assert f"Dashboard: {run.dashboard_url}\n" in printed


def test_the_estimate_of_a_sweep_sums_its_members(client: Client, capsys: pytest.CaptureFixture[str]):
    client.submit_training_sweep(
        "a", code_url=CODE_URL, gpu_count=1, num_envs=4100, sweep_params={"max_iterations": [1500, 3000]}
    )

    assert "$0.75 (2 tasks, about 60 min all at once)" in capsys.readouterr().out


def test_wait_blocks_until_the_run_ended(serve: Serve):
    def script(request: Request) -> Answer:
        if request.method == "POST":
            return Answer(201, run_json())
        if request.path.startswith("/v1/runs/run_a1b2c3d4/tasks"):
            return Answer(200, {"items": [], "next_cursor": None})
        return Answer(200, run_json(status="failed"))

    with (
        Client(serve(script).url, "k") as client,
        pytest.raises(RunFailedError, match="run_a1b2c3d4 failed: 0 of 1 tasks completed"),
    ):
        client.submit_run("a", RunConfig(), wait=True)


def test_ctrl_c_during_a_submit_tells_which_run_it_made(
    serve: Serve, capsys: pytest.CaptureFixture[str], fake_time: FakeTime
):
    made: dict[str, Any] = {}

    def script(request: Request) -> Answer:
        key = request.headers["Idempotency-Key"]
        made.setdefault(key, run_json())
        return Answer(503, {}, {"Retry-After": "5"}) if len(server.requests) == 1 else Answer(200, made[key])

    def pressed(seconds: float) -> None:
        raise KeyboardInterrupt

    server = serve(script)
    with (
        Client(server.url, "k", patience=Patience(sleep=pressed)) as client,
        pytest.raises(KeyboardInterrupt),
    ):
        client.submit_run("a", RunConfig())

    told = capsys.readouterr().err
    assert "canard watch run_a1b2c3d4" in told
    assert "canard cancel run_a1b2c3d4" in told
    assert len(made) == 1


# Where the dashboard is


def test_the_server_says_where_the_dashboard_is(serve: Serve):
    server = serve(
        lambda _: Answer(200, run_json(dashboard_url="https://app.canard.cloud/runs/run_a1b2c3d4"))
    )
    with Client(server.url, "k") as client:
        assert client.get_run("run_a1b2c3d4").dashboard_url == "https://app.canard.cloud/runs/run_a1b2c3d4"


def test_an_explicit_dashboard_url_wins(server: Server):
    with Client(server.url, "k", "https://dash.example.org/") as client:
        assert client.dashboard_url == "https://dash.example.org"
        handle = client.submit_run("a", RunConfig())

    assert handle.url == handle.dashboard_url == "https://dash.example.org/runs/run_a1b2c3d4"
    assert handle.run.dashboard_url == handle.url


def test_without_either_the_dashboard_is_at_the_api(serve: Serve):
    server = serve(lambda _: Answer(200, run_json(dashboard_url=None)))
    with Client(f"{server.url}/", "k") as client:
        assert client.api_url == server.url
        assert client.get_run("run_a1b2c3d4").dashboard_url == f"{server.url}/runs/run_a1b2c3d4"


# Looking


@pytest.mark.parametrize("slug", ["", "../health", "run a", "a/b", "run_x?y", None])
def test_what_cannot_be_a_slug_is_no_run(client: Client, server: Server, slug: Any):
    with pytest.raises(RunNotFoundError, match="a slug looks like"):
        client.get_run(slug)
    assert server.requests == []


def test_an_unknown_run_is_a_run_not_found_error(serve: Serve):
    server = serve(lambda _: problem(404, "run_not_found", "no run run_zzzzzzzz"))
    with Client(server.url, "k") as client, pytest.raises(RunNotFoundError, match="run_zzzzzzzz"):
        client.get_run_metrics("run_zzzzzzzz")


def test_list_runs_fetches_as_many_pages_as_the_limit_takes(serve: Serve):
    def script(request: Request) -> Answer:
        page = 1 + int(request.path.partition("cursor=")[2].partition("&")[0] or 0)
        items = [run_json(id=page * 1000 + n, status="paused") for n in range(100)]
        return Answer(200, {"items": items, "next_cursor": str(page) if page < 4 else None})

    server = serve(script)
    with Client(server.url, "k") as client:
        assert len(client.list_runs()) == 100
        assert len(client.list_runs(limit=250)) == 250
        runs = client.list_runs(limit=10**9)
        assert len({run.id for run in runs}) == 400
        assert {run.status for run in runs} == {"paused"}
        asked = len(server.requests)
        assert client.list_runs(limit=0) == []
        assert len(server.requests) == asked
        for wrong in (-1, 1.5, True, "5"):
            with pytest.raises(InvalidRequestError, match="limit"):
                client.list_runs(limit=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["runs/r/a b+c=1,é.pt", "s3://isaac-sim-results/runs/r/a b+c=1,é.pt"])
def test_a_key_reaches_the_platform_unchanged_and_without_its_bucket(serve: Serve, key: str):
    said: list[str] = []

    def script(request: Request) -> Answer:
        import httpx

        said.append(httpx.URL(f"http://x{request.path}").params["key"])
        told = {"url": "http://127.0.0.1/x", "size_bytes": 1, "sha256": "0" * 64}
        return Answer(200, {**told, "expires_at": "2026-01-02T03:04:05Z"})

    with Client(serve(script).url, "k") as client:
        assert client.get_artifact_url("run_a1b2c3d4", key) == "http://127.0.0.1/x"

    assert said == ["runs/r/a b+c=1,é.pt"]


def test_a_key_in_a_bucket_that_is_not_the_clients_is_refused(client: Client):
    with pytest.raises(InvalidRequestError, match=r"bucket 'other' is neither.*'isaac-sim-results'"):
        client.get_artifact_url("run_a1b2c3d4", "s3://other/runs/r/m.pt")


def test_an_unknown_artifact_type_is_refused_with_the_known_ones(client: Client, server: Server):
    with pytest.raises(InvalidRequestError, match=r"must be one of checkpoint, video, .*, not 'checkpoints'"):
        client.list_artifacts("run_a1b2c3d4", "checkpoints")
    assert server.requests == []


@pytest.mark.parametrize(
    "key", ["../x", "runs/../../x", "runs/r/..", "/etc/passwd", "runs//x", "runs/a\\..\\b", "a\0b", ""]
)
def test_a_hostile_key_is_refused_before_anything_is_asked(
    client: Client, server: Server, key: str, tmp_path: Path
):
    with pytest.raises(DownloadError, match="not safe"):
        client.download_artifact("run_a1b2c3d4", key, tmp_path / "out")

    assert server.requests == []
    assert not (tmp_path / "out").exists()


# The key


def test_the_key_shows_in_no_repr_and_no_log(server: Server, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    with Client(server.url, "s3cret-key") as client:
        client.submit_run("a", RunConfig())
        told = f"{client!r} {client.__dict__!r} {client._http.__dict__!r} {caplog.text}"

    assert repr(client) == f"Client(api_url='{server.url}')"
    assert "s3cret-key" not in told


def test_the_key_in_the_file_is_found_by_the_address(server: Server):
    store_key(server.url, "from-file")
    with Client(api_url=server.url.replace("127.0.0.1", "localhost")) as client:
        client.submit_run("a", RunConfig())

    assert server.requests[0].headers["Authorization"] == "Bearer from-file"


def test_a_client_without_a_key_says_how_to_give_one():
    with pytest.raises(CredentialsError, match=r"pass api_key=.*CANARD_API_KEY"):
        Client(api_url="https://api.canard.cloud")


def test_a_wrong_address_is_an_error_that_says_so(serve: Serve):
    server = serve(lambda _: Answer(200, b"<html></html>", {"Content-Type": "text/html"}))
    with Client(server.url, "k") as client, pytest.raises(ServerError, match="is api_url the platform's API"):
        client.get_queue_status()


def test_the_documented_attributes_are_kept():
    with Client("https://api.canard.cloud", "k", None, "results", "boards", "eu-west-1") as client:
        kept = (client.s3_results_bucket, client.s3_tensorboard_bucket, client.aws_region)

    assert kept == ("results", "boards", "eu-west-1")
