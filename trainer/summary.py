"""summary.json, the end marker: where it is, the task was done, whatever the process did after."""

import json
from pathlib import Path
from typing import Any

from trainer.events import finite_only
from trainer.files import write_whole

NAME = "summary.json"


def write_summary(output: Path, **fields: Any) -> None:
    said, nonfinite = finite_only(fields)
    if nonfinite:
        said["nonfinite"] = nonfinite
    text = json.dumps({"status": "completed", **said}, indent=2, allow_nan=False)
    write_whole(output / NAME, lambda path: path.write_text(text + "\n", encoding="utf-8"))
