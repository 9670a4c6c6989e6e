"""What an attempt runner says and asks; each route takes the attempt's own token and nothing else."""

import logging

from fastapi import APIRouter

from canard.wire import (
    Artifact,
    AttemptReport,
    AttemptSpec,
    EventBatch,
    EventBatchAnswer,
    Heartbeat,
    HeartbeatAnswer,
    UploadRequest,
    UploadTicket,
)
from canard_platform.api.callers import AttemptDep, ServicesDep
from canard_platform.api.views import artifact_view
from canard_platform.artifacts.keys import attempt_key
from canard_platform.queue import leases, reports
from canard_platform.queue.endings import fenced
from canard_platform.queue.progress import record_events
from canard_platform.queue.specs import attempt_spec
from canard_platform.services import Services
from canard_platform.store.artifacts import record_artifact
from canard_platform.store.runs import slug_of

log = logging.getLogger(__name__)

router = APIRouter(prefix="/v1/attempts/{attempt_id}")


@router.post("/start")
def start(attempt_id: AttemptDep, services: ServicesDep) -> AttemptSpec:
    with services.database.write() as session:
        attempt, task = leases.start(
            session, attempt_id, lease_s=services.settings.lease_s, now=services.clock.now()
        )
        return attempt_spec(services, session, attempt, task)


@router.post("/heartbeat")
def heartbeat(attempt_id: AttemptDep, beat: Heartbeat, services: ServicesDep) -> HeartbeatAnswer:
    lease_s = services.settings.lease_s
    with services.database.write() as session:
        stop = leases.heartbeat(session, attempt_id, beat, lease_s=lease_s, now=services.clock.now())
    if stop is None and services.stopping.is_set():
        stop = "preempt"
    return HeartbeatAnswer(lease_s=lease_s, stop=stop)


@router.post("/events")
def events(attempt_id: AttemptDep, batch: EventBatch, services: ServicesDep) -> EventBatchAnswer:
    with services.database.write() as session:
        next_seq = record_events(session, attempt_id, batch, now=services.clock.now())
    return EventBatchAnswer(next_seq=next_seq)


@router.post("/uploads")
def announce_upload(attempt_id: AttemptDep, said: UploadRequest, services: ServicesDep) -> UploadTicket:
    key = _key(services, attempt_id, said)
    signed = services.artifacts.upload_url(key, size_bytes=said.size_bytes, sha256=said.sha256)
    return UploadTicket(s3_key=key, url=signed.url, headers=signed.headers)


@router.post("/artifacts")
def record_upload(attempt_id: AttemptDep, said: UploadRequest, services: ServicesDep) -> Artifact:
    """The file counts from here on; its size and sha256 were checked as it came in."""
    key = _key(services, attempt_id, said)
    services.artifacts.commit(key, size_bytes=said.size_bytes, sha256=said.sha256)
    with services.database.write() as session:
        attempt, task = fenced(session, attempt_id)
        return artifact_view(
            record_artifact(session, key, said, attempt=attempt, task=task, now=services.clock.now())
        )


@router.post("/commit", status_code=204)
def commit(attempt_id: AttemptDep, report: AttemptReport, services: ServicesDep) -> None:
    """The end of the attempt; the same report again is accepted again."""
    with services.database.write() as session:
        reports.commit(session, attempt_id, report, settings=services.settings, now=services.clock.now())
    log.info("attempt %s %s%s", attempt_id, report.outcome, f": {report.error[:200]}" if report.error else "")
    services.work.set()


def _key(services: Services, attempt_id: str, said: UploadRequest) -> str:
    """The attempt's own key for a path, while the attempt may still write."""
    with services.database.read() as session:
        attempt, task = fenced(session, attempt_id)
        return attempt_key(slug_of(session, task.run_id), task.id, attempt.number, said.path)
