"""A real HTTP server on loopback that answers as a test tells it, and a clock that sleeping moves on."""

import gzip
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        packed = self.headers.get("Content-Encoding") == "gzip"
        return json.loads(gzip.decompress(self.body) if packed else self.body)


@dataclass(frozen=True)
class Answer:
    """`cut_at`: the connection is closed after that many bytes of the body."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    cut_at: int | None = None

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Hangup:
    """No answer at all: the connection is closed."""


Script = Callable[[Request], Answer | Hangup]


class Server:
    """Runs a script on 127.0.0.1, one thread a connection, and keeps what was asked."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Request] = []
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(timeout=10)

    def answer(self, request: Request) -> Answer | Hangup:
        with self._lock:
            self.requests.append(request)
            return self.script(request)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 10

            def respond(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                answer = server.answer(Request(self.command, self.path, dict(self.headers), body))
                if isinstance(answer, Hangup):
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                headers = {"Content-Type": "application/json", **answer.headers}
                for name, value in {"Content-Length": str(len(answer.content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.content[: answer.cut_at])
                if answer.cut_at is not None:
                    self.wfile.flush()
                    self.close_connection = True

            do_GET = do_POST = do_HEAD = respond  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


class FakeTime:
    """A clock that sleeping moves on."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float, /) -> None:
        self.slept.append(seconds)
        self.now += seconds


def run_json(**fields: Any) -> dict[str, Any]:
    """A Run as the platform sends it."""
    return {
        "id": 1,
        "slug": "run_a1b2c3d4",
        "name": "go2",
        "user_id": "local",
        "config": {"mode": "training", "training_config": {"task_name": "Ant-v5"}},
        "status": "queued",
        "num_tasks": 1,
        "completed_tasks": 0,
        "created_at": "2026-01-02T03:04:05Z",
        "updated_at": "2026-01-02T03:04:05Z",
        "dashboard_url": "http://127.0.0.1:8787/runs/run_a1b2c3d4",
        **fields,
    }


def problem(status: int, code: str, detail: str, **fields: Any) -> Answer:
    """An error as the platform sends it."""
    body = {"type": "about:blank", "title": code, "status": status, "code": code, "detail": detail, **fields}
    return Answer(status, body, {"Content-Type": "application/problem+json"})
