"""POST /v1/runs: all of it or nothing, once, and every refusal names its field."""

import gzip
import json
import subprocess
import threading
from pathlib import Path

import httpx
import pytest
from stage import Stage

SWEEP = [{"parameter": "learning_rate", "values": [1e-5, 3e-4]}, {"parameter": "seed", "values": [1, 2]}]
TRAINING = {"task_name": "Canard-Cartpole-v0", "max_iterations": 10}


def post(stage: Stage, config: object, **headers: str) -> httpx.Response:
    return stage.http.post("/runs", json={"name": "test", "config": config}, headers=headers)


def training(**fields: object) -> dict[str, object]:
    return {"mode": "training", "training_config": {**TRAINING, **fields}}


def test_a_sweep_is_one_run_with_a_task_for_each_combination(stage: Stage):
    run = stage.submit(sweep_configs=SWEEP)

    assert run["status"] == "queued"
    assert run["user_id"] == "local"
    assert run["dashboard_url"] == f"{stage.url}/runs/{run['slug']}"
    assert run["progress_fraction"] == 0
    tasks = stage.tasks(run["slug"])
    assert [task["index"] for task in tasks] == [0, 1, 2, 3]
    assert [task["params"] for task in tasks] == [
        {"learning_rate": 1e-05, "seed": 1},
        {"learning_rate": 1e-05, "seed": 2},
        {"learning_rate": 3e-4, "seed": 1},
        {"learning_rate": 3e-4, "seed": 2},
    ]
    assert type(tasks[0]["params"]["learning_rate"]) is float


def test_the_attempt_gets_the_resolved_config_with_the_types_of_the_model(stage: Stage):
    stage.submit(**training(learning_rate=1e-05, code_ref=None), sweep_configs=SWEEP[1:])

    spec = stage.claim().start()

    assert spec["config"]["learning_rate"] == 1e-05
    assert spec["config"]["seed"] == 1
    assert spec["config"]["max_iterations"] == 10


def test_explicit_tasks_come_back_with_the_run_and_stay_out_of_lists(stage: Stage):
    members = [{"seed": 3}, {"seed": 9, "learning_rate": 0.1}]

    run = stage.submit(tasks=members)

    assert [task["params"] for task in stage.tasks(run["slug"])] == members
    assert stage.run(run["slug"])["config"]["tasks"] == members
    [listed] = stage.http.get("/runs").json()["items"]
    assert listed["config"].get("tasks") is None


def test_a_draw_records_its_seed(stage: Stage):
    run = stage.submit(sweep_configs=SWEEP, num_samples=2)

    assert run["num_tasks"] == 2
    assert isinstance(run["config"]["sample_seed"], int)


def test_the_same_key_and_body_is_the_same_run(stage: Stage):
    first = post(stage, training(), **{"Idempotency-Key": "k"})
    again = post(stage, training(), **{"Idempotency-Key": "k"})

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["slug"] == again.json()["slug"]
    assert len(stage.http.get("/runs").json()["items"]) == 1


def test_the_same_key_with_another_body_is_a_conflict(stage: Stage):
    post(stage, training(), **{"Idempotency-Key": "k"})

    other = post(stage, training(seed=4), **{"Idempotency-Key": "k"})

    assert other.status_code == 409
    assert other.json()["code"] == "conflict"


def test_an_idempotency_key_belongs_to_its_user(stage: Stage):
    mine = post(stage, training(), **{"Idempotency-Key": "k"})
    theirs = post(stage, training(seed=4), **{"Idempotency-Key": "k"}, **stage.key_of("ada"))

    assert theirs.status_code == 201
    assert theirs.json()["slug"] != mine.json()["slug"]


def test_the_same_request_sent_many_times_at_once_makes_one_run(stage: Stage):
    answers: list[httpx.Response] = []
    senders = [
        threading.Thread(target=lambda: answers.append(post(stage, training(), **{"Idempotency-Key": "k"})))
        for _ in range(8)
    ]

    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(30)

    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert len({answer.json()["slug"] for answer in answers}) == 1
    assert len(stage.http.get("/runs").json()["items"]) == 1


