"""The built wheel, installed beside nothing of this repository: plugins, conf and command are in it."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
LIMIT_S = 240


def call(*command: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CANARD_", "PYTHON"))}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment that has the wheel, and its dependencies from this one."""
    folder = tmp_path_factory.mktemp("wheel")
    built = call(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        folder,
        REPOSITORY,
        cwd=folder,
    )
    assert built.returncode == 0, built.stderr
    [wheel] = folder.glob("*.whl")
    venv.create(folder / "env", with_pip=False, symlinks=True)
    python = folder / "env" / "bin" / "python"
    added = call(
        sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", wheel, cwd=folder
    )
    assert added.returncode == 0, added.stderr
    _lend_dependencies(python)
    return python.parent


def _lend_dependencies(python: Path) -> None:
    """A plain line in a .pth adds this environment's packages, but not its own .pth files: no repository."""
    asked = call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=python.parent)
    packages = Path(asked.stdout.strip())
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    directory = tmp_path / "empty"
    directory.mkdir()
    return directory


def test_nothing_comes_from_the_repository(installed, empty):
    program = (
        "import canard_hydra, hydra_plugins.canard_launcher as p; print(canard_hydra.__file__, p.__file__)"
    )

    done = call(installed / "python", "-c", program, cwd=empty)

    assert done.returncode == 0, done.stderr
    for file in done.stdout.split():
        assert Path(file).is_relative_to(installed.parent)


@pytest.mark.parametrize("program", [["canard-hydra"], ["python", "-m", "canard_hydra"]])
def test_a_sweep_is_planned_from_an_empty_directory(installed, empty, program):
    done = call(
        installed / program[0],
        *program[1:],
        "-m",
        "task=cartpole,halfcheetah",
        "seed=1,2",
        "mode=plan",
        cwd=empty,
    )

    assert done.returncode == 0, done.stderr
    assert "4 members = 2 x 2 (task x seed)" in done.stdout


def test_conf_is_shipped_whole(installed, empty):
    program = "from canard_hydra.conf_dir import conf_dir; print(conf_dir())"

    conf = Path(call(installed / "python", "-c", program, cwd=empty).stdout.strip())

    assert conf.is_relative_to(installed.parent)
    for file in (REPOSITORY / "conf").rglob("*.yaml"):
        assert (conf / file.relative_to(REPOSITORY / "conf")).read_text() == file.read_text()


def test_an_own_conf_stands_before_the_shipped_one(installed, empty):
    (empty / "conf" / "task").mkdir(parents=True)
    (empty / "conf" / "task" / "mine.yaml").write_text("task_name: Mine-v0\n")

    done = call(installed / "canard-hydra", "task=mine", "mode=plan", cwd=empty)

    assert done.returncode == 0, done.stderr
    assert "task.task_name=Mine-v0" in done.stdout
