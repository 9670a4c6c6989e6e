"""The documented models, and nothing that needs more than pydantic.

Requests (`TrainingConfig`, `RunConfig`, `SweepConfig`) refuse unknown fields and name the nearest known one.
Responses keep unknown fields and unknown statuses as they are, because servers are upgraded before clients.
"""

import difflib
import math
import numbers
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    StrictBool,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from canard.cost import estimate_cost

DEFAULT_TRAINING_TASK = "Template-G1-Training-Direct-v0"
"""Gym ID that `Client.submit_training_run` takes when none is given."""

DEFAULT_PHYSICS_TASK = "Canard-Cartpole-v0"
"""Gym ID that a physics run steps when it names none; needs no simulator but torch."""

GPU_COUNTS = (1, 2, 4, 8)
MAX_SEED = 2**32 - 1

TERMINAL_STATUSES = frozenset({"completed", "failed", "cancelled"})
"""Statuses that never change again. An unknown status is not one of them."""


def _a_number(value: Any) -> Any:
    if type(value) in (int, float):  # nearly all; the abstract classes below take ten times as long
        return value
    if isinstance(value, bool | str):
        raise PydanticCustomError("number_type", "must be a number, not {value}", {"value": repr(value)})
    return int(value) if isinstance(value, numbers.Integral) else value


