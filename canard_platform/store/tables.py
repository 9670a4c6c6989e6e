"""The tables. Every query names its columns through these classes; rows change by guarded UPDATEs only."""

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import (
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    desc,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from canard_platform.store.columns import BigId, Json, UtcDateTime

DEFAULT_QUEUE = "default"
CLAIMABLE = text("status = 'queued' AND source_id IS NULL")
FOLLOWER = text("status = 'queued' AND source_id IS NOT NULL")
ORIGINAL = text("source_id IS NULL")


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: UtcDateTime,
        dict[str, Any]: Json,
        list[str]: Json,
        int: Integer,
        float: Float,
        str: String,
    }


class User(Base):
    __tablename__ = "users"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    created_at: Mapped[datetime]


class ApiKey(Base):
    """An API key, known by its hash only."""

    __tablename__ = "api_keys"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    user_id: Mapped[int] = mapped_column(BigId, ForeignKey("users.id"), index=True)
    prefix: Mapped[str]
    """First characters, so that a person can tell keys apart."""
    key_hash: Mapped[str] = mapped_column(unique=True)
    scopes: Mapped[list[str]]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class LoginLink(Base):
    """A link that signs a browser in once."""

    __tablename__ = "login_links"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    key_id: Mapped[int] = mapped_column(BigId, ForeignKey("api_keys.id"))
    """The key that asked for it: the browser may do what the key may, and as long."""
    token_hash: Mapped[str] = mapped_column(unique=True)
    target: Mapped[str]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class Run(Base):
    __tablename__ = "runs"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    slug: Mapped[str] = mapped_column(unique=True)
    user_id: Mapped[int] = mapped_column(BigId, ForeignKey("users.id"))
    name: Mapped[str] = mapped_column(Text)
    mode: Mapped[str]
    config: Mapped[dict[str, Any]]
    """The RunConfig as it was said, without `tasks`: the members' deltas are the tasks' params."""
    explicit_tasks: Mapped[bool]
    num_tasks: Mapped[int]
    status: Mapped[str]
    """Derived from the tasks, kept here so that lists can filter by it."""
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    fingerprint: Mapped[str | None]
    """Of name and members; None when the content of some was not known at the submit."""
    reuse_note: Mapped[str | None] = mapped_column(Text)
    """Why some members were not looked for among earlier tasks."""

    __table_args__ = (
        Index("ix_runs_user_id_created_at_id", "user_id", desc("created_at"), desc("id")),
        Index("ix_runs_user_id_fingerprint", "user_id", "fingerprint"),
    )


class Task(Base):
    __tablename__ = "tasks"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    run_id: Mapped[int] = mapped_column(BigId, ForeignKey("runs.id"))
    user_id: Mapped[int | None] = mapped_column(BigId, ForeignKey("users.id"))
    """The run's, repeated here for the index; never None, but a column that was added later may be."""
    index: Mapped[int]
    params: Mapped[dict[str, Any]]
    config: Mapped[dict[str, Any]]
    """The resolved TrainingConfig or PhysicsConfig."""
    code_url: Mapped[str | None] = mapped_column(Text)
    code_ref: Mapped[str | None] = mapped_column(Text)
    code_commit: Mapped[str | None]
    start_from: Mapped[dict[str, Any] | None]
    """What checkpoint_url named: {"key": ...} of an artifact, or {"path": ...} on this machine; and its
    {"sha256": ...}."""
    identity: Mapped[str | None]
    """See `canard.identity`; None while the commit is not known."""
    source_id: Mapped[int | None] = mapped_column(BigId, ForeignKey("tasks.id"))
    """The task with the same identity whose result this one has or, while it is queued, waits for. A source
    has none itself."""

    queue: Mapped[str] = mapped_column(default=DEFAULT_QUEUE)
    gpu_count: Mapped[int]
    priority: Mapped[int] = mapped_column(default=0)
    status: Mapped[str]
    attempt: Mapped[int] = mapped_column(default=0)
    """Number of the newest attempt, and the fencing token: a write says which attempt it comes from."""
    available_at: Mapped[datetime]
    """Not claimed before; later than created_at after an error."""
    errors: Mapped[int] = mapped_column(default=0)
    preemptions: Mapped[int] = mapped_column(default=0)
    cancel_requested_at: Mapped[datetime | None]

    worker_id: Mapped[str | None]
    s3_key: Mapped[str | None] = mapped_column(Text)
    metrics: Mapped[dict[str, Any] | None]
    error_message: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    completed_at: Mapped[datetime | None]

    progress: Mapped[float] = mapped_column(default=0.0)
    """0-1."""
    iteration: Mapped[int] = mapped_column(default=0)
    max_iterations: Mapped[int] = mapped_column(default=0)
    mean_reward: Mapped[float | None]
    first_mean_reward: Mapped[float | None]
    best_mean_reward: Mapped[float | None]
    mean_episode_length: Mapped[float | None]

    __table_args__ = (
        UniqueConstraint("run_id", "index"),
        Index("ix_tasks_run_id_status", "run_id", "status"),
        Index("ix_tasks_status", "status"),
        Index(
            "ix_tasks_claim",
            "queue",
            "gpu_count",
            desc("priority"),
            "id",
            sqlite_where=CLAIMABLE,
            postgresql_where=CLAIMABLE,
        ),
        Index("ix_tasks_followers", "source_id", sqlite_where=FOLLOWER, postgresql_where=FOLLOWER),
        Index(
            "ix_tasks_user_id_identity",
            "user_id",
            "identity",
            sqlite_where=ORIGINAL,
            postgresql_where=ORIGINAL,
        ),
    )


