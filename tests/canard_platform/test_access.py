"""Who may ask: each route of the table without a key, with a wrong one, with another user's."""

from datetime import timedelta
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute
from sqlalchemy import update
from stage import Stage, Worker

from canard_platform.store.tables import ApiKey
from canard_platform.store.users import ensure_user, issue_key

OPEN = {"/v1/health"}
SIGNED = {"/v1/blobs/{token}"}
"""The signature is the permission; tested with the artifacts."""


def routes(stage: Stage) -> list[tuple[str, str]]:
    paths = stage.http.get(f"{stage.url}/openapi.json").json()["paths"]
    found = [(method, path) for path, methods in paths.items() for method in methods]
    assert len(found) > 15
    return [(method, path) for method, path in found if path not in OPEN]


def call(stage: Stage, method: str, path: str, headers: dict[str, str], **values: Any) -> httpx.Response:
    url = stage.url + path.format(slug="run_zzzzzzzz", task_id=1, attempt_id="att_x", **values)
    return httpx.request(method, url, headers=headers, params={"key": "k"}, trust_env=False)


def test_every_route_of_the_app_is_in_the_published_table_or_known(stage: Stage):
    published = {path for _, path in routes(stage)} | OPEN
    app = stage.server.config.app
    served = {route.path for route in flat(app.routes) if route.path.startswith("/v1")}

    assert served - published == SIGNED


def flat(found: Any) -> list[APIRoute]:
    """The routes of an app and of the routers that it includes."""
    own = [route for route in found if isinstance(route, APIRoute)]
    included = [route.original_router for route in found if hasattr(route, "original_router")]
    return own + [inner for router in included for inner in flat(router.routes)]


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eDp5"}, {"Authorization": "Bearer"}],
)
def test_no_route_answers_without_a_valid_key(stage: Stage, headers: dict[str, str]):
    stage.submit()

    answers = {(method, path): call(stage, method, path, headers) for method, path in routes(stage)}

    assert {where: answer.status_code for where, answer in answers.items()} == dict.fromkeys(answers, 401)
    assert all(answer.json()["code"] == "unauthenticated" for answer in answers.values())
    assert all(answer.headers["www-authenticate"] == "Bearer" for answer in answers.values())


def test_another_users_run_does_not_exist(stage: Stage):
    slug = stage.submit()["slug"]
    [task] = stage.tasks(slug)
    stranger = stage.key_of("ada")
    of_runs = [(method, path) for method, path in routes(stage) if "{slug}" in path]

    for method, path in of_runs:
        url = stage.url + path.format(slug=slug, task_id=task["id"])
        answer = httpx.request(method, url, headers=stranger, params={"key": "k"}, trust_env=False)
        assert (answer.status_code, answer.json()["code"]) == (404, "run_not_found"), path

    assert len(of_runs) >= 10
    assert stage.run(slug)["status"] == "queued"
    assert httpx.get(f"{stage.url}/v1/runs", headers=stranger, trust_env=False).json()["items"] == []


def test_an_attempts_token_is_for_its_attempt_only(stage: Stage):
    stage.submit(sweep_configs=[{"parameter": "seed", "values": [1, 2]}])
    one, other = stage.claim(), stage.claim()
    token = {"Authorization": f"Bearer {one.claim.token}"}

    foreign = stage.http.post(f"/attempts/{other.claim.attempt_id}/start", headers=token)
    as_user = stage.http.get("/runs", headers=token)
    with_user_key = stage.http.post(f"/attempts/{one.claim.attempt_id}/start")

    assert [foreign.status_code, as_user.status_code, with_user_key.status_code] == [401] * 3


def test_a_key_that_expired_or_was_revoked_opens_nothing(stage: Stage):
    now = stage.clock.now()
    with stage.services.database.write() as session:
        user_id = ensure_user(session, "ada", now)
        short = issue_key(session, user_id, now, expires_at=now + timedelta(hours=1))
        revoked = issue_key(session, user_id, now)

    def code(key: str) -> int:
        return stage.http.get("/queue", headers={"Authorization": f"Bearer {key}"}).status_code

    before = (code(short), code(revoked))
    stage.clock.advance(3601)
    with stage.services.database.write() as session:
        session.execute(
            update(ApiKey).where(ApiKey.prefix == revoked[:12]).values(revoked_at=stage.clock.now())
        )

    assert before == (200, 200)
    assert (code(short), code(revoked)) == (401, 401)


def test_no_key_or_token_stands_in_the_database(stage: Stage):
    key = stage.key_of("ada")["Authorization"].removeprefix("Bearer ")
    stage.submit()
    worker: Worker = stage.claim()
    link = stage.http.post("/login-links").json()["url"].rpartition("/")[2]
    with stage.services.database.engine.connect() as connection:
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    stored = (stage.home / "platform.db").read_bytes()

    assert worker.claim.attempt_id.encode() in stored
    for secret in (key, worker.claim.token, link):
        assert secret.encode() not in stored


def test_keys_are_long_random_and_unlike(stage: Stage):
    keys = {stage.key_of("ada")["Authorization"] for _ in range(20)}

    assert len(keys) == 20
    assert min(len(key) for key in keys) >= len("Bearer canard_") + 43  # 256 bits in base64


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/v1/nothing", 404, "not_found"),
        ("DELETE", "/v1/runs", 405, "method_not_allowed"),
        ("POST", "/v1/runs", 422, "invalid_request"),
    ],
)
def test_every_error_is_a_problem(stage: Stage, method: str, path: str, status: int, code: str):
    answer = stage.http.request(method, stage.url + path, content=b"{")

    assert (answer.status_code, answer.json()["code"], answer.json()["status"]) == (status, code, status)
    assert answer.headers["content-type"] == "application/problem+json"


def test_an_error_of_ours_says_nothing_of_the_inside(stage: Stage, caplog: pytest.LogCaptureFixture):
    stage.submit()
    with stage.services.database.write() as session:
        session.connection().exec_driver_sql("ALTER TABLE artifacts RENAME TO elsewhere")

    answer = stage.http.get("/runs")

    assert (answer.status_code, answer.json()["code"]) == (500, "server_error")
    assert "artifacts" not in answer.text
    assert "no such table" in caplog.text
