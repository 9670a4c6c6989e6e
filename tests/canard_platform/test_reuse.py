"""Runs with `reuse`: what was trained before is there at once, what is being trained is waited for."""

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from stage import Stage, iteration

SEEDS = [{"seed": 1}, {"seed": 2}]
TRAINING = {"task_name": "Canard-Cartpole-v0", "max_iterations": 10}


def post(stage: Stage, path: str = "/runs", *, name: str = "test", **config: Any) -> Any:
    body = {"name": name, "config": {"mode": "training", "training_config": TRAINING, **config}}
    return stage.http.post(path, json=body)


def reusing(stage: Stage, *members: dict[str, Any], name: str = "again", **config: Any) -> dict[str, Any]:
    answer = post(stage, name=name, tasks=list(members or SEEDS), reuse=True, **config)
    assert answer.status_code == 201, answer.text
    run: dict[str, Any] = answer.json()
    return run


def trained(stage: Stage, *members: dict[str, Any], **config: Any) -> dict[str, Any]:
    """A run of these members that has completed, with a point of the curve and a checkpoint each."""
    run = stage.submit(tasks=list(members or SEEDS), **config)
    for _ in members or SEEDS:
        worker = stage.claim()
        worker.start()
        worker.events(0, iteration(10, 9.0))
        worker.complete()
    return stage.run(run["slug"])


def statuses(stage: Stage, slug: str) -> list[str]:
    return [task["status"] for task in stage.tasks(slug)]


def test_a_run_that_was_trained_before_is_complete_at_once(stage: Stage):
    before = trained(stage)

    run = reusing(stage)

    assert run["slug"] != before["slug"]
    assert (run["status"], run["completed_tasks"], run["reused_count"]) == ("completed", 2, 2)
    assert run["progress_fraction"] == 1
    tasks = stage.tasks(run["slug"])
    assert [task["reused_from"] for task in tasks] == [f"{before['slug']}/0", f"{before['slug']}/1"]
    assert [task["training"]["mean_reward"] for task in tasks] == [9.0, 9.0]
    assert [task["s3_key"] for task in tasks] == [task["s3_key"] for task in stage.tasks(before["slug"])]


def test_an_extended_grid_trains_only_what_is_new(stage: Stage):
    before = trained(stage)

    run = reusing(stage, *SEEDS, {"seed": 3})

    assert statuses(stage, run["slug"]) == ["completed", "completed", "queued"]
    assert run["status"] == "running"
    assert run["reuse"]["members"] == [
        {"index": 0, "source": f"{before['slug']}/0", "is_done": True},
        {"index": 1, "source": f"{before['slug']}/1", "is_done": True},
    ]
    spec = stage.claim().start()
    assert spec["config"]["seed"] == 3


def test_what_failed_or_was_cancelled_is_trained(stage: Stage):
    before = stage.submit(tasks=SEEDS)
    worker = stage.claim()
    worker.start()
    worker.commit("failed", retryable=False, error="no such joint")
    stage.http.post(f"/runs/{before['slug']}/cancel")
    assert statuses(stage, before["slug"]) == ["failed", "cancelled"]

    run = reusing(stage)

    assert statuses(stage, run["slug"]) == ["queued", "queued"]
    assert run["reuse"]["members"] == []


def test_without_reuse_all_of_it_is_trained_again(stage: Stage):
    trained(stage)

    run = stage.submit(tasks=SEEDS)

    assert statuses(stage, run["slug"]) == ["queued", "queued"]
    assert run["reused_count"] == 0


def test_another_value_another_task_or_another_user_is_another_training(stage: Stage):
    trained(stage)

    assert reusing(stage, {"seed": 1, "learning_rate": 1e-4})["reused_count"] == 0
    assert reusing(stage, training_config={**TRAINING, "max_iterations": 11})["reused_count"] == 0
    assert (
        stage.http.post(
            "/runs",
            json={"name": "x", "config": {"mode": "training", "training_config": TRAINING, "tasks": SEEDS,
                                          "reuse": True}},
            headers=stage.key_of("eve"),
        ).json()["reused_count"]
        == 0
    )  # fmt: skip


def test_the_same_values_written_otherwise_are_the_same_training(stage: Stage):
    trained(stage, {"seed": 1, "gamma": 1, "learning_rate": 0.001})

    run = reusing(stage, {"learning_rate": 1e-3, "gamma": 1.0, "seed": 1, "gpu_count": 1})

    assert run["reused_count"] == 1


def test_members_without_a_seed_are_draws_that_are_each_used_once(stage: Stage):
    trained(stage, {}, {})

    run = reusing(stage, {}, {}, {})

    assert statuses(stage, run["slug"]) == ["completed", "completed", "queued"]
    sources = [task["reused_from"] for task in stage.tasks(run["slug"])]
    assert len(set(sources)) == 3


def test_the_same_run_that_has_not_ended_is_come_back_to(stage: Stage):
    first = reusing(stage)

    again = post(stage, name="again", tasks=SEEDS, reuse=True)

    assert (again.status_code, again.json()["slug"]) == (200, first["slug"])
    assert again.json()["submitted_as"] == "active"
    assert len(stage.http.get("/runs").json()["items"]) == 1


