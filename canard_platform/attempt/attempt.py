"""One attempt from its launch file to its report: the order in which things happen."""

import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path

from canard.errors import AuthenticationError, CanardError, LeaseLostError
from canard.wire import AttemptReport, AttemptSpec
from canard_platform.attempt.api import AttemptApi, patiently
from canard_platform.attempt.checkout import Source, check_out
from canard_platform.attempt.delivery import deliver, keep
from canard_platform.attempt.events import EventSender
from canard_platform.attempt.failures import AttemptFailure
from canard_platform.attempt.folders import Folders
from canard_platform.attempt.git import Git
from canard_platform.attempt.heartbeats import Heartbeats
from canard_platform.attempt.install import Installer, Prepared
from canard_platform.attempt.launch import Launch
from canard_platform.attempt.lease import Lease
from canard_platform.attempt.outcome import (
    TrainerEnd,
    end_of_log,
    read_summary,
    report_of,
    report_of_failure,
    report_of_stop,
)
from canard_platform.attempt.python_environment import clean_environ
from canard_platform.attempt.results import Results
from canard_platform.attempt.resume import CheckpointFinder
from canard_platform.attempt.stop import StopOrder, Stopped, StopReason
from canard_platform.attempt.symptoms import recognised
from canard_platform.attempt.tail import EventTail
from canard_platform.attempt.trainer_process import TrainerProcess
from canard_platform.attempt.uploads import Uploader
from canard_platform.attempt.watch import Watch
from canard_platform.files import write_private

log = logging.getLogger(__name__)

START_PATIENCE_S = 120.0
CANCELLED_UPLOADS_S = 10.0


def run_attempt(launch: Launch, stop: StopOrder) -> int:
    """Carry the attempt out and report it; returns the exit code, 0 when nothing is left to say."""
    api = AttemptApi(api_url=launch.api_url, attempt_id=launch.attempt_id, token=launch.token)
    try:
        try:
            spec, lease = _start(api, stop)
        except (LeaseLostError, AuthenticationError) as error:
            log.warning("the attempt is not ours any more: %s", error)
            return 0
        except CanardError as error:
            log.error("the attempt could not start: %s", error)
            return 1
        times = {"heartbeat_s": spec.heartbeat_s, "lease_s": spec.lease_s}
        with Heartbeats(api, lease, stop, **times) as heartbeats:
            return _Attempt(launch, spec, api, stop, lease, heartbeats).run()
    finally:
        api.close()


def _start(api: AttemptApi, stop: StopOrder) -> tuple[AttemptSpec, Lease]:
    def ask() -> tuple[AttemptSpec, Lease]:
        asked_at = time.monotonic()
        spec = api.start()
        return spec, Lease(spec.lease_s, asked_at=asked_at)

    return patiently(stop.given, total_s=START_PATIENCE_S)(ask)


