"""Browser sessions: a signed cookie that names an API key, and lasts no longer than the key."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from fastapi import Request, Response
from itsdangerous import BadSignature, URLSafeSerializer

from canard.errors import AuthenticationError
from canard_platform.artifacts.signing import ForbiddenError
from canard_platform.services import Services
from canard_platform.store.users import Caller, caller_of_key


@dataclass(frozen=True)
class Sessions:
    """Signs browsers in and out, and tells who they are."""

    services: Services

    @property
    def cookie(self) -> str:
        """Browsers share cookies between the ports of a host, so that each platform has its own name."""
        return f"canard_session_{urlsplit(self.services.settings.public_url).port or 'web'}"

    def sign_in(self, response: Response, caller: Caller) -> None:
        settings = self.services.settings
        ends = self.services.clock.now() + timedelta(seconds=settings.session_ttl_s)
        response.set_cookie(
            self.cookie,
            self._serializer().dumps([caller.key_id, ends.timestamp()]),
            max_age=int(settings.session_ttl_s),
            httponly=True,
            samesite="strict",
            secure=settings.public_url.startswith("https:"),
        )

    def sign_out(self, response: Response) -> None:
        response.delete_cookie(self.cookie, httponly=True, samesite="strict")

    def caller(self, request: Request) -> Caller:
        """Raises AuthenticationError when the browser is not signed in (any more)."""
        now = self.services.clock.now()
        key_id = self._key_id(request.cookies.get(self.cookie, ""), now)
        if key_id is not None:
            with self.services.database.read() as session:
                caller = caller_of_key(session, key_id, now)
            if caller is not None:
                return caller
        raise AuthenticationError("sign in first")

    def _key_id(self, cookie: str, now: datetime) -> int | None:
        try:
            key_id, ends = self._serializer().loads(cookie)
        except (BadSignature, TypeError, ValueError):
            return None
        return int(key_id) if now.timestamp() < ends else None

    def _serializer(self) -> URLSafeSerializer:
        return URLSafeSerializer(
            self.services.secret,
            salt="canard.session",
            signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
        )


def refuse_other_sites(request: Request) -> None:
    """A form counts only when it was sent from a page of this site."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.url.netloc:
        raise ForbiddenError("this form was sent from another site")
