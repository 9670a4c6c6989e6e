"""What can be set about a platform, in one frozen object that `serve` fills in."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Limits, times and budgets of one platform."""

    public_url: str
    """Scheme, host and port under which clients and attempt runners reach the service."""

    lease_s: float = 60.0
    """How long an attempt may write after its last sign of life."""
    heartbeat_s: float = 3.0
    """How often an attempt runner reports; also how long it takes to hear of a cancel."""

    max_attempts: int = 3
    """Attempts that may end in an error before the task fails."""
    max_preemptions: int = 100
    """Times a task may be handed back before it fails, so that every task ends."""
    retry_delay_s: float = 1.0
    """Wait before the second attempt after an error; doubles with each further one."""

    cancel_grace_s: float = 30.0
    """How long an attempt runner has to stop by itself after a cancel, before it is killed."""
    stop_grace_s: float = 10.0
    """How long running attempts have to checkpoint and hand back when the service stops."""
    linger_s: float = 30.0
    """How long a runner may live on after its attempt ended."""

    max_members: int = 20_000
    max_body_bytes: int = 16 * 2**20
    url_ttl_s: float = 3600.0
    """How long a signed upload or download URL works."""
    login_link_ttl_s: float = 60.0
    session_ttl_s: float = 12 * 3600.0
    history_points: int = 20_000
    """Most points of `reward_history` in one answer; above it every n-th iteration is kept."""
    live_interval_s: float = 1.0
    """How often a live view looks for changes."""
