"""Tries, waits and errors, against a real server on loopback."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import Answer, FakeTime, Hangup, Request, Script, Server, problem, run_json

from canard.connection import proxy_for
from canard.errors import (
    APIError,
    ArtifactNotFoundError,
    AuthenticationError,
    CanardError,
    ConflictError,
    ConnectionFailedError,
    InvalidRequestError,
    NotFoundError,
    RateLimitedError,
    RunNotFoundError,
    ServerError,
)
from canard.http import Http, error_of
from canard.models import QueueStatus, Run, RunConfig
from canard.retries import Patience, retry_after_s
from canard.wire import RunCreate

Serve = Callable[[Script], Server]
Connect = Callable[..., Http]
QUEUE = {"queued": 3, "running": 1}
BODY = RunCreate(name="go2", config=RunConfig())


def patience(time: FakeTime, **bounds: Any) -> Patience:
    return Patience(clock=time.monotonic, sleep=time.sleep, **bounds)


@pytest.fixture
def connect(fake_time: FakeTime) -> Iterator[Callable[..., Http]]:
    """Connections that wait on the fake clock; they end with the test."""
    made: list[Http] = []

    def to(url: str, **bounds: Any) -> Http:
        made.append(Http(url, "s3cret", patience=patience(fake_time, **bounds)))
        return made[-1]

    yield to
    for http in made:
        http.close()


def in_turn(*answers: Answer | Hangup) -> Script:
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


# Retry-After


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("header", "between_s"),
    [
        ("2", (2, 2.2)),
        ("1.5", (1.5, 1.65)),
        ("0", (0.1, 0.6)),
        ("-5", (0.1, 0.6)),
        ("soon", (0.1, 0.6)),
        (None, (0.1, 0.6)),
    ],
)
def test_a_wait_is_as_told_and_otherwise_a_short_jittered_one(
    serve: Serve,
    connect: Connect,
    fake_time: FakeTime,
    method: str,
    status: int,
    header: str | None,
    between_s: tuple[float, float],
):
    least_s, most_s = between_s
    told = {"Retry-After": header} if header is not None else {}
    good = Answer(201, run_json()) if method == "POST" else Answer(200, QUEUE)
    server = serve(in_turn(Answer(status, {}, told), good))
    http = connect(server.url, backoff_s=0.5)

    if method == "POST":
        http.post("/v1/runs", Run, body=BODY, idempotency_key="key-1")
    else:
        http.get("/v1/queue", QueueStatus)

    assert len(server.requests) == 2
    [slept] = fake_time.slept
    assert least_s <= slept <= most_s


@pytest.mark.parametrize("header", ["86400", "Wed, 21 Oct 2065 07:28:00 GMT"])
@pytest.mark.parametrize(("status", "kind"), [(429, RateLimitedError), (503, ServerError)])
def test_a_wait_beyond_the_cap_is_an_error_with_the_value(
    serve: Serve, connect: Connect, fake_time: FakeTime, header: str, status: int, kind: type[APIError]
):
    server = serve(lambda _: Answer(status, {}, {"Retry-After": header}))
    http = connect(server.url)

    with pytest.raises(kind) as raised:
        http.post("/v1/runs", Run, body=BODY, idempotency_key="key-1")

    assert raised.value.retry_after_s is not None
    assert raised.value.retry_after_s >= 86400
    assert len(server.requests) == 1
    assert fake_time.slept == []


def reply(header: str, date: datetime | None = None) -> httpx.Response:
    headers = {"Retry-After": header}
    return httpx.Response(
        503, headers={**headers, "Date": format_datetime(date, usegmt=True)} if date else headers
    )


@given(st.text(st.characters(codec="latin-1")))
def test_no_retry_after_crashes_and_none_is_negative_or_endless(header: str):
    seconds = retry_after_s(httpx.Response(503, headers=[(b"retry-after", header.encode("latin-1"))]))

    assert seconds is None or 0 <= seconds < float("inf")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("2", 2.0),
        ("+2", 2.0),
        ("1.5", 1.5),
        ("-5", 0.0),
        ("0", 0.0),
        ("86400", 86400.0),
        ("soon", None),
        ("", None),
        ("nan", None),
        ("inf", None),
        ("1e9", None),
        ("Wed, 32 Foo 2065", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
    ],
)
def test_retry_after_in_all_its_forms(header: str, seconds: float | None):
    assert retry_after_s(reply(header)) == seconds


def test_a_retry_after_date_counts_from_the_servers_own_clock():
    servers_now = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
    then = format_datetime(servers_now + timedelta(seconds=90), usegmt=True)

    assert retry_after_s(reply(then, servers_now)) == 90.0


def test_clients_that_are_told_the_same_do_not_come_back_at_the_same_moment():
    response = reply("10")

    waits = {Patience().retry().wait_s(response) for _ in range(20)}

    assert len(waits) == 20
    assert all(10 <= wait <= 11 for wait in waits)


# Bounds


def test_the_number_of_tries_is_bounded(serve: Serve, connect: Connect, fake_time: FakeTime):
    server = serve(lambda _: Answer(503, {}))
    http = connect(server.url, tries=4)

    with pytest.raises(ServerError, match="GET /v1/queue: 503"):
        http.get("/v1/queue", QueueStatus)

    assert len(server.requests) == 4
    assert fake_time.slept == sorted(fake_time.slept)


@pytest.mark.parametrize("total_s", [3.0, 20.0])
def test_the_total_time_is_bounded_and_configurable(
    serve: Serve, connect: Connect, fake_time: FakeTime, total_s: float
):
    server = serve(lambda _: Answer(429, {}, {"Retry-After": "2"}))
    http = connect(server.url, tries=100, total_s=total_s)

    with pytest.raises(RateLimitedError):
        http.get("/v1/queue", QueueStatus)

    assert sum(fake_time.slept) <= total_s
    assert len(server.requests) > 1


def test_a_server_that_never_answers_is_left_in_time():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        http = Http(f"http://127.0.0.1:{silent.getsockname()[1]}", "k", patience=Patience(total_s=0.3))

        with pytest.raises(ConnectionFailedError, match="no answer within the time limit"):
            http.get("/v1/queue", QueueStatus)


def test_ctrl_c_ends_a_wait(serve: Serve):
    server = serve(lambda _: Answer(429, {}, {"Retry-After": "25"}))
    program = (
        "import sys\nfrom canard.http import Http\nfrom canard.models import QueueStatus\n"
        "Http(sys.argv[1], 'k').get('/v1/queue', QueueStatus)"
    )
    process = subprocess.Popen([sys.executable, "-c", program, server.url], stderr=subprocess.PIPE, text=True)
    asked = threading.Event()
    answer = server.script
    server.script = lambda request: (asked.set(), answer(request))[1]
    if not server.requests:
        assert asked.wait(30)

    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=15)

    assert "KeyboardInterrupt" in err


# One submit, one run


class Runs:
    """Keeps runs by idempotency key, as the platform does."""

    def __init__(self) -> None:
        self.by_key: dict[str, Any] = {}

    def create(self, request: Request) -> Answer:
        key = request.headers["Idempotency-Key"]
        status = 200 if key in self.by_key else 201
        self.by_key.setdefault(key, run_json(slug=f"run_{len(self.by_key):08}"))
        return Answer(status, self.by_key[key])


def lost_after_the_server_committed(runs: Runs, request: Request) -> Answer | Hangup:
    runs.create(request)
    return Hangup()


def cut_in_the_middle(runs: Runs, request: Request) -> Answer | Hangup:
    whole = runs.create(request)
    return Answer(whole.status, whole.body, cut_at=10)


def gateway_timeout_after_commit(runs: Runs, request: Request) -> Answer | Hangup:
    runs.create(request)
    return Answer(504, b"<html>gateway timeout</html>", {"Content-Type": "text/html"})


def closed_before_the_request_was_read(runs: Runs, request: Request) -> Answer | Hangup:
    return Hangup()


@pytest.mark.parametrize(
    "accident",
    [
        lost_after_the_server_committed,
        cut_in_the_middle,
        gateway_timeout_after_commit,
        closed_before_the_request_was_read,
    ],
)
def test_a_submit_whose_answer_was_lost_makes_exactly_one_run(
    serve: Serve, connect: Connect, accident: Callable[[Runs, Request], Answer | Hangup]
):
    runs = Runs()
    accidents = iter([accident, accident])

    def script(request: Request) -> Answer | Hangup:
        happens = next(accidents, None)
        return happens(runs, request) if happens else runs.create(request)

    server = serve(script)
    http = connect(server.url)
    run = http.post("/v1/runs", Run, body=BODY, idempotency_key="key-1")

    assert list(runs.by_key) == ["key-1"]
    assert run.slug == runs.by_key["key-1"]["slug"]
    assert {request.headers["Idempotency-Key"] for request in server.requests} == {"key-1"}
    assert len({request.body for request in server.requests}) == 1
    assert len(server.requests) == 3


def test_an_idle_connection_that_the_server_closed_is_no_error(serve: Serve, connect: Connect):
    server = serve(lambda _: Answer(200, QUEUE, {"Connection": "close"}))
    http = connect(server.url)

    answers = [http.get("/v1/queue", QueueStatus) for _ in range(3)]

    assert [answer.queued for answer in answers] == [3, 3, 3]


def test_an_unanswered_submit_carries_its_idempotency_key(serve: Serve, connect: Connect):
    server = serve(lambda _: Hangup())
    http = connect(server.url, tries=2)

    with pytest.raises(ConnectionFailedError, match=r"key-1.*makes no second run") as raised:
        http.post("/v1/runs", Run, body=BODY, idempotency_key="key-1")

    assert raised.value.idempotency_key == "key-1"
    assert len(server.requests) == 2


# Errors


@pytest.mark.parametrize(
    ("answer", "kind", "told"),
    [
        (problem(404, "run_not_found", "no run run_x"), RunNotFoundError, "no run run_x"),
        (problem(404, "artifact_not_found", "no file"), ArtifactNotFoundError, "no file"),
        (problem(404, "brand_new_code", "gone"), NotFoundError, "gone"),
        (problem(422, "invalid_request", "num_envs: too big"), InvalidRequestError, "num_envs: too big"),
        (problem(409, "conflict", "other body"), ConflictError, "other body"),
        (problem(401, "unauthenticated", "wrong key"), AuthenticationError, "wrong key"),
        (Answer(403, b""), AuthenticationError, "GET /v1/queue: 403"),
        (Answer(500, b"Traceback ..."), ServerError, "500 Internal Server Error: Traceback"),
        (Answer(500, b"\xff\xfe\x00"), ServerError, "500"),
        (Answer(500, [1, 2]), ServerError, "500"),
        (Answer(404, b"<html>hi</html>", {"Content-Type": "text/html"}), NotFoundError, "is api_url the"),
        (Answer(200, b"<html>hi</html>", {"Content-Type": "text/html"}), ServerError, "upgrade|api_url"),
        (Answer(200, b""), ServerError, "is api_url the platform"),
        (Answer(200, {"queued": "many"}), ServerError, "queued"),
        (Answer(301, b"", {"Location": "https://elsewhere/"}), APIError, "redirected to https://elsewhere/"),
        (Answer(418, b""), APIError, "418"),
    ],
)
def test_an_error_answer_becomes_the_class_of_its_code(
    serve: Serve, connect: Connect, answer: Answer, kind: type[CanardError], told: str
):
    http = connect(serve(lambda _: answer).url, tries=1)

    with pytest.raises(CanardError, match=told) as raised:
        http.get("/v1/queue", QueueStatus)

    assert type(raised.value) is kind


def test_field_hint_and_request_id_come_along(serve: Serve, fake_time: FakeTime):
    answer = problem(422, "invalid_request", "num_envs: too big", field="num_envs", hint="at most 10000")
    response = httpx.Response(422, json=answer.body, headers={"X-Request-Id": "r-1"})

    error = error_of(response, "POST /v1/runs")

    assert (error.field, error.hint, error.request_id) == ("num_envs", "at most 10000", "r-1")
    assert str(error) == "num_envs: too big (at most 10000)"


def test_a_refused_key_is_said_with_where_it_came_from(serve: Serve, fake_time: FakeTime):
    server = serve(lambda _: problem(401, "unauthenticated", "this key is not known"))
    http = Http(server.url, "s3cret", key_source="CANARD_API_KEY", patience=patience(fake_time))

    with (
        contextlib.closing(http),
        pytest.raises(AuthenticationError, match="the key came from CANARD_API_KEY") as raised,
    ):
        http.get("/v1/queue", QueueStatus)

    assert "s3cret" not in str(raised.value)


# No answer


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def test_a_refused_connection_here_says_how_to_start_the_platform_and_is_not_tried_again(
    connect: Connect, fake_time: FakeTime
):
    http = connect(f"http://127.0.0.1:{free_port()}")

    with pytest.raises(ConnectionFailedError, match=r"refused; is the platform up.*canard up"):
        http.get("/v1/queue", QueueStatus)

    assert fake_time.slept == []


def test_a_name_that_does_not_resolve_is_said(fake_time: FakeTime):
    def unresolved(request: httpx.Request) -> httpx.Response:
        try:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        except socket.gaierror as error:
            raise httpx.ConnectError("failed", request=request) from error

    http = Http(
        "https://api.canard.invalid",
        "k",
        patience=patience(fake_time),
        transport=httpx.MockTransport(unresolved),
    )

    with pytest.raises(ConnectionFailedError, match=r"the name api\.canard\.invalid does not resolve"):
        http.get("/v1/queue", QueueStatus)
    assert fake_time.slept == []


def test_plain_http_spoken_to_as_https_is_said(serve: Serve, connect: Connect):
    server = serve(lambda _: Answer(200, QUEUE))
    http = connect(server.url.replace("http://", "https://"), tries=1)

    with pytest.raises(ConnectionFailedError, match=r"TLS failed.*does this port speak https"):
        http.get("/v1/queue", QueueStatus)


def test_a_broken_proxy_is_named_with_its_variable_and_the_way_around(
    monkeypatch: pytest.MonkeyPatch, connect: Connect
):
    port = free_port()
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:s3cret@127.0.0.1:{port}")
    http = connect("https://api.canard.cloud", tries=1)

    with pytest.raises(ConnectionFailedError) as raised:
        http.get("/v1/queue", QueueStatus)

    told = str(raised.value)
    assert f"proxy http://127.0.0.1:{port}, which HTTPS_PROXY names" in told
    assert "add api.canard.cloud to NO_PROXY" in told
    assert "s3cret" not in told


def test_a_proxy_that_answers_is_used(monkeypatch: pytest.MonkeyPatch, serve: Serve, connect: Connect):
    proxy = serve(lambda _: Answer(200, QUEUE))
    monkeypatch.setenv("http_proxy", proxy.url)
    monkeypatch.setenv("CANARD_ALLOW_HTTP", "1")
    http = connect("http://canard.invalid")

    assert http.get("/v1/queue", QueueStatus).queued == 3
    assert proxy.requests[0].path == "http://canard.invalid/v1/queue"


def test_this_machine_is_never_asked_through_a_proxy(
    monkeypatch: pytest.MonkeyPatch, serve: Serve, connect: Connect
):
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    server = serve(lambda _: Answer(200, QUEUE))
    http = connect(server.url)

    assert http.get("/v1/queue", QueueStatus).queued == 3


@pytest.mark.parametrize(
    ("environment", "url", "expected"),
    [
        ({"https_proxy": "proxy:3128"}, "https://a.b", ("http://proxy:3128", "https_proxy")),
        ({"ALL_PROXY": "http://proxy:1"}, "https://a.b", ("http://proxy:1", "ALL_PROXY")),
        ({"https_proxy": "http://p:1", "no_proxy": "a.b"}, "https://a.b", None),
        ({"https_proxy": "http://p:1", "NO_PROXY": ".b"}, "https://a.b", None),
        ({"http_proxy": "http://p:1"}, "https://a.b", None),
        ({"http_proxy": "http://p:1"}, "http://[::1]:5", None),
        ({}, "https://a.b", None),
    ],
)
def test_which_proxy_counts(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], url: str, expected: tuple[str, str] | None
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    found = proxy_for(url)

    assert (found and (found.url, found.variable)) == expected


# Keys


def test_a_key_does_not_go_to_another_machine_in_clear_text(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(InvalidRequestError, match=r"https://.*CANARD_ALLOW_HTTP=1") as refused:
        Http("http://10.0.0.5:8787", "k")
    assert refused.value.field == "api_url"

    monkeypatch.setenv("CANARD_ALLOW_HTTP", "1")
    Http("http://10.0.0.5:8787", "k").close()


def test_a_url_with_a_password_is_refused():
    with pytest.raises(InvalidRequestError, match="must not hold a user or password") as refused:
        Http("https://me:s3cret@api.canard.cloud", "k")
    assert "s3cret" not in str(refused.value)


# Lists


def paged(items: list[Any], size: int) -> Script:
    def script(request: Request) -> Answer:
        at = int(httpx.URL(request.path).params.get("cursor", 0))
        following = at + size
        cursor = str(following) if following < len(items) else None
        return Answer(200, {"items": items[at:following], "next_cursor": cursor})

    return script


def test_every_page_is_read_and_no_more_than_asked_for(serve: Serve, connect: Connect):
    server = serve(paged([run_json(id=n) for n in range(25)], size=10))
    http = connect(server.url)

    ids = [run.id for run in http.pages("/v1/runs", Run)]
    first = next(iter(http.pages("/v1/runs", Run)))

    assert ids == list(range(25))
    assert first.id == 0
    assert len(server.requests) == 4


def test_a_list_that_goes_round_in_circles_ends(serve: Serve, connect: Connect):
    server = serve(lambda _: Answer(200, {"items": [run_json()], "next_cursor": "again"}))
    http = connect(server.url)

    with pytest.raises(ServerError, match="round in circles"):
        list(http.pages("/v1/runs", Run))


def test_a_body_says_numbers_as_numbers(serve: Serve, connect: Connect):
    server = serve(lambda _: Answer(201, run_json()))
    http = connect(server.url)
    tasks = [{"learning_rate": 1e-5, "desired_kl": None, "code_ref": "12e4567"}]
    body = RunCreate(name="3.10", config=RunConfig(tasks=tasks))
    http.post("/v1/runs", Run, body=body, idempotency_key="k")

    sent = json.loads(server.requests[0].body)
    assert sent["name"] == "3.10"
    assert sent["config"]["tasks"] == tasks
    assert type(sent["config"]["tasks"][0]["learning_rate"]) is float
