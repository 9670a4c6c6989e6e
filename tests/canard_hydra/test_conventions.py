"""What users of Hydra expect to find in any Hydra program, and what shells and terminals expect of any."""

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REMOTE = "platform=self_hosted"
LIMIT_S = 60


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """`python` and `canard-hydra` of this environment, also where it has no script of its own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    start = "import sys; sys.argv[0] = 'canard-hydra'; from canard_hydra.__main__ import main; main()"
    for name, command in (("python", ""), ("canard-hydra", f'-c "{start}"')):
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} {command} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("task=cart", ["task=cartpole"]),
        ("-m ppo=", ["ppo=careful", "ppo=default", "ppo=fixed", "ppo=mujoco"]),
        ("seed=1 ppo.learn", ["ppo.learning_rate="]),
        ("platform=lo", ["platform=local"]),
    ],
)
@pytest.mark.parametrize(
    ("program", "function"),
    [("canard-hydra", "hydra_bash_completion"), ("python -m canard_hydra", "canard_hydra_python_completion")],
)
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_groups_options_and_keys(
    environment, directory, programs, program, function, typed, expected
):
    """The script that the program gives out, evaluated by bash, and called as bash calls it on Tab."""
    line = f"{program} {typed}"
    script = f"""
        eval "$({program} -sc install=bash)"
        COMP_LINE='{line}' COMP_POINT={len(line)} COMP_CWORD={len(line.split()) - 1}
        {function}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """

    done = subprocess.run(
        ["bash", "-c", script],
        cwd=directory,
        env=environment | {"PATH": f"{programs}:{environment['PATH']}"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )

    assert done.stderr == ""
    assert done.stdout.splitlines() == expected


def test_a_submit_leaves_hydras_records_where_they_are_looked_for(quick, service, directory):
    quick(REMOTE, "seed=7", "hydra.run.dir=one")
    quick("-m", REMOTE, "seed=1,2", "hydra.sweep.dir=many")

    assert len(service.submits) == 2
    assert "seed=7" in (directory / "one" / ".hydra" / "overrides.yaml").read_text()
    assert "seed: 7" in (directory / "one" / ".hydra" / "config.yaml").read_text()
    assert "seed=1,2" in (directory / "many" / "multirun.yaml").read_text()


def test_without_a_directory_they_lie_by_day_and_time(quick, service, directory):
    quick(REMOTE)
    quick("-m", REMOTE, "seed=1,2")

    assert len(list(directory.glob("outputs/????-??-??/??-??-??/.hydra/config.yaml"))) == 1
    assert len(list(directory.glob("multirun/????-??-??/??-??-??/multirun.yaml"))) == 1


@pytest.mark.parametrize("arguments", [[], ["-m", "seed=1,2"]], ids=["one", "many"])
def test_paths_mean_where_the_command_was_given_also_after_chdir(quick, service, directory, arguments):
    (directory / "robots").mkdir()

    done = quick(REMOTE, *arguments, "hydra.job.chdir=true", "task.code_url=robots")

    assert done.returncode == 0, done.stderr
    assert service.base["code_url"] == str(directory / "robots")


@pytest.mark.parametrize("arguments", [[], ["-m", "seed=1,2"]], ids=["one", "many"])
def test_verbose_tells_more_but_never_the_key(quick, service, environment, arguments):
    done = quick(REMOTE, *arguments, "hydra.verbose=true")

    assert done.returncode == 0, done.stderr
    assert "/v1/runs" in done.stdout
    assert environment["CANARD_API_KEY"] not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--cfg", "job"], "learning_rate: null"),
        (["--cfg", "job", "-p", "ppo", "ppo=careful"], "learning_rate: 0.0001"),
        (["--cfg", "hydra"], "hydra_plugins.canard_launcher.launcher.CanardLauncher"),
        (["--cfg", "all"], "task_name: Canard-Cartpole-v0"),
        (["--info", "defaults-tree"], "task: cartpole"),
        (["--info", "plugins"], "CanardSweeper"),
        (["--hydra-help"], "hydra/sweeper: basic, canard"),
        (["--version"], "canard-hydra "),
    ],
    ids=" ".join,
)
def test_what_hydra_shows_of_any_program_is_shown(quick, service, arguments, expected):
    done = quick(*arguments)

    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
    assert service.requests == []


def test_help_explains_modes_groups_and_completion(quick):
    done = quick("--help")

    for text in (
        "mode=plan     says what that would do and cost; nothing is sent",
        "task: what is trained",
        "ppo: careful, default, fixed, mujoco",
        "learning_rate: null",
        'eval "$(canard-hydra -sc install=bash)"',
    ):
        assert text in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [["hydra.mode=MULTIRUN", "seed=1,2"], ["-m", "hydra.mode=MULTIRUN", "seed=1,2"]],
    ids=" ".join,
)
def test_a_multirun_may_be_said_as_a_mode(quick, service, arguments):
    done = quick(REMOTE, *arguments)

    assert done.returncode == 0, done.stderr
    assert len(service.tasks) == 2


RESOLVER = """
from hydra.core.plugins import Plugins
from omegaconf import OmegaConf

OmegaConf.register_new_resolver("half", lambda number: number / 2, replace=True)
"""


def test_a_resolver_of_the_users_is_resolved_for_each_member_before_it_is_sent(
    canard_hydra, service, tmp_path
):
    """hydra-ecosystem/hydra#861, #903: where the run will be, nobody has registered it."""
    plugin = tmp_path / "site" / "hydra_plugins" / "resolvers"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text(RESOLVER)

    done = canard_hydra(
        "-m", REMOTE, "ppo.gamma=0.5,0.25", 'ppo.lam="${half:${ppo.gamma}}"', "name=n${hydra:job.num}",
        PYTHONPATH=str(tmp_path / "site"),
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert service.tasks == [{"gamma": 0.5, "lam": 0.25}, {"gamma": 0.25, "lam": 0.125}]
    assert service.submits[0]["name"] == "n0, n1"
    assert "${" not in service.requests[-1].body.decode()


def on_a_terminal(environment, directory, *arguments):
    """What the command writes where a person sits."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "canard_hydra", *arguments],
        cwd=directory, env=environment | {"TERM": "xterm-256color"}, stdin=its, stdout=its, stderr=its,
    )  # fmt: skip
    os.close(its)
    said = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # how Linux says that the other end is closed
            break
        if not part:
            break
        said += part
    os.close(ours)
    assert process.wait(LIMIT_S) == 0, said
    return said.decode()


def test_a_terminal_gets_colours_unless_it_says_no(environment, directory):
    arguments = ("-m", "mode=plan", "seed=1,2")

    assert "\x1b[1m" in on_a_terminal(environment, directory, *arguments)
    assert "\x1b[3" not in on_a_terminal(environment | {"NO_COLOR": "1"}, directory, *arguments)


def test_a_pipe_gets_none(quick, service):
    service.statuses = ["completed", "completed"]

    for arguments in (["mode=plan"], ["-m", REMOTE, "wait=true", "seed=1,2"], ["ppo.lr=1"]):
        done = quick(*arguments)

        assert "\x1b" not in done.stdout + done.stderr
