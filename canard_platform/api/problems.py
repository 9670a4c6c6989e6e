"""Every error leaves as application/problem+json: a code, the field, what to do."""

import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from canard.errors import APIError, InvalidRequestError, RateLimitedError
from canard.wire import Problem

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
PLACES = frozenset({"body", "query", "path", "header", "cookie"})


class TooLargeError(APIError):
    """The body is over the limit."""

    code = "too_large"
    status = 413


class UnsupportedEncodingError(APIError):
    """The body is packed in a way that is not known here."""

    code = "unsupported_encoding"
    status = 415


class UnavailableError(APIError):
    """The service is stopping."""

    code = "unavailable"
    status = 503


def install(app: FastAPI) -> None:
    app.add_exception_handler(APIError, _api_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RecursionError, _too_deep)
    app.add_exception_handler(Exception, _unexpected)


def problem_response(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    return Response(
        problem.model_dump_json(exclude_none=True),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers=headers,
    )


def as_problem(error: APIError) -> Problem:
    return Problem(
        title=_title(error.status),
        status=error.status,
        code=error.code,
        detail=error.message,
        field=error.field,
        hint=error.hint,
    )


def validation_problem(errors: Sequence[Any]) -> Problem:
    """The first error by its dotted field; the others are counted."""
    first = errors[0]
    parts = list(first["loc"])
    if len(parts) > 1 and parts[0] in PLACES:
        parts = parts[1:]
    field = ".".join(str(part) for part in parts)
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return Problem(
        title=_title(422),
        status=422,
        code="invalid_request",
        detail=f"{field}: {first['msg']}{more}",
        field=field,
    )


async def _api_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, APIError)  # noqa: S101 - FastAPI calls it for nothing else
    headers = {}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, RateLimitedError) and error.retry_after_s is not None:
        headers["Retry-After"] = str(int(error.retry_after_s))
    return problem_response(as_problem(error), headers)


async def _validation_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - as above
    return problem_response(validation_problem(error.errors()))


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - as above
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "invalid_request")
    problem = Problem(
        title=_title(error.status_code), status=error.status_code, code=code, detail=str(error.detail)
    )
    return problem_response(problem, dict(error.headers or {}))


async def _too_deep(_: Request, _error: Exception) -> Response:
    """JSON of a thousand levels passes the parser and then exhausts whoever walks it."""
    return problem_response(as_problem(InvalidRequestError("the body is nested too deep")))


async def _unexpected(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return problem_response(
        Problem(
            title=_title(500),
            status=500,
            code="server_error",
            detail="the platform failed; its log says more",
            hint="try again",
        )
    )


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