def _plain_json(value: Any) -> Any:
    """The value as JSON can say it; NaN and infinities would arrive as null, which means something else."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return float(value)
    if isinstance(value, list | tuple):
        return [_plain_json(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain_json(item) for key, item in value.items()}
    raise PydanticCustomError(
        "json_value",
        "must be text, a finite number, true, false, null, or a list or mapping of them, not {value}",
        {"value": repr(value)},
    )


def _a_machine_size(gpu_count: int) -> int:
    if gpu_count not in GPU_COUNTS:
        raise PydanticCustomError("gpu_count", "must be 1, 2, 4 or 8, not {n}", {"n": gpu_count})
    return gpu_count


Int = Annotated[int, BeforeValidator(_a_number)]
Float = Annotated[float, BeforeValidator(_a_number)]
GpuCount = Annotated[Int, AfterValidator(_a_machine_size)]
Json = Annotated[Any, BeforeValidator(_plain_json)]


class RequestModel(BaseModel):
    """Frozen; refuses unknown fields, naming the nearest known one; refuses NaN and infinities."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="wrap")
    @classmethod
    def _name_the_nearest_field(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(value)
        except ValidationError as error:
            if not any(e["type"] == "extra_forbidden" and len(e["loc"]) == 1 for e in error.errors()):
                raise
            raise ValidationError.from_exception_data(
                error.title, [cls._explained(e) for e in error.errors()]
            ) from None

    @classmethod
    def _explained(cls, error: Any) -> InitErrorDetails:
        message = error["msg"]
        if error["type"] == "extra_forbidden" and len(error["loc"]) == 1:
            message = unknown_field_message(str(error["loc"][0]), cls.model_fields)
        return InitErrorDetails(
            type=PydanticCustomError(error["type"], "{message}", {"message": message}),
            loc=error["loc"],
            input=error["input"],
        )


def unknown_field_message(name: str, known: Any) -> str:
    """`unknown field 'learing_rate'; did you mean 'learning_rate'?`, or the list of the known ones."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}?" if near else f"known fields: {', '.join(sorted(known))}"
    return f"unknown field {name!r}; {hint}"


class ResponseModel(BaseModel):
    """Frozen; keeps what it does not know."""

    model_config = ConfigDict(extra="allow", frozen=True)


class TrainingConfig(RequestModel):
    """Configuration of one training. A PPO or network field left at None means the task's own value."""

    task_name: str = Field(min_length=1, max_length=300)
    """Gym environment ID, optionally `module:ID`."""
    num_envs: Int = Field(default=1000, ge=1, le=10_000)
    """Parallel environments per GPU."""
    max_iterations: Int = Field(default=1500, ge=1, le=100_000)
    """Total PPO iterations to reach, also after a resume; never "that many more"."""
    video_enabled: StrictBool = False
    video_interval: Int = Field(default=2000, ge=1)
    """Env steps between two recordings."""
    seed: Int | None = Field(default=None, ge=0, le=MAX_SEED)
    checkpoint_url: str | None = Field(default=None, min_length=1)
    """Where to go on from: `s3://bucket/runs/...` as Canard shows it, or a path on the platform's machine."""
    code_url: str | None = Field(default=None, min_length=1)
    """Git repository with the environment; None for a task that the trainer brings itself."""
    code_ref: str | None = Field(default=None, min_length=1)
    """Branch, tag or commit, kept as exact text; None for the repository's default branch."""
    gpu_count: GpuCount = 1

    learning_rate: Float | None = Field(default=None, gt=0)
    clip_param: Float | None = Field(default=None, gt=0, le=1)
    entropy_coef: Float | None = Field(default=None, ge=0)
    gamma: Float | None = Field(default=None, ge=0, le=1)
    lam: Float | None = Field(default=None, ge=0, le=1)
    """GAE lambda (Schulman et al. 2016, arXiv:1506.02438)."""
    num_learning_epochs: Int | None = Field(default=None, ge=1)
    num_mini_batches: Int | None = Field(default=None, ge=1)
    desired_kl: Float | None = Field(default=None, gt=0)
    max_grad_norm: Float | None = Field(default=None, gt=0)
    schedule: Literal["adaptive", "fixed"] | None = None

    actor_hidden_dims: list[Annotated[Int, Field(ge=1)]] | None = Field(default=None, min_length=1)
    critic_hidden_dims: list[Annotated[Int, Field(ge=1)]] | None = Field(default=None, min_length=1)
    activation: str | None = Field(default=None, min_length=1)
    """rsl-rl's name of an activation, such as "elu", "relu" or "tanh"."""
    init_noise_std: Float | None = Field(default=None, gt=0)
    """Standard deviation of the actions at the start of training."""
    reward_weights: dict[str, Float] | None = None
    """Weight by reward term; only the named terms change."""

    def estimate_cost(self, total_tasks: int = 1) -> dict[str, float]:
        """Time and cost before anything ran; see `canard.cost` for the model and its source.

        Returns `iter_sec` (s per iteration), `task_time_hr`, `task_cost` ($), `total_cost` ($ for all
        tasks), `wall_time_hr` (all tasks in parallel) and `hourly_rate` ($ per hour).
        """
        return estimate_cost(
            num_envs=self.num_envs,
            max_iterations=self.max_iterations,
            gpu_count=self.gpu_count,
            total_tasks=total_tasks,
        )


class SweepConfig(RequestModel):
    """One swept parameter: a TrainingConfig field, `reward_weights.<term>`, or a physics parameter."""

    parameter: str = Field(min_length=1)
    values: list[Json] = Field(min_length=1)


class RunConfig(RequestModel):
    """What a run does. Members are the product of `sweep_configs`, or the explicit `tasks`."""

    mode: Literal["physics", "training"] = "physics"
    training_config: TrainingConfig | None = None
    """Base of every member. A physics run takes task, num_envs, seed and code from it."""
    sweep_configs: list[SweepConfig] | None = None
    num_samples: Int | None = Field(default=None, ge=1)
    """Fewer than the product: that many combinations, drawn without repeats by `sample_seed`."""
    steps: Int = Field(default=1000, ge=1)
    """Env steps of each physics task."""
    sample_seed: Int | None = Field(default=None, ge=0, le=MAX_SEED)
    """Seed of the draw; the platform records one when it is missing."""
    tasks: list[dict[str, Json]] | None = Field(default=None, min_length=1)
    """Explicit members, each the fields in which it differs from `training_config`."""
    tags: dict[str, str] | None = None
    reuse: StrictBool = False
    """Members that were trained before, or are being trained in another run, are not trained again."""
    max_cost: Float | None = Field(default=None, ge=0)
    """Dollars that the run may cost, for the platform to enforce."""

    @model_validator(mode="after")
    def _one_way_to_say_the_members(self) -> Self:
        if self.mode == "training" and self.training_config is None:
            raise PydanticCustomError("training_config", "a training run needs training_config")
        if self.tasks and (self.sweep_configs or self.num_samples):
            raise PydanticCustomError(
                "tasks", "tasks is an explicit list; leave out sweep_configs and num_samples"
            )
        return self


class PhysicsConfig(RequestModel):
    """One physics task, as the platform hands it to the trainer: step, do not learn."""

    task_name: str = DEFAULT_PHYSICS_TASK
    num_envs: Int = Field(default=1, ge=1, le=10_000)
    steps: Int = Field(default=1000, ge=1)
    seed: Int | None = Field(default=None, ge=0, le=MAX_SEED)
    code_url: str | None = None
    code_ref: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    """Physics parameters of the simulator, such as cartpole's `pole_length`; arguments of a gymnasium env."""


def _as_the_server_has_it(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """A config that a newer server accepted is shown, not judged again; fields unknown here are left out."""
    try:
        return handler(value)
    except ValidationError:
        if not isinstance(value, dict):
            raise
        return _unjudged(RunConfig, value)


def _unjudged(model: type[RequestModel], value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    nested: dict[str, type[RequestModel]] = {"training_config": TrainingConfig, "sweep_configs": SweepConfig}
    fields = dict(value)
    for name, inner in nested.items():
        if name in fields:
            said = fields[name]
            fields[name] = (
                [_unjudged(inner, v) for v in said] if isinstance(said, list) else _unjudged(inner, said)
            )
    return model.model_construct(**fields)


class Run(ResponseModel):
    """A run with one or more tasks."""

    id: int
    slug: str
    name: str
    user_id: str
    config: Annotated[RunConfig, WrapValidator(_as_the_server_has_it)]
    status: str
    num_tasks: int
    completed_tasks: int = 0
    tensorboard_url: str | None = None
    created_at: datetime
    updated_at: datetime

    failed_tasks: int = 0
    cancelled_tasks: int = 0
    reused_count: int = 0
    """Completed tasks whose result is that of an earlier task."""
    following_count: int = 0
    """Queued tasks that wait for the result of a task of another run."""

    _dashboard_base: str | None = PrivateAttr(default=None)

    @property
    def dashboard_url(self) -> str:
        """The run's page: under the client's dashboard_url if it has one, else where the server says."""
        said = (self.model_extra or {}).get("dashboard_url")
        if self._dashboard_base is None and isinstance(said, str):
            return said
        return f"{self._dashboard_base or ''}/runs/{self.slug}"

    @property
    def is_complete(self) -> bool:
        return self.status == "completed"

    @property
    def is_failed(self) -> bool:
        return self.status == "failed"

    @property
    def is_running(self) -> bool:
        return self.status == "running"

    @property
    def is_terminal(self) -> bool:
        """Completed, failed or cancelled: it will not change again."""
        return self.status in TERMINAL_STATUSES

    @property
    def progress(self) -> float:
        """Fraction complete (0.0-1.0). The server's figure counts running tasks by their iterations."""
        said = (self.model_extra or {}).get("progress_fraction")
        if isinstance(said, int | float):
            return float(said)
        return self.completed_tasks / self.num_tasks if self.num_tasks else 0.0


class TaskMetrics(ResponseModel):
    """Results of a finished task."""

    avg_fps: float | None = None
    """Physics: env steps per second over all envs. Training: the same, learning included."""
    total_reward: float | None = None
    """Physics: mean over envs of the summed reward. Training: final mean reward."""
    collision_count: int = 0
    episode_duration: float | None = None
    """Simulated seconds; training: mean over finished episodes."""
    success: bool = False
    """Physics: every episode succeeded, or none failed. Training: it reached max_iterations."""


class TrainingMetrics(ResponseModel):
    """Where a training stands. A reward that is not known yet, or was not finite, is None."""

    mean_reward: float | None = None
    mean_episode_length: float | None = None
    """Env steps."""
    current_iteration: int = 0
    max_iterations: int = 0
    progress_percent: float = 0.0
    reward_history: list[dict[str, Any]] = Field(default_factory=list)
    """`{"task_id", "iteration", "mean_reward", "mean_episode_length"}`, ordered by task and iteration."""

    first_mean_reward: float | None = None
    best_mean_reward: float | None = None


class Task(ResponseModel):
    """One member of a run."""

    id: int
    run_id: int
    params: dict[str, Any] = Field(default_factory=dict)
    """Swept values of this member."""
    status: str
    worker_id: str | None = None
    s3_key: str | None = None
    """Key of the result: the best checkpoint of a training, the summary of a physics task."""
    metrics: TaskMetrics | None = None
    error_message: str | None = None
    created_at: datetime
    completed_at: datetime | None = None
    progress_percent: float = 0.0

    index: int = 0
    """Position in the run, from 0."""
    attempt: int = 0
    """Number of the newest attempt, from 1; 0 before the first."""
    code_commit: str | None = None
    """Full SHA that every attempt of this task uses."""
    training: TrainingMetrics | None = None
    """Without its history."""
    started_at: datetime | None = None
    reused_from: str | None = None
    """`run_xxxxxxxx/3`: the run and index of the task whose result this is, or, while this one is queued,
    will be."""

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL_STATUSES


class RunMetrics(ResponseModel):
    """Aggregated over the tasks of a run."""

    avg_physics_fps: float | None = None
    success_rate: float = 0.0
    """0-100."""
    avg_episode_reward: float | None = None
    total_collisions: int = 0
    completed_tasks: int = 0
    total_tasks: int = 0
    mode: str = "physics"
    training: TrainingMetrics | None = None


class QueueStatus(ResponseModel):
    """Tasks by status over the whole platform, and the workers that are alive."""

    queued: int = 0
    running: int = 0
    completed: int = 0
    failed: int = 0
    active_workers: int = 0
