"""The pages as a browser without scripts sees them."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

import httpx
import pytest
from stage import Stage, iteration


@pytest.fixture
def stranger(stage: Stage) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stage.url, trust_env=False) as browser:
        yield browser


@pytest.fixture
def browser(stage: Stage, stranger: httpx.Client) -> httpx.Client:
    """Signed in."""
    key = stage.http.headers["Authorization"].removeprefix("Bearer ")
    assert stranger.post("/login", data={"key": key}).status_code == 303
    return stranger


class Page(HTMLParser):
    """Tags with their attributes, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data.split()

    @property
    def text(self) -> str:
        return " ".join(self.words)


def test_without_signing_in_there_is_the_sign_in_page_only(stage: Stage, stranger: httpx.Client):
    slug = stage.submit()["slug"]

    answers = [stranger.get(path) for path in ("/runs", f"/runs/{slug}", f"/runs/{slug}/download/1")]

    assert [answer.status_code for answer in answers] == [303] * 3
    assert answers[1].headers["location"] == f"/login?next=/runs/{slug}"
    assert slug not in stranger.get("/login").text


def test_signing_in_with_a_key_leads_to_where_one_wanted_to_go(stage: Stage, stranger: httpx.Client):
    key = stage.http.headers["Authorization"].removeprefix("Bearer ")

    answer = stranger.post("/login", data={"key": f" {key}\n", "next": "/runs/run_x"})

    assert (answer.status_code, answer.headers["location"]) == (303, "/runs/run_x")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert key not in cookie
    assert stranger.get("/runs").status_code == 200


def test_a_wrong_key_signs_nobody_in(stranger: httpx.Client):
    answer = stranger.post("/login", data={"key": "wrong"})

    assert answer.status_code == 401
    assert "not a valid API key" in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("target", ["https://evil.example", "//evil.example", "/\\evil.example", "x", ""])
def test_signing_in_leads_to_no_other_site(stage: Stage, stranger: httpx.Client, target: str):
    key = stage.http.headers["Authorization"].removeprefix("Bearer ")

    answer = stranger.post("/login", data={"key": key, "next": target})

    assert answer.headers["location"] == "/runs"


@pytest.mark.parametrize("path", ["/login", "/logout"])
def test_a_form_of_another_site_is_refused(stage: Stage, browser: httpx.Client, path: str):
    answer = browser.post(path, data={"key": "x"}, headers={"Origin": "http://evil.example"})

    assert answer.status_code == 403


def test_signing_out_signs_out(browser: httpx.Client):
    assert browser.get("/runs").status_code == 200

    browser.post("/logout")

    assert browser.get("/runs").status_code == 303


def test_a_session_ends_with_its_time_and_a_forged_one_never_began(stage: Stage, browser: httpx.Client):
    [(name, value)] = browser.cookies.items()
    stage.clock.advance(12 * 3600 + 1)
    late = browser.get("/runs").status_code
    browser.cookies.set(name, value[:-3] + "AAA", domain="127.0.0.1")

    assert (late, browser.get("/runs").status_code) == (303, 303)


def test_a_login_link_works_once(stage: Stage, stranger: httpx.Client):
    slug = stage.submit()["slug"]
    link = stage.http.post("/login-links", json={"target": f"/runs/{slug}"}).json()["url"]

    first = stranger.get(link)
    with httpx.Client(base_url=stage.url, trust_env=False) as other:
        second = other.get(link)
        assert other.get("/runs").status_code == 303

    assert (first.status_code, first.headers["location"]) == (303, f"/runs/{slug}")
    assert stranger.get(f"/runs/{slug}").status_code == 200
    assert second.status_code == 401
    assert "used before" in second.text


def test_a_login_link_works_for_a_minute(stage: Stage, stranger: httpx.Client):
    link = stage.http.post("/login-links").json()["url"]
    stage.clock.advance(61)

    assert stranger.get(link).status_code == 401


@pytest.mark.parametrize("target", ["https://evil.example", "//evil.example", "runs"])
def test_a_login_link_leads_to_a_page_of_this_site(stage: Stage, target: str):
    answer = stage.http.post("/login-links", json={"target": target})

    assert (answer.status_code, answer.json()["field"]) == (422, "target")


def test_a_runs_page_shows_its_tasks(stage: Stage, browser: httpx.Client):
    slug = stage.submit(
        tasks=[{"learning_rate": 1e-05}, {"learning_rate": 0.5, "code_ref": "null"}, {"code_ref": None}]
    )["slug"]
    worker = stage.claim()
    worker.events(0, iteration(1, 1.25), iteration(4, 8.5), iteration(5, 7.75))
    stage.claim().commit("failed", error="num_envs: too many\nTraceback", retryable=False)

    page = Page(browser.get(f"/runs/{slug}").text)

    assert "0 1e-05 – running 5 of 10 1.25 7.75 8.5 1" in page.text  # noqa: RUF001
    assert '1 0.5 "null" failed' in page.text
    assert "2 – null queued" in page.text  # noqa: RUF001
    assert "num_envs: too many" in page.text
    assert ("meta", {"http-equiv": "refresh", "content": "5"}) in page.tags


