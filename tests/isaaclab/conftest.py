"""Isaac Lab's own environments, made by make_env.sh and make_env_232.sh, driven like the runner does."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
LIMIT_S = 500
"""Of one trainer; a cold kernel cache alone takes a minute on two cores."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.isaaclab)
            item.add_marker(pytest.mark.timeout(2 * LIMIT_S))


@dataclass(frozen=True)
class Ended:
    """A trainer that ended."""

    output: Path
    code: int
    log: str

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        events = [json.loads(line) for line in (self.output / "events.jsonl").read_text().splitlines()]
        return [event for event in events if kind in (None, event["event"])]

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads((self.output / "summary.json").read_text())


@dataclass(frozen=True)
class Trainer:
    """`python -m trainer` under one interpreter, with what it needs in its environment."""

    python: str
    environment: Mapping[str, str]

    def start(
        self, output: Path, config: dict[str, Any], *arguments: str, physics: bool = False, **variables: str
    ) -> "subprocess.Popen[str]":
        output.parent.mkdir(parents=True, exist_ok=True)
        config_path = output.parent / f"{output.name}.json"
        config_path.write_text(json.dumps(config))
        command = [self.python, "-m", "trainer", *(["physics"] if physics else [])]
        command += ["--config", str(config_path), "--output", str(output), "--device", "cpu", *arguments]
        with (output.parent / f"{output.name}.log").open("w") as log:
            return subprocess.Popen(
                command,
                cwd=output.parent,
                env={**os.environ, "OMP_NUM_THREADS": "1", **self.environment, **variables},
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )

    def run(self, output: Path, config: dict[str, Any], *arguments: str, **how: Any) -> Ended:
        process = self.start(output, config, *arguments, **how)
        try:
            process.wait(timeout=LIMIT_S)
        finally:
            process.kill()
            process.wait()
        return Ended(output, process.returncode, (output.parent / f"{output.name}.log").read_text())


@pytest.fixture(scope="session")
def isaaclab_python() -> str:
    return _made("make_env.sh")


@pytest.fixture(scope="session")
def isaaclab(isaaclab_python: str) -> Trainer:
    """Isaac Lab 3.0.0 without Isaac Sim, with the assets of our own."""
    return Trainer(isaaclab_python, _environment())


@pytest.fixture(scope="session")
def rail_robot(isaaclab_python: str, tmp_path_factory: pytest.TempPathFactory) -> Trainer:
    """The user's project, installed as the runner does: beside Isaac Lab's packages, not among them."""
    folder = tmp_path_factory.mktemp("rail_robot")
    project = shutil.copytree(HERE / "project", folder / "project")
    subprocess.run([isaaclab_python, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = str(folder / "venv" / "bin" / "python")
    installed = subprocess.run(
        [isaaclab_python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    (folder / "venv" / "lib" / "python3.12" / "site-packages" / "trainer.pth").write_text(installed)
    install = [isaaclab_python, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    subprocess.run(
        [*install, "--no-build-isolation", "-e", project / "source" / "rail_robot"], check=True, timeout=120
    )
    return Trainer(python, _environment())


@pytest.fixture(scope="session")
def isaaclab_2() -> Trainer:
    """The unmodified source of Isaac Lab 2.3.2, with Isaac Sim stood in for."""
    python = _made("make_env_232.sh", sys.executable)
    source = Path(python).parents[1] / "lib/python3.11/site-packages/isaaclab/source"
    packages = [source / name for name in ("isaaclab", "isaaclab_assets", "isaaclab_tasks", "isaaclab_rl")]
    path = [HERE / "isaacsim_standins", REPOSITORY, *packages, source / "isaaclab_contrib"]
    return Trainer(python, {"PYTHONPATH": os.pathsep.join(map(str, path)), "STANDIN_LOG": os.devnull})


def _made(script: str, *arguments: str) -> str:
    made = subprocess.run(
        [HERE / script, *arguments],
        env={**os.environ, "IF_MADE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(made.stderr.strip())
    return made.stdout.splitlines()[-1]


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": str(REPOSITORY), "ISAACSIM_ASSET_ROOT": str(HERE / "assets")}
