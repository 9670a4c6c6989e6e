"""What crosses HTTP beside the documented models: pages, artifacts, problems, and the attempt protocol.

Requests are strict, responses keep what they do not know, as in `canard.models`.
"""

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field

from canard.models import RequestModel, ResponseModel, Run, RunConfig

ArtifactType = Literal["checkpoint", "video", "tensorboard", "policy", "summary", "log", "config"]
Phase = Literal["starting", "checkout", "install", "training", "uploading"]
Outcome = Literal["completed", "failed", "preempted", "cancelled"]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

ItemT = TypeVar("ItemT")


class Page(ResponseModel, Generic[ItemT]):
    """One page of a list; `next_cursor` is None on the last."""

    items: list[ItemT]
    next_cursor: str | None = None


class RunCreate(RequestModel):
    """Body of `POST /v1/runs`; all tasks are created or none."""

    name: str = Field(min_length=1, max_length=300)
    config: RunConfig


class ReusedMember(ResponseModel):
    """A member that needs no training of its own."""

    index: int
    source: str
    """`run_xxxxxxxx/3`: run and index of the task with the same content."""
    is_done: bool
    """Whether the source has completed; else the member follows it: takes its result over, or is trained when
    there will be none."""


class Reuse(ResponseModel):
    """What of a run needs no training of its own; every other member is trained."""

    members: list[ReusedMember] = Field(default_factory=list)
    """In the order of the run."""
    note: str | None = None
    """Why some members could not be looked for, in one line."""

    @property
    def done(self) -> list[ReusedMember]:
        """Members whose result is there already."""
        return [member for member in self.members if member.is_done]

    @property
    def following(self) -> list[ReusedMember]:
        """Members that wait for a task of another run."""
        return [member for member in self.members if not member.is_done]

    @property
    def by_index(self) -> dict[int, ReusedMember]:
        return {member.index: member for member in self.members}


class RunPreview(ResponseModel):
    """Answer to `POST /v1/runs/preview`: what the same submit would do now. Nothing was created."""

    num_tasks: int
    reuse: Reuse = Field(default_factory=Reuse)
    active_run: str | None = None
    """Slug of the run that a submit would come back to: the same name and members, and not ended yet."""


class SubmittedRun(Run):
    """Answer to `POST /v1/runs`."""

    submitted_as: str = "new"
    """new; repeated (the Idempotency-Key was used before); active (the very same run has not ended yet)."""
    reuse: Reuse = Field(default_factory=Reuse)


class Problem(ResponseModel):
    """application/problem+json (RFC 9457) with our code, the field that was wrong and what to do."""

    type: str = "about:blank"
    title: str
    status: int
    code: str
    detail: str
    field: str | None = None
    hint: str | None = None


class Health(ResponseModel):
    """Body of `GET /v1/health`, the only route besides sign-in that needs no key."""

    status: str
    version: str


class Artifact(ResponseModel):
    """A file of a task that was received whole."""

    s3_key: str
    artifact_type: str
    filename: str
    task_id: int
    attempt: int
    size_bytes: int
    sha256: str
    iteration: int | None = None
    mean_reward: float | None = None
    created_at: datetime


class ArtifactUrl(ResponseModel):
    """A short-lived URL for one key and one method, with what the bytes must be."""

    url: str
    size_bytes: int
    sha256: str
    expires_at: datetime


class Checkpoint(ResponseModel):
    """A checkpoint to start from; `local_path` instead of `url` when it lies on the worker's machine."""

    url: str | None = None
    local_path: str | None = None
    filename: str
    size_bytes: int | None = None
    sha256: str | None = None
    iteration: int | None = None


class AttemptSpec(ResponseModel):
    """Answer to `POST /v1/attempts/{id}/start`: all that one attempt needs to know."""

    run_slug: str
    task_id: int
    attempt: int
    mode: Literal["training", "physics"]
    config: dict[str, Any]
    """A TrainingConfig or PhysicsConfig, resolved."""
    code_commit: str | None = None
    """Pinned full SHA; None until the first attempt resolved `code_ref`."""
    local_code_allowed: bool = False
    """Whether code_url may be a path on the worker's machine (local executor only)."""
    resume: list[Checkpoint] = Field(default_factory=list)
    """Checkpoints of this task's earlier attempts, newest first; the first sound one is taken."""
    start_from: Checkpoint | None = None
    """What checkpoint_url named; used when `resume` has none. Not sound means failure, not a fresh start."""
    lease_s: float
    heartbeat_s: float


class Heartbeat(RequestModel):
    """Body of `POST /v1/attempts/{id}/heartbeat`."""

    phase: Phase
    code_commit: str | None = Field(default=None, pattern=r"^[0-9a-f]{40,64}$")
    """Set once the checkout is made: the first one pins it for all attempts of the run."""


class HeartbeatAnswer(ResponseModel):
    """The lease is renewed for `lease_s` from the server's now."""

    lease_s: float
    stop: Literal["cancel", "preempt"] | None = None
    """Set when the trainer must stop: the user cancelled, or the machine is wanted back."""


class EventBatch(RequestModel):
    """Body of `POST /v1/attempts/{id}/events`: lines of events.jsonl, numbered from 0 in the attempt.

    Repeating a batch changes nothing.
    """

    first_seq: int = Field(ge=0)
    events: list[dict[str, Any]] = Field(min_length=1, max_length=1000)


class EventBatchAnswer(ResponseModel):
    next_seq: int


class UploadRequest(RequestModel):
    """Body of `POST /v1/attempts/{id}/uploads`: announces a file, gets a URL to PUT it to."""

    path: str = Field(min_length=1, max_length=512)
    """Relative to the attempt's output, such as `checkpoints/model_50.pt`."""
    artifact_type: ArtifactType
    size_bytes: int = Field(ge=0)
    sha256: Sha256
    iteration: int | None = None
    mean_reward: float | None = None


class UploadTicket(ResponseModel):
    s3_key: str
    url: str
    method: Literal["PUT"] = "PUT"
    headers: dict[str, str] = Field(default_factory=dict)


class AttemptReport(RequestModel):
    """Body of `POST /v1/attempts/{id}/commit`: the end of an attempt, accepted once, repeated safely."""

    outcome: Outcome
    exit_code: int | None = None
    error: str | None = Field(default=None, max_length=20_000)
    """One line for people, then the tail of the log."""
    retryable: bool = True
    """False when another attempt cannot help: the config is wrong, or training diverged."""
    summary: dict[str, Any] | None = None
    """summary.json of the trainer; a completed attempt has one."""
