"""Where things lie in an attempt's folder."""

import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Folders:
    """Making it creates nothing."""

    work_dir: Path

    @property
    def output(self) -> Path:
        """All that the trainer writes."""
        return self.work_dir / "output"

    @property
    def code(self) -> Path:
        return self.work_dir / "code"

    @property
    def resume(self) -> Path:
        return self.work_dir / "resume"

    @property
    def trainer_log(self) -> Path:
        return self.work_dir / "trainer.log"

    @property
    def runner_log(self) -> Path:
        """Where the executor sends what we print; not there if it sends it elsewhere."""
        return self.work_dir / "runner.log"

    @property
    def events(self) -> Path:
        return self.output / "events.jsonl"

    @property
    def summary(self) -> Path:
        return self.output / "summary.json"

    @property
    def report(self) -> Path:
        return self.work_dir / "report.json"

    @property
    def exit(self) -> Path:
        return self.work_dir / "exit.json"

    def clear(self) -> None:
        """Drop what is large and delivered; logs and the report stay."""
        for folder in (self.output, self.code, self.resume, self.work_dir / "venv"):
            shutil.rmtree(folder, ignore_errors=True)
