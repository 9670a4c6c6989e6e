"""Users and their API keys. A key is shown when it is made and known by its hash afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from canard_platform.queue.tokens import new_token, same_hash, token_hash
from canard_platform.store.tables import ApiKey, User

SCOPES = ("read", "submit", "admin")
SHOWN_CHARACTERS = 12


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who asks: every query is scoped by `user_id`."""

    user_id: int
    key_id: int
    """The API key that the request, or its browser session, rests on."""
    name: str
    scopes: frozenset[str]


def ensure_user(session: Session, name: str, now: datetime) -> int:
    found = session.scalar(select(User.id).where(User.name == name))
    if found is not None:
        return found
    user = User(name=name, created_at=now)
    session.add(user)
    session.flush()
    return user.id


def issue_key(
    session: Session,
    user_id: int,
    now: datetime,
    *,
    scopes: Sequence[str] = SCOPES,
    expires_at: datetime | None = None,
) -> str:
    """A new key; this is the only time that it is seen."""
    key = new_token("canard")
    session.add(
        ApiKey(
            user_id=user_id,
            prefix=key[:SHOWN_CHARACTERS],
            key_hash=token_hash(key),
            scopes=list(scopes),
            created_at=now,
            expires_at=expires_at,
        )
    )
    return key


def find_caller(session: Session, key: str, now: datetime) -> Caller | None:
    """Who the key belongs to; None when it is unknown, expired or revoked.

    It is looked up by its hash, so the time that takes says nothing about any key.
    """
    sought = token_hash(key)
    found = session.execute(select(ApiKey.id, ApiKey.key_hash).where(ApiKey.key_hash == sought)).one_or_none()
    if found is None or not same_hash(found.key_hash, sought):
        return None
    return caller_of_key(session, found.id, now)


def caller_of_key(session: Session, key_id: int, now: datetime) -> Caller | None:
    """Who rests on this key, while it is neither expired nor revoked."""
    row = session.execute(
        select(ApiKey.scopes, User.id, User.name)
        .join(User, User.id == ApiKey.user_id)
        .where(
            ApiKey.id == key_id,
            ApiKey.revoked_at.is_(None),
            or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > now),
        )
    ).one_or_none()
    if row is None:
        return None
    return Caller(user_id=row.id, key_id=key_id, name=row.name, scopes=frozenset(row.scopes))


def lock_user(session: Session, user_id: int) -> None:
    """Whoever else locks the same user waits until this transaction has ended."""
    session.execute(select(User.id).where(User.id == user_id).with_for_update())
