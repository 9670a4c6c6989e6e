"""Signing a browser in from a terminal that has a key: a link that works once, for a minute."""

from typing import Annotated

from fastapi import APIRouter, Body
from pydantic import Field

from canard.models import RequestModel, ResponseModel
from canard_platform.api.callers import CallerDep, ServicesDep
from canard_platform.store.login_links import issue_link

router = APIRouter(prefix="/v1")


class LoginLinkCreate(RequestModel):
    """Body of `POST /v1/login-links`; may be left out."""

    target: str = Field(default="/runs", pattern=r"^/[^/\\].*$", max_length=500)
    """The page to open, such as /runs/run_a1b2c3d4."""


class LoginLinkUrl(ResponseModel):
    url: str


@router.post("/login-links", status_code=201)
def create_login_link(
    caller: CallerDep,
    services: ServicesDep,
    body: Annotated[LoginLinkCreate | None, Body()] = None,
) -> LoginLinkUrl:
    """A URL that signs the browser in which it is opened, once, within a minute."""
    settings = services.settings
    with services.database.write() as session:
        token = issue_link(
            session,
            caller.key_id,
            target=(body or LoginLinkCreate()).target,
            ttl_s=settings.login_link_ttl_s,
            now=services.clock.now(),
        )
    return LoginLinkUrl(url=f"{settings.public_url}/login/{token}")
