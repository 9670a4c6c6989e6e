"""Keys: order of precedence, file permissions, spellings of one address."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from canard.credentials import credentials_path, find_key, forget_key, kept_key, store_key
from canard.errors import CredentialsError, InvalidRequestError

URL = "http://127.0.0.1:8787"


def test_an_explicit_key_wins_over_the_environment_and_that_over_the_file(monkeypatch: pytest.MonkeyPatch):
    store_key(URL, "from-file")
    assert (find_key(URL).value, find_key(URL).source) == ("from-file", "file")

    monkeypatch.setenv("CANARD_API_KEY", "from-environment\n")
    assert (find_key(URL).value, find_key(URL).source) == ("from-environment", "environment")

    found = find_key(URL, "explicit")
    assert (found.value, found.source) == ("explicit", "argument")
    assert kept_key(URL) == "from-file"


def test_without_a_key_the_error_says_how_to_give_one():
    with pytest.raises(CredentialsError, match=r"https://api.canard.cloud: pass api_key=.*CANARD_API_KEY"):
        find_key("https://api.canard.cloud")


@pytest.mark.parametrize(
    "spelling",
    ["http://localhost:8787", "http://127.0.0.1:8787/", "HTTP://LocalHost:8787/v1", " http://127.0.0.1:8787"],
)
def test_one_place_has_one_key_however_it_is_spelt(spelling: str):
    store_key(URL, "k")

    assert find_key(spelling).value == "k"


@pytest.mark.parametrize("other", ["http://127.0.0.1:8788", "https://127.0.0.1:8787", "http://[::1]:8787"])
def test_another_place_has_another_key(other: str):
    store_key(URL, "k")

    with pytest.raises(CredentialsError):
        find_key(other)


def test_the_default_port_need_not_be_said():
    store_key("https://api.canard.cloud:443", "k")

    assert find_key("https://api.canard.cloud").value == "k"


@pytest.mark.parametrize(
    "wrong", ["", "127.0.0.1:8787", "localhost:8787", "ftp://a", "http://", "http://a:port", "http://a:70000"]
)
def test_what_is_no_url_is_refused_naming_api_url(wrong: str):
    with pytest.raises(InvalidRequestError, match="api_url"):
        find_key(wrong)


def test_the_file_is_private_from_its_first_moment_whatever_the_umask(tmp_path: Path):
    before = os.umask(0)
    try:
        store_key(URL, "k")
    finally:
        os.umask(before)

    assert stat.S_IMODE(credentials_path().stat().st_mode) == 0o600
    assert stat.S_IMODE(credentials_path().parent.stat().st_mode) == 0o700
    assert json.loads(credentials_path().read_text()) == {"version": 1, "keys": {URL: "k"}}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o666])
def test_a_file_that_others_can_use_is_refused_with_the_command_to_type(mode: int):
    store_key(URL, "k")
    credentials_path().chmod(mode)

    with pytest.raises(CredentialsError, match=f"chmod 600 {credentials_path()}"):
        find_key(URL)
    with pytest.raises(CredentialsError, match="chmod 600"):
        store_key(URL, "other")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 1}', '{"version": 1, "keys": {"a": 5}}'])
def test_a_broken_file_is_named(content: str):
    store_key(URL, "k")
    credentials_path().write_text(content)

    with pytest.raises(CredentialsError, match=r"credentials\.json"):
        find_key(URL)


def test_a_file_of_a_newer_version_is_left_alone():
    store_key(URL, "k")
    credentials_path().write_text('{"version": 2, "keys": {}, "more": 1}')

    with pytest.raises(CredentialsError, match="newer version"):
        store_key(URL, "other")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(monkeypatch: pytest.MonkeyPatch):
    store_key(URL, "old")

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(CredentialsError, match="No space left"):
        store_key(URL, "new")

    monkeypatch.undo()
    home = credentials_path().parent if credentials_path().exists() else None
    assert home is None or sorted(path.name for path in home.iterdir()) == [
        "credentials.json",
        "credentials.lock",
    ]


@pytest.mark.parametrize("key", ["", "  ", "a b", "schlüssel", "a\nb"])
def test_what_cannot_be_a_key_is_refused(key: str):
    with pytest.raises(CredentialsError):
        find_key(URL, key)
    with pytest.raises(CredentialsError):
        store_key(URL, key)


def test_forgetting_a_key_keeps_the_others():
    store_key(URL, "k")
    store_key("https://api.canard.cloud", "cloud")

    forget_key(URL)
    forget_key("http://127.0.0.1:1")

    assert kept_key(URL) is None
    assert kept_key("https://api.canard.cloud") == "cloud"


def test_a_key_never_shows_in_a_repr():
    assert "s3cret" not in repr(find_key(URL, "s3cret"))


def test_processes_that_store_at_the_same_time_lose_no_key():
    program = "import sys; from canard.credentials import store_key; store_key(sys.argv[1], 'k')"
    urls = [f"http://127.0.0.1:{port}" for port in range(9001, 9007)]
    processes = [subprocess.Popen([sys.executable, "-c", program, url]) for url in urls]

    assert [process.wait(timeout=60) for process in processes] == [0] * len(urls)
    assert [kept_key(url) for url in urls] == ["k"] * len(urls)
