"""Artifacts of a run, and the URLs to fetch them."""

from typing import Annotated

from fastapi import APIRouter, Query

from canard.wire import Artifact, ArtifactUrl, Page
from canard_platform.api.callers import CallerDep, ServicesDep
from canard_platform.api.cursors import MOST_ID, Cursor, Limit, after_two, read_two
from canard_platform.api.views import artifact_view
from canard_platform.artifacts.keys import filename
from canard_platform.store.artifacts import BEGINNING, Shown, find_artifact, page_of_artifacts
from canard_platform.store.runs import owned_run

router = APIRouter(prefix="/v1/runs/{slug}/artifacts")


@router.get("")
def list_artifacts(
    slug: str,
    caller: CallerDep,
    services: ServicesDep,
    *,
    artifact_type: Annotated[str | None, Query(max_length=50)] = None,
    task_id: Annotated[int | None, Query(ge=1, le=MOST_ID)] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[Artifact]:
    after = read_two(cursor) if cursor is not None else BEGINNING
    with services.database.read() as session:
        run = owned_run(session, caller.user_id, slug)
        rows = page_of_artifacts(
            session, run.id, limit=limit, after=after, artifact_type=artifact_type, task_id=task_id
        )
        shown = rows[:limit]
        return Page[Artifact](
            items=[artifact_view(row.artifact, task_id=row.task_id) for row in shown],
            next_cursor=_after(shown[-1]) if len(rows) > limit else None,
        )


@router.get("/url")
def get_artifact_url(
    slug: str,
    key: Annotated[str, Query(min_length=1, max_length=2000)],
    caller: CallerDep,
    services: ServicesDep,
) -> ArtifactUrl:
    """A short-lived URL; `runs/{slug}/checkpoints/...` names a file of a one-task run without its task."""
    with services.database.read() as session:
        found = find_artifact(session, owned_run(session, caller.user_id, slug), key)
    signed = services.artifacts.download_url(found.key, filename=filename(found.path))
    return ArtifactUrl(
        url=signed.url, size_bytes=found.size_bytes, sha256=found.sha256, expires_at=signed.expires_at
    )


def _after(shown: Shown) -> str:
    return after_two(shown.task_index, shown.artifact.id)
