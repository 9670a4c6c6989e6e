"""Links that sign a browser in once."""

from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from canard_platform.queue.moves import changed
from canard_platform.queue.tokens import new_token, token_hash
from canard_platform.store.tables import LoginLink


def issue_link(session: Session, key_id: int, *, target: str, ttl_s: float, now: datetime) -> str:
    """The link's secret; this is the only time that it is seen."""
    token = new_token("login")
    expires_at = now + timedelta(seconds=ttl_s)
    session.add(LoginLink(key_id=key_id, token_hash=token_hash(token), target=target, expires_at=expires_at))
    return token


def use_link(session: Session, token: str, now: datetime) -> LoginLink | None:
    """The link, the first time and in time; None afterwards."""
    sought = token_hash(token)
    statement = (
        update(LoginLink)
        .where(LoginLink.token_hash == sought, LoginLink.used_at.is_(None), LoginLink.expires_at > now)
        .values(used_at=now)
    )
    if not changed(session, statement):
        return None
    return session.scalars(select(LoginLink).where(LoginLink.token_hash == sought)).one()
