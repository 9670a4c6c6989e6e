"""The user's code made importable beside the trainer's environment, which stays as it is."""

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from canard_platform.attempt.commands import run_command
from canard_platform.attempt.failures import AttemptFailure
from canard_platform.attempt.projects import (
    NOT_CODE,
    build_requirements,
    find_packages,
    find_projects,
)
from canard_platform.attempt.python_environment import (
    TrainerEnvironment,
    ask,
    clean_environ,
    layer_over,
    look_at,
)
from canard_platform.attempt.repository_settings import NAME as SETTINGS_NAME
from canard_platform.attempt.repository_settings import RepositorySettings, project_root, read_settings
from canard_platform.attempt.stop import StopOrder
from canard_platform.attempt.symptoms import recognised

log = logging.getLogger(__name__)

PIP_TIMEOUT_S = 3600.0
MOST_PIP_LINES = 25
OURS = ("trainer", "canard")

_NETWORK = re.compile(
    r"NewConnectionError|ConnectTimeoutError|ReadTimeoutError|ProxyError|NameResolutionError|SSLError"
    r"|Temporary failure in name resolution|Connection (?:reset|refused|aborted)|IncompleteRead"
    r"|HTTP error 5\d\d|5\d\d Server Error"
)

_NEEDS = re.compile(r"^ +(\S+ \S+ depends on .+?)(?: and python_version.*)?$", re.MULTILINE)
_HOLDS = re.compile(r"^ +The user requested \(constraint\) (.+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """How to start the trainer so that it finds the user's code."""

    python: str
    cwd: Path
    modules: list[str] = field(default_factory=list)
    """To import first."""
    python_path: list[Path] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Installer:
    """Prepares one work tree for one trainer environment.

    Args:
        work_dir: where the layered environment goes.
        env: for pip and the trainer.
        warn: told what the user should know and that is no failure.
    """

    trainer_python: str
    work_dir: Path
    stop: StopOrder
    env: dict[str, str]
    warn: Callable[[str], None]

    def prepare(self, tree: Path) -> Prepared:
        """Install what is a project; take plain modules as they lie.

        Raises:
            AttemptFailure: canard.yaml is wrong, or pip failed.
            Stopped: the attempt must stop.
        """
        settings = read_settings(tree)
        root = project_root(tree, settings)
        if settings.simulator is not None:
            log.info("%s: simulator: %s", SETTINGS_NAME, settings.simulator)
        projects = find_projects(root)
        prepared = self._installed(projects, root, settings) if projects else self._as_it_lies(root, settings)
        if not prepared.modules:
            self.warn(
                "the repository has no package to import; if its Gym IDs are not found, name the modules in"
                f" {SETTINGS_NAME} (modules: [...])"
            )
        return self._with_its_own_modules(prepared, tree)

    def _as_it_lies(self, root: Path, settings: RepositorySettings) -> Prepared:
        packages = find_packages(root)
        if (root / "requirements.txt").is_file():
            self.warn(
                "requirements.txt is not installed, because the repository is no project;"
                " a pyproject.toml with these dependencies would be"
            )
        folders = [folder for folder in (root / "src", root) if folder == root or folder.is_dir()]
        return Prepared(
            python=self.trainer_python,
            cwd=root,
            modules=settings.modules or sorted(packages),
            python_path=folders,
        )

    def _installed(self, projects: Sequence[Path], root: Path, settings: RepositorySettings) -> Prepared:
        environment = look_at(self.trainer_python, stop=self.stop, env=clean_environ(self.env))
        python = layer_over(environment, self.work_dir / "venv", stop=self.stop)
        own = {name for project in projects for name in find_packages(project)}
        constraints = self.work_dir / "constraints.txt"
        constraints.write_text(environment.constraints(but_packages=own), encoding="utf-8")
        # An isolated build fetches its tools anew for every attempt; what is here already serves as well.
        in_place = [p for p in projects if environment.has_all(build_requirements(p))]
        isolated = [p for p in projects if p not in in_place]
        for these, options in ((in_place, ["--no-build-isolation"]), (isolated, [])):
            if these:
                self._pip(environment, python, these, [*options, "-c", str(constraints)])
        modules = settings.modules or self._modules_of(projects, python, root)
        return Prepared(python=python, cwd=root, modules=modules)

    def _pip(
        self, environment: TrainerEnvironment, python: str, projects: Sequence[Path], options: Sequence[str]
    ) -> None:
        command = [*environment.pip, "--python", python, "install", "--use-pep517", *options]
        for project in projects:
            command += ["-e", str(project)]
        env = clean_environ(self.env) | {
            "PIP_NO_INPUT": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_USER": "0",
            "PIP_REQUIRE_VIRTUALENV": "0",
            "GIT_TERMINAL_PROMPT": "0",
        }
        done = run_command(command, stop=self.stop, timeout_s=PIP_TIMEOUT_S, env=env, cwd=self.work_dir)
        log.info("%s", done.out.strip())
        if done.exit_code != 0:
            raise _pip_failed(projects, f"{done.out}\n{done.err}")

    def _modules_of(self, projects: Sequence[Path], python: str, root: Path) -> list[str]:
        """What the installed metadata says, else what lies there."""
        said = ask(
            python, "installed", str(root), stop=self.stop, env=clean_environ(self.env), cwd=self.work_dir
        )
        modules: list[str] = []
        for project in projects:
            found = find_packages(project)
            names = said.get(str(project.resolve())) or sorted(found)
            code = [name for name in names if name not in NOT_CODE] or names
            modules += [name for name in code if name not in modules]
        return modules

    def _with_its_own_modules(self, prepared: Prepared, tree: Path) -> Prepared:
        """Make sure that the names mean the code just checked out, and ours still mean our own.

        Raises:
            AttemptFailure: the repository hides a package of ours.
        """
        origins = self._origins(prepared, [*prepared.modules, *OURS])
        for name in OURS:
            if _lies_under(origins[name], tree):
                raise AttemptFailure(
                    f"code_url: the repository has a top-level package named {name!r}, which hides Canard's"
                    " own; rename it, or put the code that trains into a folder and name it in"
                    f" {SETTINGS_NAME} (subdirectory: ...)",
                    retryable=False,
                )
        elsewhere = {m for m in prepared.modules if origins[m] and not _lies_under(origins[m], tree)}
        folders = _folders_of(elsewhere, prepared.cwd)
        if not folders:
            return prepared
        # The trainer's environment has a copy of its own; the commit that was asked for goes first.
        path = [*prepared.python_path, *folders]
        return Prepared(python=prepared.python, cwd=prepared.cwd, modules=prepared.modules, python_path=path)

    def _origins(self, prepared: Prepared, modules: Sequence[str]) -> dict[str, str | None]:
        env = clean_environ(self.env, python_path=prepared.python_path)
        return ask(prepared.python, "origins", *modules, stop=self.stop, env=env, cwd=prepared.cwd)


def _folders_of(modules: set[str], root: Path) -> list[Path]:
    """The folders under the root's projects from which these modules can be imported."""
    tops = {module.partition(".")[0] for module in modules}
    folders: list[Path] = []
    for project in find_projects(root) or [root]:
        for name, folder in find_packages(project).items():
            if name in tops and folder not in folders:
                folders.append(folder)
    return folders


def _lies_under(origin: str | None, tree: Path) -> bool:
    return origin is not None and Path(origin).resolve().is_relative_to(tree.resolve())


def _pip_failed(projects: Sequence[Path], said: str) -> AttemptFailure:
    lines = [line.rstrip() for line in said.splitlines() if line.strip()]
    names = ", ".join(project.name for project in projects)
    known = recognised(said)
    if known or _NETWORK.search(said):
        reason = known or "the package index could not be reached"
        return AttemptFailure(
            f"installing {names}: {reason}", retryable=True, detail="\n".join(lines[-MOST_PIP_LINES:])
        )
    reason = _conflict(lines) or _last_error(lines) or "pip failed"
    return AttemptFailure(
        f"installing {names}: {reason}", retryable=False, detail="\n".join(lines[-MOST_PIP_LINES:])
    )


def _conflict(lines: Sequence[str]) -> str | None:
    """What the project needs and what the trainer's environment holds fast."""
    text = "\n".join(lines)
    needs, holds = _NEEDS.findall(text), _HOLDS.findall(text)
    if not holds:
        return None
    return f"{'; '.join(needs) or 'it'}, but the trainer's environment has {', '.join(holds)}"


def _last_error(lines: Sequence[str]) -> str | None:
    errors = [line.strip() for line in lines if line.lower().lstrip().startswith("error:")]
    return errors[-1] if errors else None
