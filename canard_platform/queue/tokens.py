"""Secrets that are handed out once and known by their hash afterwards."""

import hashlib
import hmac
import secrets

BYTES = 32


def new_token(prefix: str) -> str:
    """256 random bits behind a prefix that says what it is."""
    return f"{prefix}_{secrets.token_urlsafe(BYTES)}"


def token_hash(token: str) -> str:
    """A plain hash is enough: the tokens are random, so there is nothing to guess faster."""
    return hashlib.sha256(token.encode()).hexdigest()


def same_hash(one: str, other: str) -> bool:
    return hmac.compare_digest(one, other)
