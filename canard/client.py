"""The main entry point: submit runs, look at them, fetch what they made."""

import itertools
import re
import sys
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, get_args

import httpx
from pydantic import ValidationError

from canard.announce import announce
from canard.api_url import clean
from canard.credentials import find_key
from canard.errors import CanardError, InvalidRequestError, RunNotFoundError
from canard.http import PAGE_SIZE, Http
from canard.invalid import invalid_request
from canard.members import REWARD_PREFIX, members
from canard.models import (
    DEFAULT_TRAINING_TASK,
    QueueStatus,
    RequestModel,
    ResponseModel,
    Run,
    RunConfig,
    RunMetrics,
    SweepConfig,
    Task,
    TrainingConfig,
    unknown_field_message,
)
from canard.paths import absolute_if_it_is_a_path
from canard.retries import Patience
from canard.run_handle import RunHandle
from canard.wire import Artifact, ArtifactType, ArtifactUrl, Page, RunCreate, RunPreview, SubmittedRun

SLUG = re.compile(r"[A-Za-z0-9_-]+")
AFTER_INTERRUPT_S = 5.0

RunT = TypeVar("RunT", bound=Run)
ARGUMENT_NAMES = {"video_enabled": "enable_video"}
"""Model field -> what the submit methods call it."""


class Client:
    """A connection to one platform.

    The key is `api_key`, or `$CANARD_API_KEY`, or the one in Canard's credentials file for `api_url`.

    Args:
        api_url: address of the platform, such as https://api.canard.cloud.
        dashboard_url: where the dashboard is, if not where the platform says.
        s3_results_bucket, s3_tensorboard_bucket: the buckets whose `s3://` URLs are taken for artifact keys.
        patience: bounds of every call; see `canard.retries.Patience`.
        transport: in place of the network.

    Raises:
        CredentialsError: there is no key for this platform.
        InvalidRequestError: api_url is no URL, or plain http to another machine.
    """

    def __init__(  # noqa: PLR0917 - the documented order
        self,
        api_url: str,
        api_key: str | None = None,
        dashboard_url: str | None = None,
        s3_results_bucket: str = "isaac-sim-results",
        s3_tensorboard_bucket: str = "isaac-sim-tensorboard",
        aws_region: str = "us-east-1",
        *,
        patience: Patience | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.api_url = clean(api_url)
        self.s3_results_bucket = s3_results_bucket
        self.s3_tensorboard_bucket = s3_tensorboard_bucket
        self.aws_region = aws_region
        self.patience = patience or Patience()
        self._transport = transport
        self._dashboard_url = dashboard_url.rstrip("/") if dashboard_url else None
        key = find_key(self.api_url, api_key)
        self._http = Http(
            self.api_url, key.value, key_source=key.told, patience=self.patience, transport=transport
        )

    def __repr__(self) -> str:
        return f"Client(api_url={self.api_url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. `with Client(...) as client:` does it by itself."""
        self._http.close()

    @property
    def dashboard_url(self) -> str:
        """Where the dashboard is: what was passed, else the platform's own address."""
        return self._dashboard_url or self.api_url

    # Submitting

    def submit_training_run(
        self,
        name: str,
        *,
        task_name: str = DEFAULT_TRAINING_TASK,
        code_url: str,
        num_envs: int = 1000,
        max_iterations: int = 1500,
        enable_video: bool = False,
        video_interval: int = 2000,
        seed: int | None = None,
        checkpoint_url: str | None = None,
        code_ref: str | None = None,
        gpu_count: int = 2,
        wait: bool = False,
        **training_kwargs: Any,
    ) -> RunHandle:
        """Train one policy. PPO, network and reward fields of TrainingConfig are taken as keywords.

        Prints the estimated cost and the dashboard URL. With `wait`, returns when the run has completed.

        Raises:
            InvalidRequestError: naming the field and its bounds; nothing was submitted.
            ConnectionFailedError: the platform did not answer; carries the idempotency key.
            RunFailedError: with `wait`, the run failed or was cancelled.
        """
        config = self._training_config(
            training_kwargs,
            task_name=task_name,
            code_url=code_url,
            num_envs=num_envs,
            max_iterations=max_iterations,
            video_enabled=enable_video,
            video_interval=video_interval,
            seed=seed,
            checkpoint_url=checkpoint_url,
            code_ref=code_ref,
            gpu_count=gpu_count,
        )
        return self._submit(name, RunConfig(mode="training", training_config=config), wait=wait)

    def submit_training_sweep(
        self,
        name: str,
        *,
        task_name: str = DEFAULT_TRAINING_TASK,
        code_url: str,
        sweep_params: dict[str, list[Any]] | None = None,
        num_envs: int = 1000,
        max_iterations: int = 1500,
        enable_video: bool = False,
        seed: int | None = None,
        code_ref: str | None = None,
        gpu_count: int = 2,
        wait: bool = False,
        **training_kwargs: Any,
    ) -> RunHandle:
        """Train one policy for each combination of the values in `sweep_params`.

        The keywords apply to all of them. Prints, waits and raises as `submit_training_run` does.
        """
        config = self._training_config(
            training_kwargs,
            task_name=task_name,
            code_url=code_url,
            num_envs=num_envs,
            max_iterations=max_iterations,
            video_enabled=enable_video,
            seed=seed,
            code_ref=code_ref,
            gpu_count=gpu_count,
        )
        sweeps = _sweep_configs(sweep_params)
        return self._submit(
            name, RunConfig(mode="training", training_config=config, sweep_configs=sweeps), wait=wait
        )

    def submit_run(
        self,
        name: str,
        config: dict[str, Any] | RunConfig,
        wait: bool = False,
        *,
        idempotency_key: str | None = None,
    ) -> RunHandle:
        """Submit a RunConfig, or a dict with its fields.

        Args:
            idempotency_key: two submits with the same key and body are one run; made up when it is None.
        """
        return self._submit(name, _run_config(config), wait=wait, idempotency_key=idempotency_key)

    def preview_run(self, config: dict[str, Any] | RunConfig, *, name: str = "preview") -> RunPreview:
        """What `submit_run` would do now: which members are trained before or being trained. Creates nothing.

        Args:
            name: of the run; only a run of this very name can be the one that a submit comes back to.

        Raises:
            InvalidRequestError: naming the field; the submit would be refused for the same reason.
        """
        body = _run_create(name, _run_config(config))
        return self._http.post("/v1/runs/preview", RunPreview, body=body, idempotency_key=str(uuid.uuid4()))

    # Looking

    def get_run(self, run_slug: str) -> Run:
        """One run.

        Raises:
            RunNotFoundError: there is no such run, or it is not yours.
        """
        return self._at_home(self._http.get(run_path(run_slug), Run))

    def list_runs(self, limit: int = 100) -> list[Run]:
        """Your newest runs, at most `limit`; as many pages are fetched as that takes."""
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise InvalidRequestError(f"limit: must be a whole number from 0, not {limit!r}", field="limit")
        pages = self._http.pages("/v1/runs", Run, page_size=max(1, min(limit, PAGE_SIZE)))
        return [self._at_home(run) for run in itertools.islice(pages, limit)]

    def get_run_metrics(self, run_slug: str) -> RunMetrics:
        """Reward, speed, success and training progress, aggregated over the tasks of a run."""
        return self._http.get(f"{run_path(run_slug)}/metrics", RunMetrics)

    def get_run_tasks(self, run_slug: str) -> list[Task]:
        """All tasks of a run, in order."""
        return list(self._http.pages(f"{run_path(run_slug)}/tasks", Task))

    def get_queue_status(self) -> QueueStatus:
        """How many tasks wait and run, and how many workers are alive."""
        return self._http.get("/v1/queue", QueueStatus)

    # Artifacts

    def list_artifacts(self, run_slug: str, artifact_type: str | None = None) -> list[dict[str, Any]]:
        """The files of a run: `s3_key`, `artifact_type`, `filename`, `task_id`, `size_bytes`, `sha256`, ...

        Args:
            artifact_type: only these: checkpoint, video, tensorboard, policy, summary, log or config.
        """
        _check_artifact_type(artifact_type)
        path = f"{run_path(run_slug)}/artifacts"
        found = self._http.pages(path, Artifact, params={"artifact_type": artifact_type})
        return [artifact.model_dump(mode="json") for artifact in found]

    def get_artifact_url(self, run_slug: str, s3_key: str) -> str:
        """A URL that downloads the artifact without a key, for a short time."""
        return self._artifact_url(run_slug, s3_key).url

    def download_artifact(self, run_slug: str, s3_key: str, output_dir: Path | str) -> Path:
        """Put the artifact into `output_dir`, under its file name; the path is returned.

        A broken transfer goes on where it stopped, and the file appears only when its size and sha256 are
        right.

        Raises:
            ArtifactNotFoundError: the run has no such artifact.
            DownloadError: what arrived is not the artifact, or its name is not safe.
        """
        from canard.downloads import Downloader

        key = self._artifact_key(s3_key)
        downloader = Downloader(patience=self.patience, transport=self._transport)
        return downloader.download(key, output_dir, ask_url=lambda: self._artifact_url(run_slug, key))

    # Beyond the documented methods

    def attach(self, run_slug: str) -> RunHandle:
        """A handle to a run that was submitted before."""
        return RunHandle(self, self.get_run(run_slug))

    def cancel_run(self, run_slug: str) -> Run:
        """Cancel what has not ended of a run."""
        key = str(uuid.uuid4())
        return self._at_home(self._http.post(f"{run_path(run_slug)}/cancel", Run, idempotency_key=key))

    def get_task_log(self, run_slug: str, task_id: int, *, attempt: int | None = None) -> str:
        """What a task printed, in its newest attempt or in the one said."""
        path = f"{run_path(run_slug)}/tasks/{task_id}/logs"
        return self._http.get_text(path, params={"attempt": attempt})

    def create_login_link(self, *, target: str = "/runs") -> str:
        """A URL that signs a browser in to the dashboard, once, and opens the page `target` there."""
        body, key = LoginLinkCreate(target=target), str(uuid.uuid4())
        return self._http.post("/v1/login-links", LoginLink, body=body, idempotency_key=key).url

    def peek(self, run_slug: str, *, within_s: float) -> tuple[Run, list[Task] | None]:
        """A run and its tasks for a live view, in bounded time; None for tasks when they are very many."""
        run = self._at_home(self._http.get(run_path(run_slug), Run, total_s=within_s))
        if run.num_tasks > PAGE_SIZE:
            return run, None
        path, params = f"{run_path(run_slug)}/tasks", {"limit": PAGE_SIZE}
        return run, self._http.get(path, Page[Task], params=params, total_s=within_s).items

    # Underneath

    def _training_config(self, training_kwargs: dict[str, Any], **arguments: Any) -> TrainingConfig:
        for name in training_kwargs:
            _check_keyword(name)
        fields = {**arguments, **training_kwargs}
        if fields["code_url"] is None:
            raise InvalidRequestError(
                "code_url: is required here; for a task that needs no code use"
                " submit_run(name, RunConfig(mode='training', training_config=TrainingConfig(...)))",
                field="code_url",
            )
        for name in ("code_url", "checkpoint_url"):
            fields[name] = absolute_if_it_is_a_path(fields.get(name))
        try:
            return TrainingConfig(**fields)
        except ValidationError as error:
            raise invalid_request(error, names=ARGUMENT_NAMES) from error

    def _submit(
        self, name: str, config: RunConfig, *, wait: bool, idempotency_key: str | None = None
    ) -> RunHandle:
        body = _run_create(name, config)
        configs = [member.config for member in members(config)]
        run = self._post_run(body, idempotency_key or str(uuid.uuid4()))
        announce(run, configs, api_url=self.api_url)
        handle = RunHandle(self, run)
        if wait:
            handle.wait_for_completion()
        return handle

    def _post_run(self, body: RunCreate, idempotency_key: str) -> SubmittedRun:
        try:
            run = self._http.post("/v1/runs", SubmittedRun, body=body, idempotency_key=idempotency_key)
        except KeyboardInterrupt:
            self._tell_what_became_of_it(body, idempotency_key)
            raise
        return self._at_home(run)

    def _tell_what_became_of_it(self, body: RunCreate, idempotency_key: str) -> None:
        """After Ctrl-C in a submit: the same request again says which run it made."""
        print("Interrupted while submitting: asking what became of it (Ctrl-C again leaves)", file=sys.stderr)  # noqa: T201
        try:
            run = self._http.post(
                "/v1/runs", Run, body=body, idempotency_key=idempotency_key, total_s=AFTER_INTERRUPT_S
            )
        except CanardError as error:
            print(f"The run may have been submitted; see: canard runs ({error})", file=sys.stderr)  # noqa: T201
        else:
            print(RunHandle(self, run).goes_on, file=sys.stderr)  # noqa: T201

    def _artifact_url(self, run_slug: str, s3_key: str) -> ArtifactUrl:
        params = {"key": self._artifact_key(s3_key)}
        return self._http.get(f"{run_path(run_slug)}/artifacts/url", ArtifactUrl, params=params)

    def _artifact_key(self, s3_key: str) -> str:
        """The key within the platform, also of an `s3://bucket/key` in one of the client's buckets."""
        if not s3_key.startswith("s3://"):
            return s3_key
        bucket, _, key = s3_key.removeprefix("s3://").partition("/")
        if bucket not in (self.s3_results_bucket, self.s3_tensorboard_bucket):
            raise InvalidRequestError(
                f"s3_key: bucket {bucket!r} is neither s3_results_bucket ({self.s3_results_bucket!r})"
                f" nor s3_tensorboard_bucket ({self.s3_tensorboard_bucket!r}) of this client",
                field="s3_key",
            )
        return key

    def _at_home(self, run: RunT) -> RunT:
        """The run, knowing where its dashboard is."""
        said = (run.model_extra or {}).get("dashboard_url")
        if self._dashboard_url is not None or not isinstance(said, str):
            run._dashboard_base = self.dashboard_url
        return run


def _run_config(config: dict[str, Any] | RunConfig) -> RunConfig:
    if isinstance(config, RunConfig):
        return config
    try:
        return RunConfig.model_validate(config)
    except ValidationError as error:
        raise invalid_request(error) from error


def _run_create(name: str, config: RunConfig) -> RunCreate:
    try:
        return RunCreate(name=name, config=config)
    except ValidationError as error:
        raise invalid_request(error) from error


class LoginLinkCreate(RequestModel):
    """Body of `POST /v1/login-links`."""

    target: str


class LoginLink(ResponseModel):
    """Body of the answer to `POST /v1/login-links`."""

    url: str


def run_path(run_slug: str) -> str:
    """Path of a run in the API.

    Raises:
        RunNotFoundError: this cannot be a slug.
    """
    if not isinstance(run_slug, str) or not SLUG.fullmatch(run_slug):
        raise RunNotFoundError(f"no run {run_slug!r}: a slug looks like run_a1b2c3d4")
    return f"/v1/runs/{run_slug}"


def _check_artifact_type(artifact_type: str | None) -> None:
    known = get_args(ArtifactType)
    if artifact_type is not None and artifact_type not in known:
        raise InvalidRequestError(
            f"artifact_type: must be one of {', '.join(known)}, not {artifact_type!r}", field="artifact_type"
        )


def _check_keyword(name: str) -> None:
    if name in ARGUMENT_NAMES:
        raise InvalidRequestError(f"{name}: this method calls it {ARGUMENT_NAMES[name]}", field=name)
    if name not in TrainingConfig.model_fields:
        known = [ARGUMENT_NAMES.get(field, field) for field in TrainingConfig.model_fields]
        raise InvalidRequestError(unknown_field_message(name, known), field=name)


def _sweep_configs(sweep_params: dict[str, list[Any]] | None) -> list[SweepConfig] | None:
    sweeps = []
    for name, values in (sweep_params or {}).items():
        field = f"sweep_params.{name}"
        if not name.startswith(REWARD_PREFIX) and name not in TrainingConfig.model_fields:
            raise InvalidRequestError(
                f"sweep_params: {unknown_field_message(name, TrainingConfig.model_fields)}", field=field
            )
        if isinstance(values, str | bytes | dict) or not hasattr(values, "__iter__"):
            raise InvalidRequestError(f"{field}: must be a list of values, not {values!r}", field=field)
        try:
            sweeps.append(SweepConfig(parameter=name, values=list(values)))
        except ValidationError as error:
            raise invalid_request(error, prefix=field) from error
    return sweeps or None
