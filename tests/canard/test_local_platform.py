"""Finding, starting and stopping the platform of this machine, with the real service."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from canard import local_platform
from canard.credentials import store_key
from canard.errors import CredentialsError, PlatformError
from canard.local_platform import ensure_running, running, stop

STARTS = """
import sys
from pathlib import Path
from canard.local_platform import ensure_running
found = ensure_running(Path(sys.argv[1]))
print(found.pid, found.url)
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home whose service is gone at the end, whatever happened."""
    home = tmp_path / "home"
    yield home
    for process in services_of(home):
        process.kill()
        process.wait(timeout=10)


def services_of(home: Path) -> list[psutil.Process]:
    """Every service process that was started for this home."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(home) in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return [process for process in found if "canard_platform" in process.cmdline()]


def test_nothing_runs_where_nothing_was_started(home: Path):
    assert running(home) is None
    assert stop(home) is False


def test_it_is_started_once_found_again_and_stopped(home: Path):
    started = ensure_running(home)
    again = ensure_running(home)

    assert again == started == running(home)
    assert started.url.startswith("http://127.0.0.1:")
    assert started.api_key not in repr(started)
    assert [process.pid for process in services_of(home)] == [started.pid]
    assert os.getsid(started.pid) != os.getsid(0)

    assert stop(home) is True

    assert services_of(home) == []
    assert running(home) is None
    assert not (home / "platform.json").exists()
    assert stop(home) is False


def test_it_outlives_who_started_it(home: Path):
    printed = subprocess.run(
        [sys.executable, "-c", STARTS, str(home)], capture_output=True, text=True, check=True, timeout=90
    ).stdout

    found = running(home)
    assert found is not None
    assert printed.split() == [str(found.pid), found.url]


def test_callers_at_the_same_time_make_one_service(home: Path):
    def start(_: int) -> str:
        return subprocess.run(
            [sys.executable, "-c", STARTS, str(home)], capture_output=True, text=True, check=True, timeout=120
        ).stdout

    with ThreadPoolExecutor(3) as pool:
        answers = set(pool.map(start, range(3)))

    assert len(answers) == 1
    assert len(services_of(home)) == 1


def test_a_key_for_another_platform_in_the_environment_does_not_count(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CANARD_API_KEY", "of-the-cloud")

    started = ensure_running(home)

    assert started.api_key != "of-the-cloud"
    [service] = services_of(home)
    assert "CANARD_API_KEY" not in service.environ()


def test_it_stops_although_its_parent_lives_and_does_not_reap_it(home: Path):
    started = ensure_running(home)
    command = [sys.executable, "-m", "canard.cli", "down"]
    environment = {**os.environ, "CANARD_HOME": str(home)}

    down = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90, check=False)

    assert (down.returncode, down.stdout) == (0, "The platform is down.\n")
    assert psutil.Process(started.pid).status() == psutil.STATUS_ZOMBIE
    os.waitpid(started.pid, 0)


def test_after_a_crash_it_is_started_anew(home: Path):
    first = ensure_running(home)
    service = psutil.Process(first.pid)
    service.kill()
    service.wait(timeout=10)
    assert (home / "platform.json").exists()
    assert running(home) is None

    second = ensure_running(home)

    assert second.pid != first.pid
    assert running(home) == second


def test_a_number_that_another_process_has_now_is_not_killed(home: Path):
    home.mkdir()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        said = {"url": "http://127.0.0.1:9", "pid": bystander.pid, "started_at": "", "version": ""}
        (home / "platform.json").write_text(json.dumps(said))

        assert stop(home) is False

        assert bystander.poll() is None
        bystander.kill()
    assert not (home / "platform.json").exists()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"url": 5, "pid": 1}', '{"url": "http://127.0.0.1:9"}']
)
def test_a_half_written_announcement_is_none(home: Path, content: str):
    home.mkdir()
    (home / "platform.json").write_text(content)

    assert running(home) is None


def test_what_it_died_of_while_starting_is_shown(home: Path):
    home.mkdir()
    (home / "platform.db").write_bytes(b"this is no database" * 100)

    with pytest.raises(
        PlatformError, match=r"ended while starting \(exit code 1\).*platform\.log ends with:\n.*\w"
    ):
        ensure_running(home)

    assert services_of(home) == []


def test_one_that_does_not_answer_in_time_is_not_left_behind(home: Path):
    with pytest.raises(PlatformError, match=r"did not answer within 0\.01 s"):
        ensure_running(home, timeout_s=0.01)

    assert services_of(home) == []


def test_ctrl_c_while_it_starts_leaves_nothing_behind(home: Path):
    starting = subprocess.Popen([sys.executable, "-c", STARTS, str(home)], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not services_of(home) and time.monotonic() < deadline:
        time.sleep(0.01)

    starting.send_signal(signal.SIGINT)
    _, err = starting.communicate(timeout=60)

    assert b"KeyboardInterrupt" in err
    assert services_of(home) == []
    assert not (home / "platform.json").exists()


def test_credentials_open_to_others_are_refused(home: Path):
    started = ensure_running(home)
    store_key(started.url, started.api_key, home=home)
    (home / "credentials.json").chmod(0o644)

    with pytest.raises(CredentialsError, match="chmod 600"):
        running(home)


def test_a_home_that_cannot_be_made_is_an_error(tmp_path: Path):
    (tmp_path / "file").write_text("")

    with pytest.raises(PlatformError, match="file"):
        ensure_running(tmp_path / "file" / "home")


def test_without_the_service_installed_the_error_says_what_to_install(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(local_platform, "NEEDED", ("canard_platform", "no_such_package"))

    with pytest.raises(
        PlatformError, match=r"no_such_package missing.*pip install 'canard-hydra\[platform,trainer\]'"
    ):
        ensure_running(home)
