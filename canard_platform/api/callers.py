"""Who is asking, from the Authorization header."""

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from canard.errors import AuthenticationError
from canard_platform.queue.leases import authenticate_attempt
from canard_platform.services import Services
from canard_platform.store.users import Caller, find_caller

_bearer = HTTPBearer(auto_error=False, description="An API key, or an attempt's own token")

Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


ServicesDep = Annotated[Services, Depends(services)]


def api_caller(services: ServicesDep, bearer: Bearer) -> Caller:
    """The user whose API key came with the request."""
    if bearer is None:
        raise AuthenticationError("no API key", hint="send it as 'Authorization: Bearer <key>'")
    with services.database.read() as session:
        caller = find_caller(session, bearer.credentials, services.clock.now())
    if caller is None:
        raise AuthenticationError("the API key is not valid: unknown, expired or revoked")
    return caller


def attempt_caller(attempt_id: str, services: ServicesDep, bearer: Bearer) -> str:
    """The id of the attempt whose token came with the request."""
    if bearer is None:
        raise AuthenticationError("no attempt token", hint="send it as 'Authorization: Bearer <token>'")
    with services.database.read() as session:
        authenticate_attempt(session, attempt_id, bearer.credentials)
    return attempt_id


CallerDep = Annotated[Caller, Depends(api_caller)]
AttemptDep = Annotated[str, Depends(attempt_caller)]
