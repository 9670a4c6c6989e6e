"""The pages: runs, one run, sign-in. Plain HTML that needs no script and asks nobody else for anything."""

from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import quote as shell_quote
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader

from canard.errors import APIError, ArtifactNotFoundError, AuthenticationError
from canard.models import TERMINAL_STATUSES
from canard_platform.api.cursors import (
    MOST_ID,
    Cursor,
    after_id,
    after_time_and_id,
    after_two,
    read_id,
    read_time_and_id,
    read_two,
)
from canard_platform.api.views import artifact_view, run_view, task_view
from canard_platform.artifacts.filesystem import FilesystemStore
from canard_platform.artifacts.keys import filename
from canard_platform.dashboard.sessions import Sessions, refuse_other_sites
from canard_platform.dashboard.words import FILTERS
from canard_platform.services import Services
from canard_platform.store import runs as queries
from canard_platform.store.artifacts import (
    BEGINNING,
    Shown,
    artifact_by_id,
    page_of_artifacts,
    runs_with_event_files,
    runs_with_files_of,
)
from canard_platform.store.login_links import use_link
from canard_platform.store.users import Caller, caller_of_key, find_caller

HERE = Path(__file__).parent
ROWS = 100
REFRESH_S = 5
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Pages:
    """Renders templates, with the headers that every page has."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(HERE / "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True
        )
        self._environment.filters.update(FILTERS)

    def render(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        text = self._environment.get_template(template).render(**values)
        return HTMLResponse(text, status_code=status, headers=HEADERS)


def dashboard_router(services: Services) -> APIRouter:
    pages = Pages()
    sessions = Sessions(services)
    router = APIRouter(include_in_schema=False, route_class=_page_route(pages))
    _add_sign_in(router, pages, sessions)
    _add_runs(router, pages, sessions)
    return router


def _add_sign_in(router: APIRouter, pages: Pages, sessions: Sessions) -> None:
    services = sessions.services

    @router.get("/static/style.css")
    def style() -> FileResponse:
        return FileResponse(HERE / "static" / "style.css", headers={"Cache-Control": "max-age=3600"})

    @router.get("/login")
    def login_page(target: Annotated[str, Query(alias="next", max_length=500)] = "/runs") -> Response:
        return pages.render("login.html", target=own_path(target))

    @router.post("/login")
    def login(
        request: Request,
        key: Annotated[str, Form(max_length=500)],
        target: Annotated[str, Form(alias="next", max_length=500)] = "/runs",
    ) -> Response:
        refuse_other_sites(request)
        with services.database.read() as session:
            caller = find_caller(session, key.strip(), services.clock.now())
        if caller is None:
            return pages.render("login.html", status=401, target=own_path(target), wrong=True)
        return _signed_in(sessions, caller, own_path(target))

    @router.get("/login/{token}")
    def login_by_link(token: str) -> Response:
        now = services.clock.now()
        with services.database.write() as session:
            link = use_link(session, token, now)
            caller = caller_of_key(session, link.key_id, now) if link is not None else None
        if link is None or caller is None:
            return pages.render("login.html", status=401, target="/runs", spent=True)
        return _signed_in(sessions, caller, own_path(link.target))

    @router.post("/logout")
    def logout(request: Request) -> Response:
        refuse_other_sites(request)
        response = RedirectResponse("/login", status_code=303, headers=HEADERS)
        sessions.sign_out(response)
        return response


def _add_runs(router: APIRouter, pages: Pages, sessions: Sessions) -> None:
    services = sessions.services

    @router.get("/")
    def root() -> Response:
        return RedirectResponse("/runs", headers=HEADERS)

    @router.get("/runs")
    def runs_page(request: Request, cursor: Cursor = None) -> Response:
        return pages.render("runs.html", **_runs(services, sessions.caller(request), cursor))

    @router.get("/runs/{slug}")
    def run_page(
        request: Request, slug: str, tasks_after: Cursor = None, artifacts_after: Cursor = None
    ) -> Response:
        caller = sessions.caller(request)
        after = (
            read_id(tasks_after) if tasks_after else 0,
            read_two(artifacts_after) if artifacts_after else BEGINNING,
        )
        return pages.render("run.html", **_run(services, caller, slug, after))

    @router.get("/runs/{slug}/download/{artifact_id}")
    def download(request: Request, slug: str, artifact_id: int) -> Response:
        """By way of the page, so that no signed URL stands in it."""
        caller = sessions.caller(request)
        if not 0 < artifact_id <= MOST_ID:
            raise ArtifactNotFoundError("no such artifact")
        with services.database.read() as session:
            run = queries.owned_run(session, caller.user_id, slug)
            found = artifact_by_id(session, run.id, artifact_id)
        signed = services.artifacts.download_url(found.key, filename=filename(found.path))
        return RedirectResponse(signed.url, headers=HEADERS)


def own_path(target: str) -> str:
    """Where to go after signing in: a page of this site, whatever was asked."""
    is_own = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if is_own else "/runs"


def _signed_in(sessions: Sessions, caller: Caller, target: str) -> Response:
    response = RedirectResponse(target, status_code=303, headers=HEADERS)
    sessions.sign_in(response, caller)
    return response


def _runs(services: Services, caller: Caller, cursor: str | None) -> dict[str, Any]:
    after = read_time_and_id(cursor) if cursor else None
    with services.database.read() as session:
        rows = queries.page_of_runs(session, caller.user_id, limit=ROWS, after=after, status=None)
        shown = rows[:ROWS]
        tallies = queries.tallies(session, [row.id for row in shown])
        runs = [
            run_view(row, tallies[row.id], user_name=caller.name, settings=services.settings) for row in shown
        ]
    return {
        "user": caller.name,
        "runs": runs,
        "next_cursor": after_time_and_id(shown[-1].created_at, shown[-1].id) if len(rows) > ROWS else None,
        "refresh_s": None if all(run.is_terminal for run in runs) else REFRESH_S,
    }


def _run(services: Services, caller: Caller, slug: str, after: tuple[int, tuple[int, int]]) -> dict[str, Any]:
    with services.database.read() as session:
        row = queries.owned_run(session, caller.user_id, slug)
        tally = queries.tallies(session, [row.id])[row.id]
        tasks = queries.page_of_tasks(session, row.id, limit=ROWS, after=after[0])
        sources = queries.sources_of(session, tasks)
        files = page_of_artifacts(session, row.id, limit=ROWS, after=after[1])
        event_files = runs_with_event_files(session, [row.id])
        return {
            "user": caller.name,
            "run": run_view(row, tally, user_name=caller.name, settings=services.settings),
            "tasks": [task_view(task, sources.get(task.source_id), mode=row.mode) for task in tasks[:ROWS]],
            "swept": list(dict.fromkeys(name for task in tasks[:ROWS] for name in task.params)),
            "files": [
                (file.artifact.id, file.artifact.path, artifact_view(file.artifact, task_id=file.task_id))
                for file in files[:ROWS]
            ],
            "tasks_after": after_id(tasks[ROWS - 1].id) if len(tasks) > ROWS else None,
            "artifacts_after": _after(files[ROWS - 1]) if len(files) > ROWS else None,
            "tensorboard": _tensorboard(services, runs_with_files_of(session, row)) if event_files else None,
            "refresh_s": None if row.status in TERMINAL_STATUSES else REFRESH_S,
        }


def _after(shown: Shown) -> str:
    return after_two(shown.task_index, shown.artifact.id)


def _tensorboard(services: Services, slugs: Sequence[str]) -> str:
    """The command that shows the event files, which lie under the runs that made them."""
    if not isinstance(services.artifacts, FilesystemStore):
        return "tensorboard --logdir <folder with the downloaded event files>"
    folders = {slug: str(services.artifacts.path(f"runs/{slug}")) for slug in slugs}
    if len(folders) == 1:
        return f"tensorboard --logdir {shell_quote(*folders.values())}"
    return f"tensorboard --logdir_spec {shell_quote(','.join(f'{slug}:{p}' for slug, p in folders.items()))}"


def _page_route(pages: Pages) -> type[APIRoute]:
    """Errors of pages are pages; whoever is not signed in is sent to sign in."""

    class PageRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Any]:
            answer = super().get_route_handler()

            async def page(request: Request) -> Response:
                try:
                    response: Response = await answer(request)
                    return response
                except AuthenticationError:
                    return RedirectResponse(
                        f"/login?next={quote(request.url.path)}", status_code=303, headers=HEADERS
                    )
                except APIError as error:
                    return pages.render("error.html", status=error.status, error=error)

            return page

    return PageRoute