class Attempt(Base):
    """One execution of a task: its lease, its place, its end."""

    __tablename__ = "attempts"

    id: Mapped[str] = mapped_column(primary_key=True)
    task_id: Mapped[int] = mapped_column(BigId, ForeignKey("tasks.id"))
    number: Mapped[int]
    token_hash: Mapped[str]
    status: Mapped[str]
    """running, then how it ended: completed, failed, preempted, cancelled or lost."""
    worker_id: Mapped[str]
    handle: Mapped[str | None] = mapped_column(Text)
    """The executor's name of the process; None until it was launched."""
    phase: Mapped[str | None]
    next_seq: Mapped[int] = mapped_column(default=0)
    """Number of the first event not received yet."""
    lease_expires_at: Mapped[datetime]
    claimed_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    exit_code: Mapped[int | None]
    error: Mapped[str | None] = mapped_column(Text)
    report_hash: Mapped[str | None]

    __table_args__ = (
        UniqueConstraint("task_id", "number"),
        Index(
            "uq_attempts_one_running",
            "task_id",
            unique=True,
            sqlite_where=text("status = 'running'"),
            postgresql_where=text("status = 'running'"),
        ),
        Index(
            "uq_attempts_one_result",
            "task_id",
            unique=True,
            sqlite_where=text("status = 'completed'"),
            postgresql_where=text("status = 'completed'"),
        ),
        Index(
            "ix_attempts_lease_expires_at",
            "lease_expires_at",
            sqlite_where=text("status = 'running'"),
            postgresql_where=text("status = 'running'"),
        ),
    )


class Artifact(Base):
    """A file that was received whole."""

    __tablename__ = "artifacts"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    run_id: Mapped[int] = mapped_column(BigId, ForeignKey("runs.id"))
    task_id: Mapped[int] = mapped_column(BigId, ForeignKey("tasks.id"))
    attempt: Mapped[int]
    key: Mapped[str] = mapped_column(Text, unique=True)
    path: Mapped[str] = mapped_column(Text)
    """Relative to the attempt's output."""
    artifact_type: Mapped[str]
    size_bytes: Mapped[int] = mapped_column(BigId)
    sha256: Mapped[str]
    iteration: Mapped[int | None]
    mean_reward: Mapped[float | None]
    created_at: Mapped[datetime]

    __table_args__ = (
        Index("ix_artifacts_run_id_id", "run_id", "id"),
        Index("ix_artifacts_task_id_path", "task_id", "path"),
    )


class Point(Base):
    """The numbers of one iteration. One per task and iteration: the newest attempt's."""

    __tablename__ = "points"

    task_id: Mapped[int] = mapped_column(BigId, ForeignKey("tasks.id"), primary_key=True)
    iteration: Mapped[int] = mapped_column(primary_key=True)
    attempt: Mapped[int]
    mean_reward: Mapped[float | None]
    mean_episode_length: Mapped[float | None]
    numbers: Mapped[dict[str, Any]]
    """The event as the trainer wrote it, with what JSON cannot say as null and named in `nonfinite`."""


class IdempotencyKey(Base):
    """A submit that was acknowledged under a key of the client's."""

    __tablename__ = "idempotency_keys"

    user_id: Mapped[int] = mapped_column(BigId, ForeignKey("users.id"), primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    body_hash: Mapped[str]
    run_id: Mapped[int] = mapped_column(BigId, ForeignKey("runs.id"))
    created_at: Mapped[datetime]
