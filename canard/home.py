"""Where Canard keeps its state on this machine."""

import os
from pathlib import Path

import platformdirs


def canard_home() -> Path:
    """`$CANARD_HOME`, or the user's data directory."""
    said = os.environ.get("CANARD_HOME")
    return Path(said).expanduser().absolute() if said else platformdirs.user_data_path("canard")