def test_a_run_that_has_ended_does_not_refresh(stage: Stage, browser: httpx.Client):
    slug = stage.submit()["slug"]
    stage.claim().complete()

    page = Page(browser.get(f"/runs/{slug}").text)

    assert not [attributes for tag, attributes in page.tags if attributes.get("http-equiv") == "refresh"]


def test_artifacts_can_be_downloaded_from_the_page(stage: Stage, browser: httpx.Client):
    slug = stage.submit()["slug"]
    stage.claim().upload("videos/a b#é.mp4", b"film", "video")
    page = browser.get(f"/runs/{slug}").text
    [link] = re.findall(r'href="(/runs/[^"]+/download/\d+)"', page)

    film = browser.get(link, follow_redirects=True)

    assert film.content == b"film"
    assert film.headers["content-disposition"].startswith("attachment")
    assert "/v1/blobs/" not in page


def test_the_tensorboard_url_leads_to_the_command_that_shows_the_event_files(
    stage: Stage, browser: httpx.Client
):
    slug = stage.submit()["slug"]
    before = stage.run(slug)["tensorboard_url"]
    stage.claim().upload("tensorboard/events.out.tfevents.1", b"x", "tensorboard")

    url = stage.run(slug)["tensorboard_url"]
    page = Page(browser.get(url).text)

    assert before is None
    assert url.endswith(f"/runs/{slug}#tensorboard")
    assert "tensorboard" in [attributes.get("id") for _, attributes in page.tags]
    folder = stage.home / "artifacts" / "runs" / slug
    assert f"tensorboard --logdir {folder}" in page.text
    assert list(folder.rglob("events.out.tfevents.1"))


def test_names_and_values_are_text_and_never_markup(stage: Stage, browser: httpx.Client):
    evil = "<script>alert(1)</script>"
    answer = stage.http.post(
        "/runs", json={"name": evil, "config": {"mode": "physics", "tasks": [{evil: evil}]}}
    )
    slug = answer.json()["slug"]
    worker = stage.claim()
    worker.upload("<img src=x>.log", b"x", "log")
    worker.commit("failed", error=evil, retryable=False)

    pages = [Page(browser.get(path).text) for path in ("/runs", f"/runs/{slug}")]

    for page in pages:
        assert evil in page.text
        assert {tag for tag, _ in page.tags} & {"script", "img"} == set()


@pytest.mark.parametrize("path", ["/login", "/runs", "/runs/{slug}", "/runs/run_zzzzzzzz"])
def test_a_page_asks_nobody_else_and_runs_nothing(stage: Stage, browser: httpx.Client, path: str):
    slug = stage.submit()["slug"]

    answer = browser.get(path.format(slug=slug))

    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'; form-action 'self'")
    assert "unsafe" not in policy
    assert answer.headers["cache-control"] == "no-store"
    page = Page(answer.text)
    linked = [
        value or ""
        for _, attributes in page.tags
        for name, value in attributes.items()
        if name in {"href", "src", "action"}
    ]
    assert all(link.startswith(("/", "#")) and not link.startswith("//") for link in linked)
    assert not [
        name for _, attributes in page.tags for name in attributes if name.startswith(("on", "style"))
    ]


@pytest.mark.parametrize("path", ["/login", "/runs", "/runs/{slug}"])
def test_a_page_can_be_read_by_a_screen_reader(stage: Stage, browser: httpx.Client, path: str):
    slug = stage.submit()["slug"]

    page = Page(browser.get(path.format(slug=slug)).text)

    tags = [tag for tag, _ in page.tags]
    assert ("html", {"lang": "en"}) in page.tags
    assert (tags.count("h1"), tags.count("main"), tags.count("title")) == (1, 1, 1)
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")
    labelled = {attributes.get("for") for tag, attributes in page.tags if tag == "label"}
    inputs = [a for tag, a in page.tags if tag == "input" and a.get("type") != "hidden"]
    assert all(attributes.get("id") in labelled for attributes in inputs)
    assert ("a", {"class": "skip", "href": "#content"}) in page.tags


def test_a_run_of_another_user_is_not_there(stage: Stage, browser: httpx.Client):
    answer = stage.http.post(
        "/runs", json={"name": "x", "config": {"mode": "physics"}}, headers=stage.key_of("ada")
    )

    page = browser.get(f"/runs/{answer.json()['slug']}")

    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")


def test_long_lists_come_in_pages(stage: Stage, browser: httpx.Client):
    slug = stage.submit(sweep_configs=[{"parameter": "seed", "values": list(range(150))}])["slug"]
    first = browser.get(f"/runs/{slug}").text

    [more] = re.findall(r'href="([^"]+tasks_after=[^"]+)"', first)
    second = browser.get(more).text

    assert (first.count(">queued<"), second.count(">queued<")) == (101, 51)
    assert browser.get(f"/runs/{slug}?tasks_after=junk").status_code == 422
