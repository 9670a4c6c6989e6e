"""Runs and tasks: submit, look, cancel, try again."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from sqlalchemy.orm import Session

from canard.models import QueueStatus, Run, RunMetrics, Task
from canard.wire import Page, RunCreate, RunPreview, SubmittedRun
from canard_platform.api.callers import CallerDep, ServicesDep
from canard_platform.api.cursors import (
    MOST_ID,
    Cursor,
    Limit,
    after_id,
    after_time_and_id,
    read_id,
    read_time_and_id,
)
from canard_platform.api.live import changes
from canard_platform.api.logs import task_log
from canard_platform.api.problems import UnavailableError
from canard_platform.api.views import run_view, submitted_view, task_view
from canard_platform.metrics import run_metrics
from canard_platform.queue import requests
from canard_platform.queue.counts import count_by_status
from canard_platform.services import Services
from canard_platform.store import runs as queries
from canard_platform.store.artifacts import runs_with_event_files
from canard_platform.store.users import Caller
from canard_platform.submit.reuse import reuse_in
from canard_platform.submit.submit import Arrival, preview_run, submit_run

router = APIRouter(prefix="/v1")

TaskId = Annotated[int, Path(ge=1, le=MOST_ID)]
IdempotencyHeader = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]


@router.post(
    "/runs", status_code=201, responses={200: {"model": SubmittedRun, "description": "A run that was there"}}
)
def create_run(
    body: RunCreate,
    caller: CallerDep,
    services: ServicesDep,
    response: Response,
    idempotency_key: IdempotencyHeader = None,
) -> SubmittedRun:
    """Create a run with all its tasks, or nothing.

    With `reuse`, tasks whose content was trained before are there as completed, and the very same run that
    has not ended yet is answered instead of a new one.
    """
    if services.stopping.is_set():
        raise UnavailableError("the platform is stopping", hint="start it again and repeat the request")
    submitted = submit_run(services, caller, body, idempotency_key)
    if submitted.arrival is not Arrival.NEW:
        response.status_code = 200
    with services.database.read() as session:
        row = queries.owned_run(session, caller.user_id, submitted.slug)
        run = _view(session, row, caller, services)
        return submitted_view(run, submitted_as=submitted.arrival, reuse=reuse_in(session, row))


@router.post("/runs/preview")
def preview(body: RunCreate, caller: CallerDep, services: ServicesDep) -> RunPreview:
    """What the same submit would do now; nothing is created."""
    return preview_run(services, caller, body)


@router.get("/runs")
def list_runs(
    caller: CallerDep,
    services: ServicesDep,
    limit: Limit = 100,
    cursor: Cursor = None,
    status: Annotated[str | None, Query(max_length=50)] = None,
) -> Page[Run]:
    """Newest first. `config.tasks` is left out of a list; ask for one run to see it."""
    after = read_time_and_id(cursor) if cursor is not None else None
    with services.database.read() as session:
        rows = queries.page_of_runs(session, caller.user_id, limit=limit, after=after, status=status)
        shown = rows[:limit]
        ids = [row.id for row in shown]
        tallies = queries.tallies(session, ids)
        with_files = runs_with_event_files(session, ids)
        return Page[Run](
            items=[
                run_view(
                    row,
                    tallies[row.id],
                    user_name=caller.name,
                    settings=services.settings,
                    has_event_files=row.id in with_files,
                )
                for row in shown
            ],
            next_cursor=after_time_and_id(shown[-1].created_at, shown[-1].id) if len(rows) > limit else None,
        )


@router.get("/runs/{slug}")
def get_run(slug: str, caller: CallerDep, services: ServicesDep) -> Run:
    return read_run(slug, caller, services)


@router.get("/runs/{slug}/metrics")
def get_run_metrics(slug: str, caller: CallerDep, services: ServicesDep) -> RunMetrics:
    with services.database.read() as session:
        run = queries.owned_run(session, caller.user_id, slug)
        return run_metrics(session, run, most_points=services.settings.history_points)


@router.get("/runs/{slug}/tasks")
def list_tasks(
    slug: str, caller: CallerDep, services: ServicesDep, limit: Limit = 100, cursor: Cursor = None
) -> Page[Task]:
    after = read_id(cursor) if cursor is not None else 0
    with services.database.read() as session:
        run = queries.owned_run(session, caller.user_id, slug)
        rows = queries.page_of_tasks(session, run.id, limit=limit, after=after)
        shown = rows[:limit]
        sources = queries.sources_of(session, shown)
        return Page[Task](
            items=[task_view(row, sources.get(row.source_id), mode=run.mode) for row in shown],
            next_cursor=after_id(shown[-1].id) if len(rows) > limit else None,
        )


@router.post("/runs/{slug}/cancel")
def cancel_run(slug: str, caller: CallerDep, services: ServicesDep) -> Run:
    """Queued tasks end at once; a running task is cancelled when its process has stopped."""
    with services.database.write() as session:
        run = queries.owned_run(session, caller.user_id, slug)
        requests.cancel(session, run_id=run.id, now=services.clock.now())
    services.work.set()
    return read_run(slug, caller, services)


@router.post("/runs/{slug}/retry")
def retry_run(slug: str, caller: CallerDep, services: ServicesDep) -> Run:
    """Queue again every task that failed or was cancelled."""
    with services.database.write() as session:
        run = queries.owned_run(session, caller.user_id, slug)
        requests.retry(session, run_id=run.id, now=services.clock.now())
    services.work.set()
    return read_run(slug, caller, services)


@router.post("/runs/{slug}/tasks/{task_id}/cancel")
def cancel_task(slug: str, task_id: TaskId, caller: CallerDep, services: ServicesDep) -> Task:
    with services.database.write() as session:
        run = queries.owned_run(session, caller.user_id, slug)
        task = queries.owned_task(session, run, task_id)
        requests.cancel(session, run_id=run.id, task_id=task.id, now=services.clock.now())
    services.work.set()
    return _read_task(slug, task_id, caller, services)


@router.post("/runs/{slug}/tasks/{task_id}/retry")
def retry_task(slug: str, task_id: TaskId, caller: CallerDep, services: ServicesDep) -> Task:
    with services.database.write() as session:
        run = queries.owned_run(session, caller.user_id, slug)
        task = queries.owned_task(session, run, task_id)
        requests.retry(session, run_id=run.id, task_id=task.id, now=services.clock.now())
    services.work.set()
    return _read_task(slug, task_id, caller, services)


@router.get("/runs/{slug}/tasks/{task_id}/logs", response_class=PlainTextResponse)
def get_task_log(
    slug: str,
    task_id: TaskId,
    caller: CallerDep,
    services: ServicesDep,
    attempt: Annotated[int | None, Query(ge=1, le=MOST_ID)] = None,
) -> str:
    """The end of the log of one attempt, the newest when none is named."""
    with services.database.read() as session:
        run = queries.owned_run(session, caller.user_id, slug)
        task = queries.owned_task(session, run, task_id)
        return task_log(services, session, queries.worker_task(session, task), attempt)


def owned_slug(slug: str, caller: CallerDep, services: ServicesDep) -> str:
    """The slug, if the run is there: a stream that has begun could not say 404 any more."""
    with services.database.read() as session:
        return queries.owned_run(session, caller.user_id, slug).slug


@router.get("/runs/{slug}/events", response_class=EventSourceResponse)
async def watch_run(
    slug: Annotated[str, Depends(owned_slug)], caller: CallerDep, services: ServicesDep
) -> AsyncIterator[ServerSentEvent]:
    """The run as it is, then again whenever it changed, until it has ended."""
    async for run in changes(services, lambda: run_in_threadpool(read_run, slug, caller, services)):
        yield ServerSentEvent(event="run", data=run)


@router.get("/queue")
def get_queue(_: CallerDep, services: ServicesDep) -> QueueStatus:
    with services.database.read() as session:
        counts = count_by_status(session)
    return QueueStatus(
        queued=counts.get("queued", 0),
        running=counts.get("running", 0),
        completed=counts.get("completed", 0),
        failed=counts.get("failed", 0),
        active_workers=len(services.executor.capacity()),
    )


def read_run(slug: str, caller: Caller, services: Services) -> Run:
    with services.database.read() as session:
        return _view(session, queries.owned_run(session, caller.user_id, slug), caller, services)


def _view(session: Session, row: Any, caller: Caller, services: Services) -> Run:
    return run_view(
        row,
        queries.tallies(session, [row.id])[row.id],
        user_name=caller.name,
        settings=services.settings,
        has_event_files=bool(runs_with_event_files(session, [row.id])),
        members=queries.members_of(session, row.id) if row.explicit_tasks else None,
    )


def _read_task(slug: str, task_id: int, caller: Caller, services: Services) -> Task:
    with services.database.read() as session:
        run = queries.owned_run(session, caller.user_id, slug)
        task = queries.owned_task(session, run, task_id)
        sources = queries.sources_of(session, [task])
        return task_view(task, sources.get(task.source_id), mode=run.mode)