@dataclass
class _Attempt:
    """The parts of one attempt."""

    launch: Launch
    spec: AttemptSpec
    api: AttemptApi
    stop: StopOrder
    lease: Lease
    heartbeats: Heartbeats

    def __post_init__(self) -> None:
        self.folders = Folders(self.launch.work_dir)
        self.local_paths = self.launch.allow_local_paths and self.spec.local_code_allowed
        self.events = EventSender(self.api, EventTail(self.folders.events), self.stop)
        self.uploader = Uploader(self.api, self.stop)
        self.results = Results(self.folders, self.uploader, wait_until_told=self.events.wait_until_sent)

    def run(self) -> int:
        self.events.start()
        self.uploader.start()
        report = self._carried_out()
        if not self.stop.lost.is_set():
            # On disk before the deliveries, which may take as long as the platform is away.
            keep(report, self.folders.report)
        return self._hand_over(report)

    def _carried_out(self) -> AttemptReport:
        try:
            self.folders.output.mkdir(parents=True, exist_ok=True)
            # First: its URL is short-lived, and a checkout with an install may not be.
            checkpoints = self._checkpoints()
            prepared = self._with_code() if self.spec.config.get("code_url") else self._without_code()
            self.heartbeats.phase = "starting"
            return self._run_trainer(prepared, checkpoints)
        except Stopped:
            return report_of_stop(self.stop.reason)
        except AttemptFailure as failure:
            log.error("%s\n%s", failure.message, failure.detail)
            return report_of_failure(failure)
        except Exception as error:
            log.exception("the attempt runner failed")
            line = recognised(str(error)) or f"the attempt runner failed: {type(error).__name__}: {error}"
            return report_of_failure(AttemptFailure(line, retryable=True))

    def _without_code(self) -> Prepared:
        return Prepared(python=self.launch.trainer_python, cwd=self.folders.output)

    def _with_code(self) -> Prepared:
        self.heartbeats.phase = "checkout"
        config = self.spec.config
        source = Source(url=config["code_url"], ref=config.get("code_ref"), pinned=self.spec.code_commit)
        git = Git(stop=self.stop, local_paths=self.local_paths)
        cache = self.launch.git_cache
        checkout = check_out(source, self.folders.code, cache=cache, git=git, warn=self.events.warn)
        self.heartbeats.code_commit = checkout.commit
        self.heartbeats.phase = "install"
        # At once, and before anything is installed: another attempt of the run may have pinned another one.
        self.heartbeats.beat()
        self.stop.check()
        installer = Installer(
            trainer_python=self.launch.trainer_python,
            work_dir=self.folders.work_dir,
            stop=self.stop,
            env=self.launch.env,
            warn=self.events.warn,
        )
        return installer.prepare(checkout.tree)

    def _checkpoints(self) -> list[Path]:
        if self.spec.mode == "physics":
            return []
        finder = CheckpointFinder(
            api=self.api,
            stop=self.stop,
            folder=self.folders.resume,
            local_paths=self.local_paths,
            warn=self.events.warn,
        )
        return finder.find(self.spec)

    def _run_trainer(self, prepared: Prepared, checkpoints: list[Path]) -> AttemptReport:
        config = self.folders.work_dir / f"{self.spec.mode}.json"
        write_private(config, json.dumps(self.spec.config, indent=2) + "\n")
        self.results.deliver_config(config)
        self.stop.check()
        process = TrainerProcess(
            self._command(prepared, config, checkpoints),
            attempt_id=self.launch.attempt_id,
            cwd=prepared.cwd,
            env=clean_environ({"PYTHONUNBUFFERED": "1", **self.launch.env}, python_path=prepared.python_path),
            log_file=self.folders.trainer_log,
        )
        watch = Watch(
            stop=self.stop,
            lease=self.lease,
            end_marker=self.folders.summary,
            each_tick=self._follow,
        )
        exit_code = watch.until_it_ends(process)
        self._follow()
        return report_of(
            TrainerEnd(
                exit_code=exit_code,
                summary=read_summary(self.folders.summary),
                stop=self.stop.reason,
                failure=self.results.failure,
                log=end_of_log(self.folders.trainer_log),
            )
        )

    def _command(self, prepared: Prepared, config: Path, checkpoints: list[Path]) -> list[str]:
        # -P: the user's folder is where the trainer runs, not what it is imported from.
        command = [prepared.python, "-P", "-m", "trainer"]
        if self.spec.mode == "physics":
            command.append("physics")
        command += ["--config", str(config), "--output", str(self.folders.output)]
        for checkpoint in checkpoints:
            command += ["--resume", str(checkpoint)]
        for module in prepared.modules:
            command += ["--import", module]
        return command

    def _follow(self) -> None:
        self.results.follow()
        if self.results.has_started:
            self.heartbeats.phase = "training"

    def _hand_over(self, report: AttemptReport) -> int:
        """Deliver everything, then the report; after the report nothing more can be delivered."""
        self.heartbeats.phase = "uploading"
        self.results.deliver_rest()
        self.events.finish()
        self.uploader.finish(within_s=CANCELLED_UPLOADS_S if report.outcome == "cancelled" else None)
        for path, reason in self.uploader.failures.items():
            log.error("%s was not delivered: %s", path, reason)
        taken = deliver(
            report,
            self.api,
            self.stop,
            record=self.folders.report,
            longest_wait_s=min(5.0, self.spec.heartbeat_s),
        )
        self.heartbeats.end()
        if taken or self.stop.lost.is_set():
            self.folders.clear()
        return 0 if taken or self.stop.reason is StopReason.LEASE_LOST else 1
