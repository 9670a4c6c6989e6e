"""A platform for tests: the real parts on a loopback port, with a clock that the test moves."""

import hashlib
import shutil
import socket
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from canard_platform.api.app import create_app
from canard_platform.artifacts.filesystem import FilesystemStore
from canard_platform.artifacts.signing import Signer
from canard_platform.executors.local import LocalExecutor
from canard_platform.queue.claims import Claim, claim
from canard_platform.services import Services
from canard_platform.settings import Settings
from canard_platform.store.database import Database
from canard_platform.store.migrate import migrate
from canard_platform.store.users import ensure_user, issue_key

SECRET = b"0123456789abcdef0123456789abcdef"
STANDIN = (sys.executable, str(Path(__file__).with_name("standin_runner.py")))


class ManualClock:
    """Stands still until moved."""

    def __init__(self) -> None:
        self.time = datetime(2026, 12, 1, 4, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@dataclass
class Stage:
    """Services under a folder, served over HTTP; nothing is dispatched unless a test does it."""

    home: Path
    schema: Path | None = None
    """A migrated database to begin with; migrating takes longer than most tests."""
    command: Sequence[str] = STANDIN
    clock: Any = field(default_factory=ManualClock)
    settings: dict[str, Any] = field(default_factory=dict)
    gpus: Sequence[str] = ()
    slots: int = 2
    serves: bool = True
    """False: `services` are there, and somebody else serves them on `socket`."""

    def __post_init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.services = self._services()
        self.server = uvicorn.Server(
            uvicorn.Config(create_app(self.services), log_config=None, lifespan="off")
        )
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]})
        self.http = httpx.Client(
            base_url=f"{self.url}/v1", headers=self.key_of("local"), trust_env=False, timeout=60
        )
        if self.serves:
            self._thread.start()
            assert self.http.get("/health").status_code == 200

    def _services(self) -> Services:
        settings = Settings(public_url=self.url, **self.settings)
        file = self.home / "platform.db"
        if self.schema is not None and not file.exists():
            shutil.copyfile(self.schema, file)
        database = Database(f"sqlite:///{file}")
        migrate(database.engine)
        artifacts = FilesystemStore(
            self.home / "artifacts",
            signer=Signer(SECRET, purpose="blobs"),
            base_url=self.url,
            url_ttl_s=settings.url_ttl_s,
            clock=self.clock,
        )
        executor = LocalExecutor(
            self.home / "attempts", command=self.command, gpus=self.gpus, slots=self.slots
        )
        return Services(
            settings=settings,
            database=database,
            artifacts=artifacts,
            executor=executor,
            secret=SECRET,
            clock=self.clock,
            live_logs=executor.live_logs,
        )

    def close(self) -> None:
        self.http.close()
        self.services.stopping.set()
        for handle in self.services.executor.list():
            self.services.executor.cancel(handle, grace_s=0)
        self.server.should_exit = True
        if self.serves:
            self._thread.join(20)
        self.socket.close()
        self.services.database.close()

    def key_of(self, name: str) -> dict[str, str]:
        """The header of a new key of this user."""
        now = self.clock.now()
        with self.services.database.write() as session:
            key = issue_key(session, ensure_user(session, name, now), now)
        return {"Authorization": f"Bearer {key}"}

    def submit(self, **fields: Any) -> dict[str, Any]:
        """A training run of one task, or what `fields` of the RunConfig say."""
        config = {
            "mode": "training",
            "training_config": {"task_name": "Canard-Cartpole-v0", "max_iterations": 10},
            **fields,
        }
        answer = self.http.post("/runs", json={"name": "test", "config": config})
        assert answer.status_code == 201, answer.text
        run: dict[str, Any] = answer.json()
        return run

    def run(self, slug: str) -> dict[str, Any]:
        return self.http.get(f"/runs/{slug}").json()

    def tasks(self, slug: str) -> list[dict[str, Any]]:
        return self.http.get(f"/runs/{slug}/tasks", params={"limit": 1000}).json()["items"]

    def claim(self) -> "Worker":
        """Claim the next task, as a dispatcher would, and speak for its attempt."""
        with self.services.database.write() as session:
            claimed = claim(
                session,
                worker_id="here",
                largest_gpu_count=8,
                lease_s=self.services.settings.lease_s,
                now=self.clock.now(),
            )
        assert claimed is not None
        return Worker(self, claimed)


class Worker:
    """Says over HTTP what an attempt runner says."""

    def __init__(self, stage: Stage, claimed: Claim) -> None:
        self.claim = claimed
        self._stage = stage
        self._http = stage.http
        self._headers = {"Authorization": f"Bearer {claimed.token}"}

    def post(self, path: str, body: Any = None) -> httpx.Response:
        return self._http.post(f"/attempts/{self.claim.attempt_id}/{path}", json=body, headers=self._headers)

    def start(self) -> dict[str, Any]:
        answer = self.post("start")
        assert answer.status_code == 200, answer.text
        spec: dict[str, Any] = answer.json()
        return spec

    def heartbeat(self, phase: str = "training", **fields: Any) -> httpx.Response:
        return self.post("heartbeat", {"phase": phase, **fields})

    def events(self, first_seq: int, *events: dict[str, Any]) -> httpx.Response:
        return self.post("events", {"first_seq": first_seq, "events": list(events)})

    def upload(self, path: str, content: bytes, artifact_type: str, **fields: Any) -> dict[str, Any]:
        said = {
            "path": path,
            "artifact_type": artifact_type,
            "size_bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            **fields,
        }
        ticket = self.post("uploads", said)
        assert ticket.status_code == 200, ticket.text
        put = self._http.put(ticket.json()["url"], content=content)
        assert put.status_code == 201, put.text
        answer = self.post("artifacts", said)
        assert answer.status_code == 200, answer.text
        artifact: dict[str, Any] = answer.json()
        return artifact

    def commit(self, outcome: str, **fields: Any) -> httpx.Response:
        return self.post("commit", {"outcome": outcome, **fields})

    def complete(self, iteration: int = 10) -> None:
        """Upload a checkpoint and commit a completed training."""
        path = f"checkpoints/model_{iteration}.pt"
        self.upload(path, b"weights", "checkpoint", iteration=iteration)
        answer = self.commit("completed", exit_code=0, summary=summary(iteration, best_checkpoint=path))
        assert answer.status_code == 204, answer.text


def summary(iteration: int, /, **fields: Any) -> dict[str, Any]:
    return {
        "status": "completed",
        "mode": "training",
        "iteration": iteration,
        "first_mean_reward": 1.0,
        "mean_reward": 9.0,
        "best_mean_reward": 10.0,
        "mean_episode_length": 20.0,
        "final_checkpoint": f"checkpoints/model_{iteration}.pt",
        "task_metrics": {"avg_fps": 1000.0, "total_reward": 9.0, "success": True},
        **fields,
    }


def iteration(number: int, mean_reward: float | None, **fields: Any) -> dict[str, Any]:
    return {
        "event": "iteration",
        "time": "2026-12-01T04:00:00Z",
        "iteration": number,
        "max_iterations": 10,
        "mean_reward": mean_reward,
        "mean_episode_length": 5.0,
        **fields,
    }
