"""From a URL and a ref to a work tree, with real repositories."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from attempts import eventually
from repositories import Repository

from canard_platform.attempt.checkout import Checkout, Source, check_out
from canard_platform.attempt.failures import AttemptFailure
from canard_platform.attempt.git import Git, explain, shown
from canard_platform.attempt.mirrors import mirror_of
from canard_platform.attempt.stop import StopOrder, Stopped, StopReason

LFS_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0f\nsize 12345\n"


@pytest.fixture
def stop() -> StopOrder:
    return StopOrder()


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def check(tmp_path: Path, stop: StopOrder, warnings: list[str]) -> Callable[..., Checkout]:
    """Checks out into a new folder each time, with one cache."""
    trees = iter(range(1000))

    def check(
        url: str, ref: str | None = None, *, pinned: str | None = None, local_paths: bool = True
    ) -> Checkout:
        return check_out(
            Source(url=url, ref=ref, pinned=pinned),
            tmp_path / f"tree-{next(trees)}",
            cache=tmp_path / "cache",
            git=Git(stop=stop, local_paths=local_paths),
            warn=warnings.append,
        )

    return check


def text(checkout: Checkout, name: str = "version.txt") -> str:
    return (checkout.tree / name).read_text()


def test_a_branch_a_tag_a_long_and_a_short_commit_and_the_default_branch_are_found(check, repository):
    first = repository.commit({"version.txt": "1"})
    repository.git("tag", "-a", "v1", "-m", "annotated")
    second = repository.commit({"version.txt": "2"})
    repository.git("checkout", "-q", "-b", "feature/fast")
    third = repository.commit({"version.txt": "3"})
    repository.git("checkout", "-q", "main")

    found = {
        ref: check(repository.url, ref) for ref in ("v1", "feature/fast", first, second[:8], None, "HEAD")
    }

    assert {ref: checkout.commit for ref, checkout in found.items()} == {
        "v1": first,
        "feature/fast": third,
        first: first,
        second[:8]: second,
        None: second,
        "HEAD": second,
    }
    assert [text(checkout) for checkout in found.values()] == ["1", "3", "1", "2", "2", "2"]


@pytest.mark.parametrize("ref", ["12e4567", "0012345", "1234567", "1E234", "3.10", "7", "null", "inf"])
def test_a_ref_that_looks_like_a_number_is_taken_as_its_text(check, repository, ref):
    tagged = repository.commit({"version.txt": "tagged"})
    repository.git("tag", ref)
    repository.commit({"version.txt": "later"})

    assert check(repository.url, ref).commit == tagged


def test_a_ref_that_is_not_there_is_refused_with_what_is_near(check, repository):
    repository.commit()
    repository.git("branch", "training")

    with pytest.raises(AttemptFailure) as refused:
        check(repository.url, "trainig")

    assert not refused.value.retryable
    assert refused.value.message == (
        f"code_ref: {repository.url} has no branch, tag or commit 'trainig' (there is: training, main)"
    )


def test_a_commit_that_is_not_there_is_refused(check, repository):
    repository.commit()

    with pytest.raises(AttemptFailure, match=r"has no commit 1{40}; was it pushed"):
        check(repository.url, "1" * 40)


def test_a_repository_without_a_commit_is_refused(check, repository):
    with pytest.raises(AttemptFailure, match="no commit on its default branch"):
        check(repository.url)


@pytest.mark.parametrize(
    "url",
    ["ext::sh -c 'touch /tmp/x'", "file:///tmp", "-oProxyCommand=x", "http://host/r", "../robot", "fd::3"],
)
def test_surprising_transports_are_refused(check, url):
    with pytest.raises(AttemptFailure, match=r"code_url: .* is refused"):
        check(url)


def test_a_path_is_refused_where_paths_are_not_allowed(check, repository):
    repository.commit()

    with pytest.raises(AttemptFailure, match="is refused"):
        check(repository.url, local_paths=False)


def test_a_ref_that_would_be_an_option_is_refused(check, repository):
    repository.commit()

    with pytest.raises(AttemptFailure, match="begins with '-'"):
        check(repository.url, "--upload-pack=x")


def test_a_folder_that_is_no_repository_is_named(check, tmp_path):
    (tmp_path / "empty").mkdir()

    with pytest.raises(AttemptFailure, match="there is no git repository at") as refused:
        check(str(tmp_path / "empty"))

    assert not refused.value.retryable


def test_a_host_that_does_not_answer_may_answer_later(check):
    with pytest.raises(AttemptFailure, match=r"https://127\.0\.0\.1:1/robot cannot be reached") as failed:
        check("https://127.0.0.1:1/robot")

    assert failed.value.retryable


@pytest.mark.parametrize(
    ("said", "meaning", "retryable"),
    [
        (
            "fatal: could not read Username for 'https://h': terminal prompts disabled",
            "authentication",
            False,
        ),
        ("git@h: Permission denied (publickey).\nfatal: Could not read", "authentication", False),
        ("Host key verification failed.\nfatal: Could not read", "known_hosts", False),
        (
            "remote: Repository not found.\nfatal: repository 'https://h/r/' not found",
            "no git repository",
            False,
        ),
        ("fatal: unable to access 'https://h/r/': Could not resolve host: h", "cannot be reached", True),
        ("fatal: write error: No space left on device", "the disk of the worker is full", True),
    ],
)
def test_gits_words_are_explained(said, meaning, retryable):
    failure = explain("https://h/r", said)

    assert meaning in failure.message
    assert "https://h/r" in failure.message
    assert failure.retryable is retryable


@pytest.mark.parametrize(
    ("url", "as_shown"),
    [
        ("https://ada:secret@host/r", "https://host/r"),
        ("https://token@host/r", "https://host/r"),
        ("ssh://git@host:2222/r", "ssh://git@host:2222/r"),
        ("git@host:o/r", "git@host:o/r"),
    ],
)
def test_a_url_is_shown_without_its_secret(url, as_shown):
    assert shown(url) == as_shown


def test_a_pinned_commit_is_used_though_the_branch_has_moved_and_without_asking_the_remote(check, repository):
    pinned = repository.commit({"version.txt": "1"})
    check(repository.url)
    repository.commit({"version.txt": "2"})
    away = repository.root.rename(repository.root.with_name("away"))

    again = check(repository.url, "main", pinned=pinned)

    assert away.exists()
    assert text(again) == "1"


def test_a_branch_is_looked_up_anew_when_nothing_is_pinned(check, repository):
    repository.commit({"version.txt": "1"})
    check(repository.url, "main")
    repository.commit({"version.txt": "2"})

    assert text(check(repository.url, "main")) == "2"


def test_a_commit_before_a_force_push_is_still_found_where_the_mirror_has_it(check, repository):
    pinned = repository.commit({"version.txt": "1"})
    check(repository.url)
    repository.git("commit", "-q", "--amend", "-m", "another")
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "-q", "--prune=now")

    assert check(repository.url, "main").commit != pinned
    assert check(repository.url, "main", pinned=pinned).commit == pinned


def test_a_detached_head_is_the_default(check, repository):
    repository.commit({"version.txt": "1"})
    repository.git("checkout", "-q", "--detach")
    detached = repository.commit({"version.txt": "2"})

    assert check(repository.url).commit == detached


def test_attempts_at_once_share_a_mirror(check, repository, tmp_path):
    repository.commit({"version.txt": "1"})
    made: list[Checkout] = []
    threads = [threading.Thread(target=lambda: made.append(check(repository.url, "main"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert [text(checkout) for checkout in made] == ["1"] * 4
    assert len(list((tmp_path / "cache").glob("*.git"))) == 1


def test_waiting_for_a_mirror_ends_with_the_attempt(check, repository, stop, tmp_path):
    repository.commit()
    mirror = mirror_of(repository.url, cache=tmp_path / "cache", git=Git(stop=StopOrder(), local_paths=True))
    ended: list[BaseException] = []

    def wait() -> None:
        try:
            check(repository.url)
        except Stopped as stopped:
            ended.append(stopped)

    with mirror.locked():
        waiting = threading.Thread(target=wait)
        waiting.start()
        stop.give(StopReason.CANCEL)
        waiting.join(60)

    assert eventually(lambda: ended)


def test_submodules_are_warned_of_and_not_fetched(check, repository, tmp_path, warnings):
    other = Repository(tmp_path / "meshes")
    other.commit({"mesh.stl": "solid"})
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.url, "meshes")
    repository.commit()

    tree = check(repository.url).tree

    assert list((tree / "meshes").iterdir()) == []
    assert warnings == [f"{repository.url} has submodules; they are not fetched, so their folders are empty"]


def test_a_git_lfs_pointer_is_named(check, repository):
    repository.commit(
        {".gitattributes": "*.stl filter=lfs -text\n", "a.stl": "solid real", "meshes/leg.stl": LFS_POINTER}
    )

    with pytest.raises(AttemptFailure, match=r"code_url: meshes/leg\.stl is kept in Git LFS") as refused:
        check(repository.url)

    assert not refused.value.retryable


def test_hooks_of_the_machines_templates_do_not_run(check, repository, tmp_path, monkeypatch):
    hook = tmp_path / "template" / "hooks" / "post-checkout"
    hook.parent.mkdir(parents=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    hook.chmod(0o755)
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(tmp_path / "template"))
    repository.commit()

    check(repository.url)

    assert not (tmp_path / "ran").exists()
