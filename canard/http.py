"""The one door to the platform's API: keys, tries, answers and errors.

Answers become models; problem+json becomes the class in `canard.errors` that has its code; silence becomes
ConnectionFailedError with the reason in words.
"""

import gzip
import os
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import httpx
from httpx_retries import RetryTransport
from pydantic import BaseModel, ValidationError

from canard import api_url as addresses
from canard.connection import SystemTransport, WholeAnswers, explain
from canard.errors import (
    APIError,
    AuthenticationError,
    ConflictError,
    ConnectionFailedError,
    InvalidRequestError,
    NotFoundError,
    RateLimitedError,
    ServerError,
)
from canard.retries import NotWorthWaitingError, Patience, retry_after_s
from canard.wire import Page

ModelT = TypeVar("ModelT", bound=BaseModel)
Params = Mapping[str, str | int | None]

PAGE_SIZE = 100
SHOWN_TEXT_CHARS = 200
GZIP_FROM_BYTES = 10_000
"""Below this a body fits into a few packets either way."""
PLAIN_HTTP_VARIABLE = "CANARD_ALLOW_HTTP"


class Http:
    """Calls to one platform with one key.

    Args:
        api_url: address of the platform; plain http only to this machine (see `refuse_plain_http`).
        api_key: sent as a bearer token; None for routes that need none.
        key_source: where the key came from, in words; told when the platform refuses it.
        transport: in place of the network; for tests and for an application in the same process.
    """

    def __init__(
        self,
        api_url: str,
        api_key: str | None,
        *,
        key_source: str = "",
        patience: Patience | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._key_source = key_source
        self.api_url = addresses.clean(api_url)
        if api_key is not None:
            refuse_plain_http(self.api_url)
        self._patience = patience or Patience()
        self._client = httpx.Client(
            transport=RetryTransport(WholeAnswers(transport or SystemTransport())),
            headers=_headers(api_key),
            timeout=httpx.Timeout(self._patience.read_s, connect=self._patience.connect_s),
        )

    def __repr__(self) -> str:
        return f"Http({self.api_url!r})"

    def close(self) -> None:
        self._client.close()

    def get(
        self, path: str, model: type[ModelT], *, params: Params | None = None, total_s: float | None = None
    ) -> ModelT:
        """The answer as `model`; `total_s` bounds this call closer than usual."""
        return _parsed(self._send("GET", path, params=params, total_s=total_s), model)

    def get_text(self, path: str, *, params: Params | None = None) -> str:
        return self._send("GET", path, params=params).text

    def post(
        self,
        path: str,
        model: type[ModelT],
        *,
        body: BaseModel | None = None,
        idempotency_key: str,
        total_s: float | None = None,
    ) -> ModelT:
        """The answer as `model`. The key stays the same over all tries, so that they count as one."""
        content = body.model_dump_json() if body is not None else None
        answer = self._send("POST", path, content=content, idempotency_key=idempotency_key, total_s=total_s)
        return _parsed(answer, model)

    def pages(
        self, path: str, item: type[ModelT], *, params: Params | None = None, page_size: int = PAGE_SIZE
    ) -> Iterator[ModelT]:
        """Every item of a list, page by page, as far as the caller goes on asking."""
        cursor: str | None = None
        seen: set[str] = set()
        while True:
            asked = {**(params or {}), "limit": page_size, "cursor": cursor}
            page = self.get(path, Page[item], params=asked)  # type: ignore[valid-type]
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return
            if cursor in seen:
                raise ServerError(f"GET {path}: the platform's list goes round in circles")
            seen.add(cursor)

    def _send(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        content: str | None = None,
        idempotency_key: str | None = None,
        total_s: float | None = None,
    ) -> httpx.Response:
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        body = content.encode() if content is not None else None
        if body is not None:
            headers["Content-Type"] = "application/json"
            if len(body) >= GZIP_FROM_BYTES:
                # Members of a sweep are much alike: already level 1 makes them a tenth, and takes no time.
                body, headers["Content-Encoding"] = gzip.compress(body, compresslevel=1, mtime=0), "gzip"
        try:
            response = self._client.request(
                method,
                self.api_url + path,
                params={name: value for name, value in (params or {}).items() if value is not None},
                content=body,
                headers=headers,
                extensions={"retry": self._patience.retry(total_s=total_s)},
            )
        except NotWorthWaitingError as given_up:
            response = given_up.response
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._no_answer(error, idempotency_key if content is not None else None) from error
        if not response.is_success:
            raise self._error(response, f"{method} {path}")
        return response

    def _error(self, response: httpx.Response, what: str) -> APIError:
        error = error_of(response, what)
        if isinstance(error, AuthenticationError) and self._key_source:
            error.hint = f"{error.hint}; " if error.hint else ""
            error.hint += f"the key came from {self._key_source}"
        return error

    def _no_answer(self, error: Exception, idempotency_key: str | None) -> ConnectionFailedError:
        if not isinstance(error, httpx.HTTPError):
            return ConnectionFailedError(f"{self.api_url}: {error}")
        message = explain(error, self.api_url)
        if idempotency_key:
            message += f" (idempotency key {idempotency_key}: with it the same submit makes no second run)"
        return ConnectionFailedError(message, idempotency_key=idempotency_key)


def refuse_plain_http(api_url: str) -> None:
    """A key must not cross a network in clear text.

    Raises:
        InvalidRequestError: http:// to another machine, and $CANARD_ALLOW_HTTP does not allow it.
    """
    if api_url.startswith("https://") or addresses.is_loopback(api_url):
        return
    if os.environ.get(PLAIN_HTTP_VARIABLE, "") not in ("", "0"):
        return
    raise InvalidRequestError(
        f"api_url: {api_url} is another machine, and over http:// the API key could be read on the way;"
        f" use https://, or a tunnel (ssh -L 8787:127.0.0.1:8787 HOST), or set {PLAIN_HTTP_VARIABLE}=1"
        " if this network is trusted",
        field="api_url",
    )


def error_of(response: httpx.Response, what: str) -> APIError:
    """The error that an answer stands for; `what` is the request, for an answer that explains nothing."""
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {}
    kind = _classes_by_code().get(str(problem.get("code"))) or _class_by_status(response.status_code)
    detail = problem.get("detail")
    error = kind(
        detail if isinstance(detail, str) and detail else _unexplained(response, what),
        field=_text(problem.get("field")),
        hint=_text(problem.get("hint")),
        request_id=response.headers.get("X-Request-Id"),
        retry_after_s=retry_after_s(response),
    )
    if error.retry_after_s and response.status_code in (429, 503) and error.hint is None:
        error.hint = f"the platform asks to wait {error.retry_after_s:.0f} s"
    return error


def _classes_by_code() -> dict[str, type[APIError]]:
    classes = [APIError]
    for known in classes:
        classes.extend(known.__subclasses__())
    return {known.code: known for known in classes}


BY_STATUS: dict[int, type[APIError]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    403: AuthenticationError,
    404: NotFoundError,
    409: ConflictError,
    413: InvalidRequestError,
    422: InvalidRequestError,
    429: RateLimitedError,
}


def _class_by_status(status: int) -> type[APIError]:
    return BY_STATUS.get(status, ServerError if status >= 500 else APIError)


def _unexplained(response: httpx.Response, what: str) -> str:
    if response.is_redirect:
        return f"{what}: redirected to {response.headers.get('Location', 'nowhere')}; use that as api_url"
    said = " ".join(response.text.split())[:SHOWN_TEXT_CHARS]
    if "html" in response.headers.get("Content-Type", ""):
        said = "an HTML page; is api_url the platform's API, or is there a proxy in between?"
    return f"{what}: {response.status_code} {response.reason_phrase}".rstrip() + (f": {said}" if said else "")


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _headers(api_key: str | None) -> dict[str, str]:
    from canard import __version__

    headers = {"User-Agent": f"canard-python/{__version__}", "Accept": "application/json"}
    return {**headers, "Authorization": f"Bearer {api_key}"} if api_key is not None else headers


def _parsed(response: httpx.Response, model: type[ModelT]) -> ModelT:
    try:
        return model.model_validate_json(response.content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ServerError(
            f"{response.request.method} {response.request.url.path}: the answer is none that this version"
            f" of canard knows ({where + ': ' if where else ''}{first['msg']})",
            hint="is api_url the platform's API? If so, upgrade canard-hydra",
        ) from error
