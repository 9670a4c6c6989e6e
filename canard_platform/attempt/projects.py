"""Which Python projects a repository holds, and which packages of theirs can be imported."""

import ast
import tomllib
from pathlib import Path
from typing import Any

from canard_platform.attempt.failures import AttemptFailure

NOT_CODE = frozenset(
    {
        *("benchmark", "benchmarks", "bin", "build", "ci", "conf", "config", "data", "deploy", "dist", "doc"),
        *("docker", "docs", "documentation", "example", "examples", "notebooks", "scripts", "test", "tests"),
        *("tool", "tools", "util", "utils"),
    }
)
"""Folders and modules beside a package that are not the package, even with an __init__.py."""


def find_projects(root: Path) -> list[Path]:
    """The root itself, or the folders under `source/` as Isaac Lab's template lays them out; may be none."""
    if _is_project(root):
        return [root]
    source = root / "source"
    if not source.is_dir():
        return []
    return sorted(folder for folder in source.iterdir() if folder.is_dir() and _is_project(folder))


def find_packages(root: Path) -> dict[str, Path]:
    """Top-level packages and registering modules by name, with the folder that they are imported from.

    The src layout goes first. A plain module counts only when it registers something: importing any other
    script could start who knows what.
    """
    found: dict[str, Path] = {}
    for folder in (root / "src", root):
        if not folder.is_dir() or (folder == root and (root / "src" / "__init__.py").exists()):
            continue
        for entry in sorted(folder.iterdir()):
            name = entry.stem if entry.suffix == ".py" else entry.name
            if not name.isidentifier() or name in NOT_CODE or name in found:
                continue
            if (entry / "__init__.py").is_file() or (entry.suffix == ".py" and _registers(entry)):
                found[name] = folder
    return found


def build_requirements(project: Path) -> list[str]:
    """What it takes to build the project; setuptools where it does not say."""
    said = _pyproject(project).get("build-system")
    requires = said.get("requires") if isinstance(said, dict) else None
    if isinstance(requires, list) and requires and all(isinstance(one, str) for one in requires):
        return requires
    return ["setuptools"]


def _is_project(folder: Path) -> bool:
    if (folder / "setup.py").is_file():
        return True
    # A pyproject.toml may hold the settings of a formatter and nothing else.
    said = _pyproject(folder)
    return "project" in said or "build-system" in said


def _pyproject(folder: Path) -> dict[str, Any]:
    path = folder / "pyproject.toml"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:  # ValueError: no UTF-8, or no TOML
        raise AttemptFailure(f"{path.parent.name}/{path.name}: {error}", retryable=False) from None


def _registers(module: Path) -> bool:
    """Whether the module calls a `register` when it is imported."""
    try:
        tree = ast.parse(module.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(_called(call) == "register" for call in calls)


def _called(call: ast.Call) -> str | None:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else None
