"""Which platform is meant: one form for an API's address, whatever the user typed."""

import ipaddress
from urllib.parse import SplitResult, urlsplit

from canard.errors import InvalidRequestError

DEFAULT_PORTS = {"http": 80, "https": 443}


def clean(api_url: str) -> str:
    """The address without a trailing slash, checked.

    Raises:
        InvalidRequestError: it is no http(s) URL, or it holds a password, a query or a fragment.
    """
    parts = _split(api_url)
    if parts.username is not None or parts.password is not None:
        raise _refused("must not hold a user or password; pass api_key instead")
    if parts.query or parts.fragment:
        raise _refused("must be an address only, without '?' or '#'")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def origin(api_url: str) -> str:
    """Scheme, host and port, the same text for every spelling of one place; localhost is 127.0.0.1."""
    parts = _split(api_url)
    host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = parts.port
    named = "" if port is None or port == DEFAULT_PORTS[parts.scheme] else f":{port}"
    return f"{parts.scheme}://{host}{named}"


def is_loopback(url: str) -> bool:
    """Whether the host is this machine by its name or address (no look-up is made)."""
    host = _split(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise _refused(f"{url!r} is no URL: {error}") from None
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or port == 0:
        raise _refused(f"{url!r} is no URL; write it like http://127.0.0.1:8787 or https://api.canard.cloud")
    return parts


def _refused(what: str) -> InvalidRequestError:
    return InvalidRequestError(f"api_url: {what}", field="api_url")