def test_a_run_that_is_being_cancelled_is_not_come_back_to(stage: Stage):
    first = reusing(stage)
    stage.claim().start()
    stage.http.post(f"/runs/{first['slug']}/cancel")

    again = reusing(stage)

    assert again["slug"] != first["slug"]
    assert statuses(stage, again["slug"]) == ["queued", "queued"]


def test_a_member_that_another_run_is_training_waits_and_takes_its_result(stage: Stage):
    first = stage.submit(tasks=SEEDS[:1])
    worker = stage.claim()
    worker.start()
    worker.events(0, iteration(5, 4.0))

    run = reusing(stage, SEEDS[0])

    assert run["following_count"] == 1
    assert nothing_to_claim_for(stage, run)
    [waiting] = stage.tasks(run["slug"])
    assert (waiting["status"], waiting["progress_percent"]) == ("queued", 50)
    assert waiting["reused_from"] == f"{first['slug']}/0"
    worker.complete()
    assert stage.run(run["slug"])["status"] == "completed"
    [done] = stage.tasks(run["slug"])
    assert (done["training"]["mean_reward"], done["reused_from"]) == (9.0, f"{first['slug']}/0")


def nothing_to_claim_for(stage: Stage, run: dict[str, Any]) -> bool:
    with pytest.raises(AssertionError):
        stage.claim()
    return statuses(stage, run["slug"]) == ["queued"] * run["num_tasks"]


def test_when_the_source_fails_one_follower_is_trained_and_the_others_follow_it(stage: Stage):
    stage.submit(tasks=SEEDS[:1])
    source = stage.claim()
    source.start()
    second = reusing(stage, SEEDS[0], name="second")
    third = reusing(stage, SEEDS[0], name="third")

    source.commit("failed", retryable=False, error="diverged")

    worker = stage.claim()
    worker.start()
    with pytest.raises(AssertionError):
        stage.claim()
    worker.complete()
    assert stage.run(second["slug"])["status"] == "completed"
    assert stage.run(third["slug"])["status"] == "completed"
    assert stage.tasks(third["slug"])[0]["reused_from"] == f"{second['slug']}/0"
    assert stage.tasks(second["slug"])[0]["reused_from"] is None


def test_a_cancelled_source_lets_its_follower_train(stage: Stage):
    first = stage.submit(tasks=SEEDS[:1])
    second = reusing(stage, SEEDS[0])

    stage.http.post(f"/runs/{first['slug']}/cancel")

    stage.claim().complete()
    assert stage.run(second["slug"])["status"] == "completed"
    assert stage.run(first["slug"])["status"] == "cancelled"


def test_a_cancelled_follower_leaves_its_source_alone_and_can_be_retried(stage: Stage):
    first = stage.submit(tasks=SEEDS[:1])
    second = reusing(stage, SEEDS[0])

    stage.http.post(f"/runs/{second['slug']}/cancel")

    assert stage.run(second["slug"])["status"] == "cancelled"
    assert stage.run(first["slug"])["status"] == "queued"
    stage.http.post(f"/runs/{second['slug']}/retry")
    stage.claim().complete()
    stage.claim().complete()
    assert stage.run(second["slug"])["status"] == "completed"


def test_files_and_curve_of_a_reused_task_are_those_of_its_source(stage: Stage):
    trained(stage)
    run = reusing(stage)

    artifacts = stage.http.get(f"/runs/{run['slug']}/artifacts").json()["items"]
    history = stage.http.get(f"/runs/{run['slug']}/metrics").json()["training"]["reward_history"]

    tasks = [task["id"] for task in stage.tasks(run["slug"])]
    assert [artifact["task_id"] for artifact in artifacts] == tasks
    assert [point["task_id"] for point in history] == tasks
    url = stage.http.get(f"/runs/{run['slug']}/artifacts/url", params={"key": artifacts[0]["s3_key"]})
    assert stage.http.get(url.json()["url"]).content == b"weights"
    only = stage.http.get(f"/runs/{run['slug']}/artifacts", params={"task_id": tasks[1]}).json()["items"]
    assert [artifact["task_id"] for artifact in only] == tasks[1:]


