"""canard.yaml: what a repository says about itself, where guessing is not enough."""

from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, ValidationError

from canard.models import RequestModel
from canard_platform.attempt.failures import AttemptFailure

NAME = "canard.yaml"

ModuleName = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")]


class RepositorySettings(RequestModel):
    """The file; all of it is optional."""

    modules: list[ModuleName] | None = None
    """What to import so that the Gym IDs register; None for the packages that are found."""
    simulator: Literal["isaaclab", "mjlab", "gymnasium", "cartpole"] | None = None
    """What the repository was made for."""
    subdirectory: str | None = Field(default=None, min_length=1)
    """Folder of the project, relative to the root."""


def read_settings(tree: Path) -> RepositorySettings:
    """The settings of the repository checked out at `tree`; the defaults without a file.

    Raises:
        AttemptFailure: naming the file, the field, and what is wrong with it.
    """
    path = tree / NAME
    try:
        said = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return RepositorySettings()
    except (OSError, UnicodeDecodeError) as error:
        raise AttemptFailure(f"{NAME}: cannot be read ({error})", retryable=False) from None
    except yaml.YAMLError as error:
        raise AttemptFailure(f"{NAME}: is no YAML ({_where(error)})", retryable=False) from None
    if said is not None and not isinstance(said, dict):
        raise AttemptFailure(f"{NAME}: must be a mapping, such as 'modules: [my_robots]'", retryable=False)
    try:
        return RepositorySettings.model_validate(said or {})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise AttemptFailure(f"{NAME}: {field}: {first['msg']}", retryable=False) from None


def project_root(tree: Path, settings: RepositorySettings) -> Path:
    """The folder that the settings name, inside the repository.

    Raises:
        AttemptFailure: it is not there, or leads outside.
    """
    if settings.subdirectory is None:
        return tree
    said = settings.subdirectory
    folder = tree / said
    if Path(said).is_absolute() or not folder.resolve().is_relative_to(tree.resolve()):
        raise AttemptFailure(f"{NAME}: subdirectory: {said!r} leads out of the repository", retryable=False)
    if not folder.is_dir():
        there = sorted(entry.name for entry in tree.iterdir() if entry.is_dir() and entry.name[0] != ".")
        raise AttemptFailure(
            f"{NAME}: subdirectory: the repository has no folder {said!r}"
            f" (there is: {', '.join(there[:10]) or 'none'})",
            retryable=False,
        )
    return folder


def _where(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "not readable"
    return f"line {mark.line + 1}: {problem}" if mark else problem
