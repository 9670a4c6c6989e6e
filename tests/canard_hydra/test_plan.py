"""mode=plan and what only shows: nothing submitted, nothing heavy, the numbers of the documents."""

import json
import os
import re
import subprocess
import sys

import pytest

from canard.models import TrainingConfig

HEAVY = ("torch", "boto3", "sqlalchemy", "fastapi", "ray", "trainer", "canard_platform", "gymnasium")
PROBE = """
import json, sys
from canard_hydra.app import run
status = run(sys.argv[1:])
print("PROBE", json.dumps([status, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def loaded_by(arguments, environment, directory):
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        cwd=directory, env=environment, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.rpartition("PROBE ")[2])


@pytest.mark.parametrize(
    "arguments",
    [["--cfg", "job"], ["mode=plan"], ["-m", "mode=plan", "seed=1,2"], ["--help"]],
    ids=" ".join,
)
def test_what_only_shows_loads_nothing_heavy(environment, directory, arguments):
    status, modules = loaded_by(arguments, environment, directory)

    assert status == 0
    assert not set(HEAVY) & set(modules)
    assert "httpx" not in modules


def test_showing_the_configuration_does_not_load_the_models(environment, directory):
    _, modules = loaded_by(["--cfg", "job"], environment, directory)

    assert "pydantic" not in modules


def test_a_plan_shows_members_values_and_costs(canard_hydra):
    done = canard_hydra("-m", "mode=plan", "ppo.learning_rate=1e-4,3e-4", "seed=1,2,3", "num_envs=4096")

    assert done.returncode == 0, done.stderr
    assert "6 members = 2 x 3 (ppo.learning_rate x seed)" in done.stdout
    rows = [
        re.split(r"\s*│\s*", line.strip("│ ")) for line in done.stdout.splitlines() if line.startswith("│")
    ]
    assert [row[:3] for row in rows] == [
        [str(index), rate, seed]
        for index, (rate, seed) in enumerate((r, s) for r in ("0.0001", "0.0003") for s in "123")
    ]
    costs = TrainingConfig(task_name="x", num_envs=4096, max_iterations=100).estimate_cost(total_tasks=6)
    assert f"Total: ${costs['total_cost']:.2f}" in done.stdout
    assert (
        "The same for all: task.task_name=Canard-Cartpole-v0 num_envs=4096 max_iterations=100" in done.stdout
    )
    assert "Nothing was submitted" in done.stdout


def test_a_plan_of_a_paired_sweep_shows_what_follows(canard_hydra):
    done = canard_hydra("-m", "mode=plan", "seed=1,2,3", "checkpoint_url=runs/r/model_${seed}.pt")

    assert "3 members = 3 (seed)" in done.stdout
    assert "runs/r/model_2.pt" in done.stdout


def test_a_plan_of_many_members_is_cut(canard_hydra):
    done = canard_hydra("-m", "mode=plan", "seed=range(22)")

    assert "22 members" in done.stdout
    assert "and 2 members more" in done.stdout


def test_members_that_are_the_same_are_told_with_their_indices(canard_hydra):
    done = canard_hydra("-m", "mode=plan", "ppo.learning_rate=1e-3,3e-4,0.001", "seed=1,1")

    assert (
        "Warning: members 0, 1, 4 and 5 are the same (ppo.learning_rate=0.001 seed=1); each is trained"
        in (done.stdout)
    )
    assert "Warning: members 2 and 3 are the same (ppo.learning_rate=0.0003 seed=1)" in done.stdout


def test_what_is_the_same_without_a_seed_is_a_draw_of_its_own(canard_hydra):
    done = canard_hydra("-m", "mode=plan", "ppo.gamma=0.99,0.99")

    assert "members 0 and 1 are the same (ppo.gamma=0.99); each is trained, with a seed drawn for each" in (
        done.stdout
    )


def test_no_member_of_a_grid_of_different_values_is_called_the_same(canard_hydra):
    done = canard_hydra(
        "-m", "mode=plan", "ppo.learning_rate=1e-3,null", "seed=1,2", "video_enabled=true,false"
    )

    assert "Warning" not in done.stdout


def test_many_groups_of_the_same_members_are_counted(canard_hydra):
    done = canard_hydra("-m", "mode=plan", "seed=1,1", "ppo.gamma=0.9,0.91,0.92,0.93,0.94")

    assert done.stdout.count("are the same (") == 3
    assert "Warning: and 2 groups more of members that are the same" in done.stdout


def test_a_plan_needs_no_address(canard_hydra):
    done = canard_hydra("mode=plan", "platform=self_hosted")

    assert done.returncode == 0, done.stderr


def test_a_plan_submits_nothing_and_asks_only_for_what_was_trained_before(canard_hydra, service):
    done = canard_hydra("-m", "mode=plan", "platform=self_hosted", "seed=1,2")

    assert done.returncode == 0
    assert [request.path for request in service.requests] == ["/v1/runs/preview"]


def test_a_plan_without_reuse_asks_nobody(canard_hydra, service):
    done = canard_hydra("-m", "mode=plan", "platform=self_hosted", "reuse=false", "seed=1,2")

    assert done.returncode == 0
    assert service.requests == []


def test_a_plan_refuses_what_a_submit_would(canard_hydra):
    done = canard_hydra("-m", "mode=plan", "seed=1,-2")

    assert done.returncode == 1
    assert "member 1 (seed=-2): seed: should be greater than or equal to 0" in done.stderr


def test_a_sweep_file_needs_no_m(canard_hydra):
    done = canard_hydra("mode=plan", "sweep=learning_rate")

    assert "12 members = 4 x 3 (ppo.learning_rate x seed)" in done.stdout


def test_the_command_line_wins_over_a_sweep_file(canard_hydra):
    done = canard_hydra("mode=plan", "sweep=learning_rate", "seed=7")

    assert "4 members = 4 (ppo.learning_rate)" in done.stdout


def test_output_that_nobody_reads_is_no_error(environment, directory):
    reader, writer = os.pipe()
    os.close(reader)

    done = subprocess.run(
        [sys.executable, "-m", "canard_hydra", "mode=plan"],
        cwd=directory, env=environment, stdout=writer, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(writer)

    assert done.stderr == ""


def test_help_explains_modes_and_groups(canard_hydra):
    done = canard_hydra("--help")

    assert done.returncode == 0
    for text in ("mode=plan", "mode=dry_run", "task: cartpole", "platform: cloud, local, self_hosted"):
        assert text in done.stdout


def test_the_configuration_is_shown_resolved(canard_hydra):
    done = canard_hydra("--cfg", "job", "--resolve", "num_envs=8")

    assert "num_envs: 8" in done.stdout
    assert "${" not in done.stdout


def test_the_shell_completes_options(canard_hydra):
    line = "canard-hydra task=cart"

    done = canard_hydra("-sc", "query=bash", COMP_LINE=line, COMP_POINT=str(len(line)))

    assert done.stdout.strip() == "task=cartpole"


def test_the_working_directory_stays_and_gets_hydras_records(canard_hydra, directory):
    canard_hydra("mode=plan", "hydra.run.dir=here")
    canard_hydra("-m", "mode=plan", "seed=1,2", "hydra.sweep.dir=there")

    assert (directory / "here" / ".hydra" / "config.yaml").is_file()
    assert "name: canard" in (directory / "here" / ".hydra" / "hydra.yaml").read_text()
    assert (directory / "there" / "multirun.yaml").is_file()