def test_files_are_paged_task_by_task(stage: Stage):
    trained(stage, *SEEDS, {"seed": 3})
    run = reusing(stage, {"seed": 3}, *SEEDS)

    pages, cursor = [], None
    while True:
        query = {"limit": 1} if cursor is None else {"limit": 1, "cursor": cursor}
        page = stage.http.get(f"/runs/{run['slug']}/artifacts", params=query).json()
        pages += [artifact["task_id"] for artifact in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert pages == [task["id"] for task in stage.tasks(run["slug"])]


def test_a_file_of_the_source_is_not_one_of_a_run_that_does_not_have_its_result(stage: Stage):
    before = trained(stage, {"seed": 1})
    other = reusing(stage, {"seed": 9})
    key = stage.tasks(before["slug"])[0]["s3_key"]

    answer = stage.http.get(f"/runs/{other['slug']}/artifacts/url", params={"key": key})

    assert answer.status_code == 404


def test_the_dashboard_shows_where_a_result_comes_from(stage: Stage):
    before = trained(stage)
    run = reusing(stage, *SEEDS, {"seed": 3})
    key = stage.http.headers["Authorization"].removeprefix("Bearer ")

    with httpx.Client(base_url=stage.url, trust_env=False) as browser:
        browser.post("/login", data={"key": key})
        page = browser.get(f"/runs/{run['slug']}").text

    assert f'with the result of <a href="/runs/{before["slug"]}">{before["slug"]}/1</a>' in page
    assert "2 of 3 completed (2 reused)" in page


def test_a_preview_says_what_a_submit_would_do_and_does_nothing(stage: Stage):
    before = trained(stage)

    preview = post(stage, "/runs/preview", name="again", tasks=[*SEEDS, {"seed": 3}], reuse=True)

    assert preview.status_code == 200
    assert preview.json()["num_tasks"] == 3
    assert [member["source"] for member in preview.json()["reuse"]["members"]] == [
        f"{before['slug']}/0",
        f"{before['slug']}/1",
    ]
    assert len(stage.http.get("/runs").json()["items"]) == 1


def test_a_preview_names_the_run_that_a_submit_comes_back_to(stage: Stage):
    run = reusing(stage)

    preview = post(stage, "/runs/preview", name="again", tasks=SEEDS, reuse=True).json()

    assert preview["active_run"] == run["slug"]
    assert post(stage, "/runs/preview", name="other", tasks=SEEDS, reuse=True).json()["active_run"] is None


def test_a_preview_refuses_what_a_submit_refuses(stage: Stage):
    answer = post(stage, "/runs/preview", tasks=[{"learning_rate": -1}], reuse=True)

    assert answer.status_code == 422
    assert answer.json()["field"] == "learning_rate"


def test_code_counts_by_its_commit_and_not_by_its_branch(stage: Stage, tmp_path: Path):
    repository = committed(tmp_path / "code", "one")
    run = trained(stage, {"seed": 1}, training_config={**TRAINING, "code_url": str(repository)})
    assert run["status"] == "completed"
    at_branch = {**TRAINING, "code_url": str(repository), "code_ref": "main"}

    same = reusing(stage, {"seed": 1}, training_config=at_branch)
    committed(repository, "two")
    moved = reusing(stage, {"seed": 1}, training_config=at_branch)

    assert (same["reused_count"], moved["reused_count"]) == (1, 0)


def test_a_checkpoint_counts_by_its_content(stage: Stage, tmp_path: Path):
    file = tmp_path / "model_1.pt"
    file.write_bytes(b"one")
    start = {**TRAINING, "checkpoint_url": str(file)}
    trained(stage, {"seed": 1}, training_config=start)
    copy = tmp_path / "copy.pt"
    copy.write_bytes(b"one")

    same = reusing(stage, {"seed": 1}, training_config={**TRAINING, "checkpoint_url": str(copy)})
    file.write_bytes(b"two")
    other = reusing(stage, {"seed": 1}, training_config=start)

    assert (same["reused_count"], other["reused_count"]) == (1, 0)
    assert stage.claim().start()["start_from"]["sha256"] == hashlib.sha256(b"two").hexdigest()


def test_a_repository_that_cannot_be_asked_is_told_and_its_members_are_trained(stage: Stage):
    config = {**TRAINING, "code_url": "https://127.0.0.1:1/nobody/here.git"}

    run = reusing(stage, {"seed": 1}, {"seed": 2}, training_config=config)

    assert statuses(stage, run["slug"]) == ["queued", "queued"]
    assert "2 members are trained without looking for earlier results" in run["reuse"]["note"]
    assert "https://127.0.0.1:1/nobody/here.git" in run["reuse"]["note"]


def test_many_reused_members_need_a_few_statements(stage: Stage, counted: Any):
    members = [{"seed": seed} for seed in range(300)]
    trained_by_hand(stage, members)

    with counted(stage.services.database) as statements:
        run = reusing(stage, *members)

    assert run["reused_count"] == 300
    assert len(statements) < 40


def trained_by_hand(stage: Stage, members: list[dict[str, Any]]) -> None:
    """Completed in one statement: three hundred reports take their time."""
    from sqlalchemy import update

    from canard_platform.store.tables import Run, Task

    slug = stage.submit(tasks=members)["slug"]
    with stage.services.database.write() as session:
        session.execute(
            update(Task).values(
                status="completed", progress=1.0, completed_at=stage.clock.now(), iteration=10
            )
        )
        session.execute(update(Run).where(Run.slug == slug).values(status="completed"))


def committed(folder: Path, text: str) -> Path:
    """A repository with one more commit on main."""
    folder.mkdir(exist_ok=True)
    (folder / "task.py").write_text(text)
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", text]):
        subprocess.run(["git", *identity, *command], cwd=folder, check=True, capture_output=True)
    return folder
