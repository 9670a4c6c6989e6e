"""Asks another interpreter about its environment. It runs there as a file, on the standard library alone."""

import importlib.metadata
import importlib.util
import json
import site
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


def environment() -> dict[str, Any]:
    """What is installed, and where."""
    folders = site.getsitepackages()
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return {
        "site_folders": [folder for folder in folders if Path(folder).is_dir()],
        "has_pip": importlib.util.find_spec("pip") is not None,
        "distributions": {
            name: _described(name, found)
            for found in reversed(list(importlib.metadata.distributions()))  # the first of a name counts
            if (name := found.metadata["Name"])
        },
    }


def installed(tree: str) -> dict[str, list[str]]:
    """Top-level packages of each project that was installed editable from under `tree`; [] where not said."""
    root = Path(tree).resolve()
    answer = {}
    for found in importlib.metadata.distributions():
        folder = _folder_of(found)
        if folder is not None and folder.is_relative_to(root):
            said = (found.read_text("top_level.txt") or "").split()
            answer[str(folder)] = [top for top in said if top.isidentifier()]
    return answer


def origins(modules: list[str]) -> dict[str, str | None]:
    """Where the top-level package of each module would come from."""
    return {module: _origin(module.partition(".")[0]) for module in modules}


def _described(name: str, found: importlib.metadata.Distribution) -> dict[str, Any]:
    # Not packages_distributions(): it reads the list of all files of torch.
    said = (found.read_text("top_level.txt") or "").split()
    return {"version": found.version, "packages": said or [name.replace("-", "_")]}


def _folder_of(found: importlib.metadata.Distribution) -> Path | None:
    said = json.loads(found.read_text("direct_url.json") or "{}")
    if not said.get("dir_info", {}).get("editable"):
        return None
    return Path(unquote(urlsplit(said["url"]).path)).resolve()


def _origin(name: str) -> str | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or [])
    return spec.origin if spec.origin not in (None, "namespace") else next(iter(places), None)


def main() -> None:
    question, *arguments = sys.argv[1:]
    answers: dict[str, Callable[[], dict[str, Any]]] = {
        "environment": environment,
        "installed": lambda: dict(installed(*arguments)),
        "origins": lambda: dict(origins(arguments)),
    }
    json.dump(answers[question](), sys.stdout)


if __name__ == "__main__":
    main()
