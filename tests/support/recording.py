"""A service on loopback that accepts runs, keeps what it was sent, and ends the runs as a test says."""

from typing import Any

from loopback import Answer, Request, Server

NOW = "2026-01-01T00:00:00Z"
LATER = "2026-01-01T00:00:30Z"
SLUG = "run_a1b2c3d4"


class Service(Server):
    """Every run is `statuses[i]` for its task i; running for ever when `statuses` is None."""

    def __init__(self) -> None:
        super().__init__(self._respond)
        self.statuses: list[str] | None = None
        self.run: dict[str, Any] | None = None

    @property
    def submits(self) -> list[Any]:
        """Bodies of the runs that were posted."""
        return [one.json for one in self.requests if one.method == "POST" and one.path == "/v1/runs"]

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """Deltas of the one run."""
        [submit] = self.submits
        tasks: list[dict[str, Any]] = submit["config"].get("tasks") or [{}]
        return tasks

    @property
    def base(self) -> dict[str, Any]:
        """What the tasks of the one run share; null left out."""
        [submit] = self.submits
        return {
            name: value for name, value in submit["config"]["training_config"].items() if value is not None
        }

    def _respond(self, request: Request) -> Answer:
        path = request.path.partition("?")[0]
        if path == "/v1/health":
            return Answer(body={"status": "ok", "version": "test"})
        if request.method == "POST" and path == "/v1/runs":
            self.run = request.json
            return Answer(status=201, body=self._run())
        if self.run is None:
            return Answer(
                status=404, body={"title": "none", "status": 404, "code": "run_not_found", "detail": "-"}
            )
        if path == f"/v1/runs/{SLUG}":
            return Answer(body=self._run())
        if path == f"/v1/runs/{SLUG}/tasks":
            return Answer(body={"items": self._tasks(), "next_cursor": None})
        return Answer(status=404, body={"title": "none", "status": 404, "code": "not_found", "detail": path})

    def _deltas(self) -> list[dict[str, Any]]:
        assert self.run is not None
        deltas: list[dict[str, Any]] = self.run["config"].get("tasks") or [{}]
        return deltas

    def _status(self) -> str:
        if self.statuses is None:
            return "running"
        return "completed" if set(self.statuses) == {"completed"} else "failed"

    def _run(self) -> dict[str, Any]:
        assert self.run is not None
        statuses = self.statuses or []
        return {
            "id": 1,
            "slug": SLUG,
            "name": self.run["name"],
            "user_id": "local",
            "config": self.run["config"],
            "status": self._status(),
            "num_tasks": len(self._deltas()),
            "completed_tasks": statuses.count("completed"),
            "failed_tasks": statuses.count("failed"),
            "created_at": NOW,
            "updated_at": NOW,
            "dashboard_url": f"{self.url}/runs/{SLUG}",
        }

    def _tasks(self) -> list[dict[str, Any]]:
        statuses = self.statuses or ["running"] * len(self._deltas())
        return [
            {
                "id": 10 + index,
                "index": index,
                "run_id": 1,
                "params": delta,
                "status": statuses[index],
                "error_message": "it broke" if statuses[index] == "failed" else None,
                "s3_key": f"runs/{SLUG}/tasks/{10 + index}/attempt-1/checkpoints/model_150.pt",
                "training": {
                    "mean_reward": 100.0 + index,
                    "mean_episode_length": 12.0 + index,
                    "first_mean_reward": 10.0,
                    "best_mean_reward": 110.0 + index,
                    "current_iteration": 150,
                    "max_iterations": 150,
                },
                "created_at": NOW,
                "started_at": NOW,
                "completed_at": LATER,
            }
            for index, delta in enumerate(self._deltas())
        ]