@pytest.mark.parametrize(
    ("config", "field", "said"),
    [
        (
            training(learing_rate=1e-4),
            "config.training_config.learing_rate",
            "did you mean 'learning_rate'?",
        ),
        (training(num_envs=0), "config.training_config.num_envs", "greater than or equal to 1"),
        (training(num_envs=True), "config.training_config.num_envs", "must be a number"),
        (training(gpu_count=3), "config.training_config.gpu_count", "1, 2, 4 or 8"),
        ({**training(), "sweep_config": []}, "config.sweep_config", "did you mean 'sweep_configs'?"),
        ({**training(), "sweep_configs": [{"parameter": "lr", "values": [1]}]}, "lr", "member 0 (lr=1)"),
        (
            {**training(), "sweep_configs": [{"parameter": "gamma", "values": [0.9, 2]}]},
            "gamma",
            "member 1 (gamma=2)",
        ),
        ({**training(), "sweep_configs": SWEEP, "num_samples": 5}, "num_samples", "only 4 combinations"),
        ({"mode": "training"}, "config", "needs training_config"),
        (training(code_url="ext::sh -c id"), "code_url", "no address of a git repository"),
        (training(code_url="-upload-pack=id"), "code_url", "no address of a git repository"),
        (training(code_url="http://example.org/a/b"), "code_url", "no address of a git repository"),
        (training(code_url="file:///etc"), "code_url", "no address of a git repository"),
        (training(code_url="ssh://-oProxyCommand=id/x"), "code_url", "no address of a git repository"),
        (training(code_url="git@host:-x"), "code_url", "no address of a git repository"),
        (training(code_url="https://me:secret@example.org/a"), "code_url", "password or token"),
        (training(code_url="/no/such/folder"), "code_url", "is no folder"),
        (
            training(code_url="https://example.org/a/b", code_ref="--output=x"),
            "code_ref",
            "no branch, tag or commit",
        ),
        (training(checkpoint_url="https://example.org/m.pt"), "checkpoint_url", "no address of a checkpoint"),
        (training(checkpoint_url="model_1.pt"), "checkpoint_url", "no address of a checkpoint"),
        (training(checkpoint_url="/no/such/model_1.pt"), "checkpoint_url", "is no file"),
        (
            training(checkpoint_url="s3://b/runs/run_zzzzzzzz/checkpoints/m.pt"),
            "checkpoint_url",
            "no run 'run_zzzzzzzz'",
        ),
    ],
)
def test_a_bad_run_is_refused_by_field_and_leaves_nothing(stage: Stage, config, field: str, said: str):
    answer = post(stage, config)

    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "invalid_request")
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["field"] == field
    assert said in problem["detail"]
    assert stage.http.get("/runs").json()["items"] == []


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/canard-cloud/go2-standing-env",
        "https://git.example.org:8443/a/b.git",
        "ssh://git@example.org:2222/a/b.git",
        "git@github.com:canard-cloud/go2-standing-env.git",
    ],
)
def test_remote_repositories_are_left_to_the_first_checkout(stage: Stage, url: str):
    run = stage.submit(**training(code_url=url, code_ref="12e4567"))

    [task] = stage.tasks(run["slug"])
    assert task["code_commit"] is None
    spec = stage.claim().start()
    assert spec["config"]["code_ref"] == "12e4567"


def test_nan_is_refused_by_the_place_where_it_stands(stage: Stage):
    text = json.dumps(
        {"name": "x", "config": {"sweep_configs": [{"parameter": "m", "values": [float("nan")]}]}}
    )

    answer = stage.http.post("/runs", content=text, headers={"Content-Type": "application/json"})

    assert answer.status_code == 422
    assert answer.json()["field"] == "config.sweep_configs.0.values.0"


def test_half_a_surrogate_pair_is_refused_and_not_an_error_of_ours(stage: Stage):
    text = '{"name": "\\ud83d", "config": {"mode": "physics"}}'

    answer = stage.http.post("/runs", content=text, headers={"Content-Type": "application/json"})

    assert answer.status_code == 422


def test_more_tasks_than_a_run_may_have_are_counted_not_made(stage: Stage):
    sweep = [{"parameter": name, "values": list(range(1, 10_001))} for name in ("seed", "num_envs")]

    answer = post(stage, {**training(), "sweep_configs": sweep})

    assert answer.status_code == 422
    assert "100000000 tasks, more than the 20000" in answer.json()["detail"]


def test_two_thousand_tasks_are_stored_in_few_statements(stage: Stage, counted):
    with counted(stage.services.database) as statements:
        run = stage.submit(sweep_configs=[{"parameter": "seed", "values": list(range(2000))}])

    assert run["num_tasks"] == 2000
    assert len(statements) < 20


@pytest.mark.parametrize("says_its_length", [True, False])
def test_a_body_over_the_limit_is_refused(open_stage, says_its_length: bool):
    stage = open_stage(settings={"max_body_bytes": 1000})
    body = b'{"name": "' + b"x" * 2000 + b'"}'

    answer = stage.http.post(
        "/runs",
        content=body if says_its_length else iter([body]),
        headers={"Content-Type": "application/json"},
    )

    assert answer.status_code == 413
    assert answer.json()["code"] == "too_large"


def packed(stage: Stage, body: bytes, encoding: str = "gzip"):
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    return stage.http.post("/runs", content=body, headers=headers)


def test_a_gzip_body_is_the_body_that_it_unpacks_to(stage: Stage):
    body = json.dumps({"name": "packed", "config": training(seed=7)}).encode()

    answer = packed(stage, gzip.compress(body))

    assert answer.status_code == 201, answer.text
    assert answer.json()["config"]["training_config"]["seed"] == 7


