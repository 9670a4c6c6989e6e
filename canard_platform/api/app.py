"""The HTTP service, put together from injected parts."""

from fastapi import APIRouter, FastAPI

from canard import __version__
from canard.wire import Health
from canard_platform.api import artifacts, attempts, login_links, problems, runs
from canard_platform.api.blobs import blob_router
from canard_platform.api.limits import BodyLimit, Noticed
from canard_platform.artifacts.filesystem import FilesystemStore
from canard_platform.dashboard.pages import dashboard_router
from canard_platform.services import Services

health_router = APIRouter(prefix="/v1")


@health_router.get("/health")
def health() -> Health:
    """Whether the service answers; needs no key."""
    return Health(status="ok", version=__version__)


def create_app(services: Services) -> FastAPI:
    """The service; everything it touches is in `services`."""
    app = FastAPI(title="Canard", version=__version__, docs_url=None, redoc_url=None)
    app.state.services = services
    app.include_router(health_router)
    app.include_router(runs.router)
    app.include_router(artifacts.router)
    app.include_router(attempts.router)
    app.include_router(login_links.router)
    app.include_router(dashboard_router(services))
    if isinstance(services.artifacts, FilesystemStore):
        app.include_router(blob_router(services.artifacts))
    app.add_middleware(BodyLimit, most_bytes=services.settings.max_body_bytes)
    app.add_middleware(Noticed, activity=services.activity)
    problems.install(app)
    return app
