"""A value as it was typed, followed to the end: request, database, the trainer's file, the optimiser."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import httpx
import pytest
import torch
from repositories import Repository

from canard import Client

pytestmark = pytest.mark.e2e

SMALL = ("num_envs=8", "max_iterations=1e0", "ppo.num_learning_epochs=1")


@pytest.fixture
def sweep(platform, tmp_path):
    """`canard-hydra -m ...` to the end, in an empty directory; the slug of its run."""

    def run(*arguments: str) -> str:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CANARD_")}
        done = subprocess.run(
            [sys.executable, "-m", "canard_hydra", "-m", "wait=true", *SMALL, *arguments],
            env=kept | {"CANARD_HOME": str(platform.home), "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.partition("Submitted ")[2].partition(" ")[0]

    return run


@pytest.mark.timeout(300)
def test_a_tiny_learning_rate_is_a_number_at_every_hop(sweep, platform, client, tmp_path):
    """hydra-ecosystem/hydra#999, yaml/pyyaml#173: read again as YAML, 1e-05 is text. Lists and null, too."""
    slug = sweep(
        "ppo=fixed",
        "ppo.learning_rate=1e-5,5E-6",
        "ppo.desired_kl=null,0.01",
        "network.actor_hidden_dims=[16, 8]",
    )

    expected = [(1e-5, None), (1e-5, 0.01), (5e-6, None), (5e-6, 0.01)]
    assert answered(platform, slug) == expected
    assert stored(platform, slug) == [(rate, "real", kl) for rate, kl in expected]
    handed = handed_to_the_trainer(platform, slug)
    for config in handed:
        assert type(config["learning_rate"]) is float
        assert config["actor_hidden_dims"] == [16, 8]
        assert config["video_enabled"] is False
        assert type(config["max_iterations"]) is int
    assert {(one["learning_rate"], one["desired_kl"]) for one in handed} == set(expected)
    assert optimised(client, slug, tmp_path) == [rate for rate, _ in expected]


def answered(platform, slug):
    """Of each task, as the platform's JSON says it."""
    answer = httpx.get(
        f"{platform.url}/v1/runs/{slug}/tasks",
        headers={"Authorization": f"Bearer {platform.api_key}"},
        trust_env=False,
        timeout=30,
    )
    return [
        (task["params"]["learning_rate"], task["params"]["desired_kl"]) for task in answer.json()["items"]
    ]


def stored(platform, slug):
    """Of each task, with the type that the database has it in."""
    return asked(
        platform,
        "SELECT json_extract(tasks.config, '$.learning_rate'), json_type(tasks.config, '$.learning_rate'),"
        " json_extract(tasks.config, '$.desired_kl')"
        ' FROM tasks JOIN runs ON runs.id = run_id WHERE slug = ? ORDER BY "index"',
        slug,
    )


def handed_to_the_trainer(platform, slug):
    attempts = asked(
        platform,
        "SELECT attempts.id FROM attempts JOIN tasks ON tasks.id = task_id JOIN runs ON runs.id = run_id"
        " WHERE slug = ?",
        slug,
    )
    files = [platform.home / "attempts" / attempt / "training.json" for [attempt] in attempts]
    return [json.loads(file.read_text()) for file in files]


def asked(platform, query, slug):
    with closing(sqlite3.connect(platform.home / "platform.db")) as database:
        return database.execute(query, [slug]).fetchall()


def optimised(client: Client, slug, directory):
    """The rate that each task's last checkpoint has in its optimiser."""
    rates = []
    for task in client.get_run_tasks(slug):
        file = client.download_artifact(slug, task.s3_key, directory / f"task-{task.index}")
        state = torch.load(file, weights_only=True)
        rates.append(state["optimizer_state_dict"]["param_groups"][0]["lr"])
    return rates


@pytest.mark.timeout(300)
def test_a_branch_that_looks_like_infinity_is_checked_out_by_its_name(sweep, client, repository: Repository):
    """hydra-ecosystem/hydra#2599, yaml/pyyaml#417."""
    named = repository.commit()
    repository.git("branch", "12e4567")
    repository.commit({"hover_env/__init__.py": "raise RuntimeError('this commit was not asked for')\n"})

    slug = sweep("task.task_name=Hover-v0", f'task.code_url="{repository.url}"', 'task.code_ref="12e4567"')

    [task] = client.get_run_tasks(slug)
    assert (task.status, task.code_commit) == ("completed", named)
    assert client.get_run(slug).config.training_config.code_ref == "12e4567"
