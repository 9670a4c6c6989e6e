"""`canard check`: what is wrong in a conf/ folder is named by file and line, before anybody sweeps."""

import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from allpairspy import AllPairs
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from canard.cli.commands import ENTRY_POINTS, Commands
from canard_hydra.commands.check import check
from canard_hydra.conf_dir import conf_dir

Check = Callable[..., Result]


@pytest.fixture
def checked(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    monkeypatch.chdir(directory)
    monkeypatch.delenv("CANARD_API_URL", raising=False)

    def run(*arguments: str, **files: str) -> Result:
        for name, text in files.items():
            file = directory / "conf" / f"{name.replace('__', '/')}.yaml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return CliRunner().invoke(check, arguments)

    return run


def test_ours_is_right_and_says_what_only_its_user_can_say(checked):
    done = checked(str(conf_dir()))

    assert done.exit_code == 0, done.output
    notes = [line for line in done.output.splitlines() if line.startswith("note: ")]
    assert len(notes) == 2
    assert any("task/g1.yaml:3: task.code_url has no value yet (???)" in note for note in notes)
    assert any("platform/self_hosted.yaml:3: platform.api_url" in note for note in notes)
    assert "every pair of options, of 864 = " in done.output
    assert "no faults" in done.output


def test_every_fault_is_named_once_by_file_and_line(checked):
    done = checked(
        task__mine="task_name: Mine-v0\nnum_envs: 20000\nreward_weights:\n  alive: much\n",
        task__nameless="code_url: null\n",
        task__unitree__go2="task_name: X\nrubbish: 3\n",
        task__broken="task_name: [X\nnum_envs: 3\n",
        ppo__quick="defaults:\n  - default\n  - nothing\n",
        sweep__s="# @package _global_\nhydra:\n  mode: MULTIRUN\n  sweeper:\n    params:\n"
        "      seed: 1,2\n      ppo.gamma: 0.9,1.9\n",
        experiment__e="# @package _global_\nmode: sbmit\n",
    )

    assert done.exit_code == 1, done.output
    faults = [line for line in done.output.splitlines()[:-1] if not line.startswith("note: ")]
    assert sorted(line.partition("conf/")[2].partition(": ")[::2] for line in faults) == [
        ("experiment/e.yaml:2", "mode: should be 'submit', 'plan' or 'dry_run', not 'sbmit'"),
        ("ppo/quick.yaml:1", "its defaults name 'ppo/nothing', and there is no such file"),
        ("sweep/s.yaml:7", "ppo.gamma: should be less than or equal to 1, not 1.9"),
        ("task/broken.yaml:2", "cannot be read as YAML: expected ',' or ']', but got ':'"),
        ("task/mine.yaml:2", "num_envs: should be less than or equal to 10000, not 20000"),
        ("task/mine.yaml:4", "task.reward_weights.alive: must be a number, not 'much'"),
        ("task/nameless.yaml:1", "task.task_name: is missing; say it, as in task.task_name=..."),
        (
            "task/unitree/go2.yaml:2",
            "unknown key 'task.rubbish'; known are task.task_name, task.code_url, task.code_ref,"
            " task.reward_weights, task.num_envs, task.max_iterations",
        ),
    ]
    assert (
        "note: conf/task/mine.yaml:1: task=mine does not declare task.code_ref, task.code_url" in done.output
    )


def test_every_combination_is_composed_where_they_are_few(checked, directory):
    (directory / "conf" / "task").mkdir(parents=True)
    (directory / "conf" / "task" / "go2.yml").write_text("task_name: X\n")
    alone = (
        "defaults:\n  - _self_\n  - task: cartpole\n  - ppo: default\n  - override hydra/launcher: canard\n"
    )

    done = checked("--json", "--limit", "24", config=alone)

    told = json.loads(done.output)
    assert (told["combinations"], told["possible"], set(told["options"])) == (24, 24, {"task", "ppo"})
    [fault] = told["faults"]
    assert done.exit_code == 1
    assert (fault["file"], fault["line"]) == ("conf/task/go2.yml", 1)
    assert "Hydra reads files that end in .yaml" in fault["text"]


def test_a_folder_that_is_not_there_is_a_mistake_in_the_command(checked):
    done = checked("nowhere")

    assert done.exit_code == 2
    assert "nowhere" in done.output


def test_it_comes_by_its_entry_point_and_help_loads_no_hydra():
    look = (
        "import sys; sys.argv = ['canard', 'check', '--help']\nfrom canard.cli import main\n"
        "try:\n    main()\nfinally:\n    print('hydra' in sys.modules, file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=False)

    assert "CONF_DIR" in done.stdout
    assert done.stderr.strip() == "False"
    assert ENTRY_POINTS == "canard.commands"
    assert "check" in Commands("canard").list_commands(None)  # type: ignore[arg-type]


@given(st.lists(st.integers(1, 5), min_size=2, max_size=5))
def test_every_pair_of_options_is_looked_at(sizes):
    rows = [tuple(row) for row in AllPairs([list(range(size)) for size in sizes])]

    for one, other in itertools.combinations(range(len(sizes)), 2):
        assert {(row[one], row[other]) for row in rows} == set(
            itertools.product(range(sizes[one]), range(sizes[other]))
        )
