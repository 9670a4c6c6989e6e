"""The trainer's Python environment, and one layered over it for the user's code."""

import importlib.util
import json
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from canard_platform.attempt import probe
from canard_platform.attempt.commands import run_command
from canard_platform.attempt.failures import AttemptFailure
from canard_platform.attempt.git import last_line
from canard_platform.attempt.stop import StopOrder

PROBE_TIMEOUT_S = 300.0
PIP_WITH_PYTHON_OPTION = Version("22.3")
SETUPTOOLS_WITH_EDITABLE_WHEELS = Version("64")
SETUPTOOLS_WITHOUT_WHEEL = Version("70.1")

LAYER_FILE = "canard_trainer_environment.pth"
"""Sorted behind setuptools' `__editable__*.pth`: the user's code comes first, also where the trainer's
environment has an older copy of it."""


@dataclass(frozen=True, kw_only=True)
class TrainerEnvironment:
    """What an interpreter said about its environment."""

    python: str
    site_folders: list[str]
    has_pip: bool
    versions: dict[str, str]
    """By distribution."""
    packages: dict[str, list[str]]
    """Top-level packages by distribution."""

    def version(self, distribution: str) -> Version | None:
        wanted = canonicalize_name(distribution)
        said = next((v for name, v in self.versions.items() if canonicalize_name(name) == wanted), None)
        try:
            return Version(said) if said else None
        except InvalidVersion:
            return None

    @property
    def pip(self) -> list[str]:
        """The command of a pip that can install into another environment.

        Raises:
            AttemptFailure: there is none.
        """
        own = self.version("pip") if self.has_pip else None
        if own is not None and own >= PIP_WITH_PYTHON_OPTION:
            return [self.python, "-m", "pip"]
        if importlib.util.find_spec("pip") is not None:
            return [sys.executable, "-m", "pip"]
        raise AttemptFailure(
            f"pip {PIP_WITH_PYTHON_OPTION} or newer is needed to install the code, and neither {self.python}"
            " nor the platform's own environment has it",
            retryable=False,
        )

    def has_all(self, requirements: Sequence[str]) -> bool:
        """Whether these requirements of a build are met here already."""
        try:
            parsed = [Requirement(text) for text in requirements]
        except InvalidRequirement:
            return False
        wanted = [one for one in parsed if one.marker is None or one.marker.evaluate()]
        return all(self._meets(one) for one in wanted)

    def _meets(self, requirement: Requirement) -> bool:
        version = self.version(requirement.name)
        if version is None or requirement.url or requirement.extras:
            return False
        if canonicalize_name(requirement.name) == "setuptools" and not self._builds_editable(version):
            return False
        return requirement.specifier.contains(version, prereleases=True)

    def _builds_editable(self, setuptools: Version) -> bool:
        if setuptools < SETUPTOOLS_WITH_EDITABLE_WHEELS:
            return False
        return setuptools >= SETUPTOOLS_WITHOUT_WHEEL or self.version("wheel") is not None

    def constraints(self, *, but_packages: Collection[str]) -> str:
        """Every distribution held at its version, but for those that are the user's own code."""
        own = set(but_packages)
        return "".join(
            f"{name}=={version}\n"
            for name, version in sorted(self.versions.items())
            if not own & set(self.packages.get(name, ()))
        )


def look_at(python: str, *, stop: StopOrder, env: Mapping[str, str]) -> TrainerEnvironment:
    """Ask the interpreter.

    Raises:
        AttemptFailure: it does not run.
    """
    said = ask(python, "environment", stop=stop, env=env)
    found = said["distributions"]
    return TrainerEnvironment(
        python=python,
        site_folders=said["site_folders"],
        has_pip=said["has_pip"],
        versions={name: distribution["version"] for name, distribution in found.items()},
        packages={name: distribution["packages"] for name, distribution in found.items()},
    )


def ask(
    python: str, *question: str, stop: StopOrder, env: Mapping[str, str], cwd: Path | None = None
) -> dict[str, Any]:
    """One question of `probe` to an interpreter."""
    # -P: our own folder must not come before what the environment has.
    command = [python, "-P", probe.__file__, *question]
    done = run_command(command, stop=stop, timeout_s=PROBE_TIMEOUT_S, env=env, cwd=cwd)
    try:
        answer: dict[str, Any] = json.loads(done.out.rpartition("\n")[2] or done.out)
    except ValueError:
        raise AttemptFailure(
            f"the trainer's interpreter {python} does not work: {last_line(done.err) or done.exit_code}",
            retryable=False,
            detail=done.err,
        ) from None
    return answer


def layer_over(environment: TrainerEnvironment, folder: Path, *, stop: StopOrder) -> str:
    """Make a virtual environment in which all of the trainer's is there too; returns its interpreter."""
    command = [environment.python, "-m", "venv", "--without-pip", str(folder)]
    done = run_command(command, stop=stop, timeout_s=PROBE_TIMEOUT_S)
    site_packages = next(iter(folder.glob("lib/python*/site-packages")), None)
    if done.exit_code != 0 or site_packages is None:
        raise AttemptFailure(
            f"{environment.python} -m venv failed: {last_line(done.err) or done.exit_code}",
            retryable=True,
            detail=done.err,
        )
    # addsitedir, not plain lines: the trainer's environment has .pth files of its own.
    lines = [f"import site; site.addsitedir({path!r})\n" for path in environment.site_folders]
    (site_packages / LAYER_FILE).write_text("".join(lines), encoding="utf-8")
    return str(folder / "bin" / "python")


def clean_environ(extra: Mapping[str, str], *, python_path: Sequence[Path] = ()) -> dict[str, str]:
    """Our environment for a program of the trainer's: without what belongs to our own interpreter."""
    kept = {name: value for name, value in os.environ.items() if name not in _OURS}
    kept.update(extra)
    path = [str(folder) for folder in python_path]
    if kept.get("PYTHONPATH"):
        path.append(kept["PYTHONPATH"])
    if path:
        kept["PYTHONPATH"] = os.pathsep.join(path)
    return kept


_OURS = frozenset({"CANARD_API_KEY", "VIRTUAL_ENV", "PYTHONHOME", "__PYVENV_LAUNCHER__"})
