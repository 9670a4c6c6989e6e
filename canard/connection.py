"""The wire itself: straight or through the user's proxy, and why it failed in words that help."""

import os
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.request import getproxies, proxy_bypass

import httpx

from canard.api_url import is_loopback, origin
from canard.retries import BoundedRetry, causes


@dataclass(frozen=True, kw_only=True)
class ProxyInUse:
    """A proxy, and the environment variable that names it."""

    url: str
    variable: str

    @property
    def shown(self) -> str:
        """The address without its password."""
        parts = httpx.URL(self.url)
        return f"{parts.scheme}://{parts.host}" + (f":{parts.port}" if parts.port else "")


def proxy_for(url: str) -> ProxyInUse | None:
    """The proxy that the environment wants for `url`; never one for this machine itself.

    A proxy's "127.0.0.1" is the proxy, so nothing good can come of sending loopback through it.
    """
    if is_loopback(url):
        return None
    parts = httpx.URL(url)
    proxies = getproxies()
    said = proxies.get(parts.scheme) or proxies.get("all")
    if not said or proxy_bypass(parts.host) or proxy_bypass(f"{parts.host}:{parts.port}"):
        return None
    names = (f"{parts.scheme}_proxy", f"{parts.scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY")
    variable = next((name for name in names if os.environ.get(name)), "the system's settings")
    return ProxyInUse(url=said if "://" in said else f"http://{said}", variable=variable)


class SystemTransport(httpx.BaseTransport):
    """Sends each request straight or through the proxy for its URL.

    httpx does this itself only when it is given no transport, and retrying needs one.
    """

    def __init__(self) -> None:
        self._by_proxy: dict[str | None, httpx.HTTPTransport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        proxy = proxy_for(str(request.url))
        return self._transport(proxy.url if proxy else None).handle_request(request)

    def close(self) -> None:
        for transport in self._by_proxy.values():
            transport.close()

    def _transport(self, proxy: str | None) -> httpx.HTTPTransport:
        if proxy not in self._by_proxy:
            try:
                self._by_proxy[proxy] = httpx.HTTPTransport(proxy=proxy)
            except (ImportError, ValueError) as error:  # SOCKS without its package; no such proxy scheme
                raise httpx.ProxyError(str(error)) from error
        return self._by_proxy[proxy]


class WholeAnswers(httpx.BaseTransport):
    """Reads an answer to its end within the call's deadline, so that a broken one is tried again too."""

    def __init__(self, inner: httpx.BaseTransport) -> None:
        self._inner = inner

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        retry: BoundedRetry = request.extensions["retry"]
        _leave_time_only_until_the_deadline(request, retry)
        try:
            response = self._inner.handle_request(request)
            body = _read(response, retry)
        except httpx.RequestError as error:
            error.request = request
            raise
        return whole(response, body)

    def close(self) -> None:
        self._inner.close()


def whole(response: httpx.Response, body: bytes) -> httpx.Response:
    """The same answer, complete: it may outlive its connection and be what a call ends with."""
    answer = httpx.Response(
        response.status_code,
        headers=response.headers,
        stream=httpx.ByteStream(body),
        extensions=response.extensions,
    )
    answer.read()
    return answer


def chunks(response: httpx.Response) -> Iterator[bytes]:
    """The bytes as they came over the wire, each as soon as it is there."""
    assert isinstance(response.stream, httpx.SyncByteStream)  # noqa: S101 - the transport is a sync one
    yield from response.stream


def _leave_time_only_until_the_deadline(request: httpx.Request, retry: BoundedRetry) -> None:
    left_s = max(0.001, retry.remaining_s())
    timeout = request.extensions.get("timeout", {})
    request.extensions["timeout"] = {
        phase: left_s if limit is None else min(limit, left_s) for phase, limit in timeout.items()
    }


def _read(response: httpx.Response, retry: BoundedRetry) -> bytes:
    received = []
    try:
        for chunk in chunks(response):
            received.append(chunk)
            if retry.remaining_s() <= 0:
                raise httpx.ReadTimeout("the answer did not end in time")
    finally:
        response.close()
    return b"".join(received)


def explain(error: httpx.HTTPError, url: str) -> str:
    """One line: what failed on the way to `url`, and what to do about it."""
    host = httpx.URL(url).host
    reason, advice = _reason_and_advice(error, url)
    proxy = proxy_for(url)
    if proxy is not None:
        return (
            f"{origin(url)} cannot be reached through the proxy {proxy.shown}, which {proxy.variable} names:"
            f" {reason}; to go straight, add {host} to NO_PROXY"
        )
    return f"{origin(url)} cannot be reached: {reason}" + (f"; {advice}" if advice else "")


REASONS: tuple[tuple[type[BaseException], str, str], ...] = (
    (
        ssl.SSLCertVerificationError,
        "its TLS certificate is not trusted ({cause})",
        "behind a proxy that re-signs TLS, set SSL_CERT_FILE to its CA file",
    ),
    (ssl.SSLError, "TLS failed ({cause})", "does this port speak https?"),
    (
        socket.gaierror,
        "the name {host} does not resolve",
        "is api_url right, and is this machine online?",
    ),
    (ConnectionRefusedError, "the connection was refused", "is the platform up, and the port right?"),
    (httpx.ConnectTimeout, "no connection within the time limit", "is api_url right?"),
    (httpx.TimeoutException, "no answer within the time limit", ""),
    (httpx.NetworkError, "the connection broke before the answer was whole", ""),
    (httpx.RemoteProtocolError, "the connection broke before the answer was whole", ""),
)
"""Error type, what it means, what to do; the first that fits any of the causes is told."""


def _reason_and_advice(error: httpx.HTTPError, url: str) -> tuple[str, str]:
    host = httpx.URL(url).host
    for kind, reason, advice in REASONS:
        cause = next((cause for cause in causes(error) if isinstance(cause, kind)), None)
        if cause is None:
            continue
        if kind is ConnectionRefusedError and is_loopback(url):
            advice = "is the platform up? Start it with: canard up"  # noqa: PLW2901
        return reason.format(cause=cause, host=host), advice
    return str(error) or type(error).__name__, ""