def test_a_small_gzip_body_that_unpacks_to_one_over_the_limit_is_refused(open_stage):
    stage = open_stage(settings={"max_body_bytes": 10_000})
    body = gzip.compress(b'{"name": "' + b"x" * 5_000_000 + b'"}')
    assert len(body) < 10_000

    answer = packed(stage, body)

    assert answer.status_code == 413
    assert answer.json()["code"] == "too_large"


@pytest.mark.parametrize(
    ("body", "encoding", "status"),
    [
        (b"{}", "gzip", 422),
        (gzip.compress(b'{"name": "x"}')[:-9], "gzip", 422),
        (gzip.compress(b"{}") + b"more", "gzip", 422),
        (b"", "gzip", 422),
        (b"{}", "br", 415),
        (gzip.compress(gzip.compress(b"{}")), "gzip, gzip", 415),
    ],
    ids=["no gzip", "cut short", "more behind it", "nothing", "brotli", "twice"],
)
def test_a_body_that_is_not_what_its_encoding_says_is_refused(stage: Stage, body, encoding, status):
    answer = packed(stage, body, encoding)

    assert answer.status_code == status, answer.text
    assert "Content-Encoding" in answer.json()["detail"]


def test_more_gpus_than_the_largest_machine_has_are_refused(open_stage):
    stage = open_stage(gpus=("GPU-a", "GPU-b"))

    answer = post(stage, training(gpu_count=4))

    assert answer.status_code == 422
    assert answer.json()["detail"] == "gpu_count: 4, this platform's largest machine has 2 GPUs"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "a project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "file").write_text("one")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    return root


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    return subprocess.run([*command, *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("ref", [None, "main", "short", "full"])
def test_a_local_repository_is_pinned_at_submit(stage: Stage, repository: Path, ref: str | None):
    head = git(repository, "rev-parse", "HEAD")
    named = {"short": head[:8], "full": head}.get(ref or "", ref)

    run = stage.submit(**training(code_url=str(repository), code_ref=named))
    git(repository, "commit", "-qm", "two", "--allow-empty")

    assert [task["code_commit"] for task in stage.tasks(run["slug"])] == [head]
    assert stage.claim().start()["code_commit"] == head


def test_a_missing_ref_of_a_local_repository_lists_what_there_is(stage: Stage, repository: Path):
    answer = post(stage, training(code_url=str(repository), code_ref="mian"))

    assert answer.status_code == 422
    assert answer.json()["field"] == "code_ref"
    assert answer.json()["hint"] == "there is: main"


def test_a_folder_that_is_no_repository_is_refused(stage: Stage, tmp_path: Path):
    (tmp_path / "plain").mkdir()

    answer = post(stage, training(code_url=str(tmp_path / "plain")))

    assert answer.json()["field"] == "code_url"
    assert "is no git repository" in answer.json()["detail"]


def test_a_checkpoint_of_an_earlier_run_is_found_by_its_documented_url(stage: Stage):
    earlier = stage.submit()["slug"]
    worker = stage.claim()
    worker.complete(iteration=10)
    for url in (f"s3://isaac-sim-results/runs/{earlier}/checkpoints/model_10.pt",):
        stage.submit(**training(checkpoint_url=url, max_iterations=20))

    start_from = stage.claim().start()["start_from"]

    assert start_from["filename"] == "model_10.pt"
    assert stage.http.get(start_from["url"], headers={"Authorization": ""}).content == b"weights"


def test_a_checkpoint_that_is_not_there_is_refused_with_those_that_are(stage: Stage):
    earlier = stage.submit()["slug"]
    stage.claim().complete(iteration=10)

    answer = post(stage, training(checkpoint_url=f"s3://b/runs/{earlier}/checkpoints/model_99.pt"))

    assert answer.status_code == 422
    assert answer.json()["field"] == "checkpoint_url"
    assert "attempt-1/checkpoints/model_10.pt" in answer.json()["hint"]


def test_a_checkpoint_of_another_user_does_not_exist(stage: Stage):
    earlier = stage.submit()["slug"]
    stage.claim().complete(iteration=10)

    answer = post(
        stage,
        training(checkpoint_url=f"s3://b/runs/{earlier}/checkpoints/model_10.pt"),
        **stage.key_of("ada"),
    )

    assert answer.status_code == 422
    assert answer.json()["detail"] == f"checkpoint_url: no run '{earlier}'"


def test_a_local_checkpoint_is_handed_on_as_a_path(stage: Stage, tmp_path: Path):
    checkpoint = tmp_path / "model_5.pt"
    checkpoint.write_bytes(b"weights")
    for url in (str(checkpoint), checkpoint.as_uri()):
        stage.submit(**training(checkpoint_url=url))

    found = [stage.claim().start()["start_from"]["local_path"] for _ in range(2)]

    assert found == [str(checkpoint)] * 2
