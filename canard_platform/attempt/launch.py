"""The launch file: where the platform is and what proves that this attempt is ours."""

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from canard.errors import PlatformError


class Launch(BaseModel):
    """What an executor says to an attempt runner. Unknown fields are a newer executor's, and left alone."""

    model_config = ConfigDict(frozen=True)

    api_url: str
    attempt_id: str
    token: str = Field(repr=False)
    trainer_python: str
    """Interpreter whose environment has the trainer and the simulator."""
    work_dir: Path
    """The attempt's own folder; everything it writes lies in it."""
    git_cache: Path
    """Bare mirrors of repositories, shared by the attempts of this machine."""
    allow_local_paths: bool = False
    env: dict[str, str] = Field(default_factory=dict)
    """For the trainer."""


def read_launch(path: Path) -> Launch:
    """Read it and remove it, since it holds the token.

    Raises:
        PlatformError: it is not there, or is not what an executor writes.
    """
    try:
        text = path.read_text(encoding="utf-8")
        path.unlink()
    except OSError as error:
        raise PlatformError(f"--launch {path}: {error.strerror}") from None
    try:
        return Launch.model_validate(json.loads(text))
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise PlatformError(f"--launch {path}: {field}: {first['msg']}") from None
    except ValueError:
        raise PlatformError(f"--launch {path}: is no JSON") from None
