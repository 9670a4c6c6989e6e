"""URLs that the service signs itself: one key, one method, one expiry."""

import hashlib
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

from itsdangerous import BadSignature, URLSafeSerializer

from canard.errors import APIError, AuthenticationError

Method = Literal["GET", "PUT"]


class ForbiddenError(APIError):
    """The signature does not allow this."""

    code = "forbidden"
    status = 403


@dataclass(frozen=True, kw_only=True)
class Grant:
    """What a signed URL allows."""

    method: Method
    key: str
    filename: str = ""
    size_bytes: int = 0
    sha256: str = ""
    expires: float
    """POSIX time by the server's clock."""


class Signer:
    """Makes and reads grants; `purpose` keeps signatures for one thing from being used for another."""

    def __init__(self, secret: bytes, *, purpose: str) -> None:
        self._serializer = URLSafeSerializer(
            secret,
            salt=f"canard.{purpose}",
            signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
        )

    def sign(self, grant: Grant) -> str:
        token = self._serializer.dumps(asdict(grant))
        return token if isinstance(token, str) else token.decode()

    def read(self, token: str, *, method: Method, now: datetime) -> Grant:
        """The grant, if it is ours, for this method, and has not expired.

        Raises:
            AuthenticationError: it was not signed here.
            ForbiddenError: it expired, or allows another method.
        """
        try:
            grant = Grant(**self._serializer.loads(token))
        except (BadSignature, TypeError):
            raise AuthenticationError("this URL was not signed by this platform") from None
        if now.timestamp() > grant.expires:
            raise ForbiddenError("this URL has expired", hint="ask the API for a new one")
        if grant.method != method:
            raise ForbiddenError(f"this URL is for {grant.method} only")
        return grant
