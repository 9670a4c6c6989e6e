"""The files of a platform under its home: what is where, and the secret that signs its URLs."""

import json
import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from canard.errors import PlatformError
from canard_platform.files import write_private

SECRET_BYTES = 32


@dataclass(frozen=True)
class HomeFiles:
    """Paths under one CANARD_HOME; making it creates nothing."""

    home: Path

    @property
    def lock(self) -> Path:
        """Held by the service as long as it runs."""
        return self.home / "platform.lock"

    @property
    def announcement(self) -> Path:
        """Where the running service answers; there only while it does."""
        return self.home / "platform.json"

    @property
    def database(self) -> Path:
        return self.home / "platform.db"

    @property
    def artifacts(self) -> Path:
        return self.home / "artifacts"

    @property
    def attempts(self) -> Path:
        return self.home / "attempts"

    @property
    def git_cache(self) -> Path:
        return self.home / "cache" / "git"

    @property
    def secret(self) -> Path:
        return self.home / "signing.key"


def announce(files: HomeFiles, *, url: str, pid: int, started_at: datetime, version: str) -> None:
    """Say where the service answers; from here on others may rely on it."""
    said = {"url": url, "pid": pid, "started_at": started_at.isoformat(), "version": version}
    write_private(files.announcement, json.dumps(said, indent=2) + "\n")


def signing_secret(files: HomeFiles) -> bytes:
    """The secret of this home, made at its first start; URLs and browser sessions outlive a restart.

    Raises:
        PlatformError: the file is not what this made.
    """
    try:
        kept = bytes.fromhex(files.secret.read_text().strip())
    except FileNotFoundError:
        made = secrets.token_bytes(SECRET_BYTES)
        write_private(files.secret, made.hex() + "\n")
        return made
    except (OSError, ValueError) as error:
        raise PlatformError(
            f"{files.secret} cannot be read ({error}); delete it to make a new one"
        ) from error
    if len(kept) < SECRET_BYTES:
        raise PlatformError(f"{files.secret} is cut short; delete it to make a new one")
    return kept
