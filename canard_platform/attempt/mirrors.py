"""Bare mirrors of repositories, one a URL, shared by the attempts of this machine."""

import difflib
import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from filelock import FileLock, Timeout

from canard_platform.attempt.failures import AttemptFailure
from canard_platform.attempt.git import Git, explain, shown

LOCK_WAIT_S = 0.2
MOST_NAMES = 10
ALL = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")

_COMMIT = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}")
_ABBREVIATED = re.compile(r"[0-9a-fA-F]{4,64}")
_NO_SUCH_COMMIT = re.compile(r"not our ref|couldn't find remote ref|unadvertised object|no such remote ref")


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """Used inside `locked`: what another attempt fetches meanwhile must not move under our feet."""

    git: Git
    url: str
    path: Path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Wait for other attempts to be done with it.

        Raises:
            Stopped: the attempt must stop, so it waits no longer.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{self.path}.lock")
        while not lock.is_locked:
            self.git.stop.check()
            with suppress(Timeout):
                lock.acquire(timeout=LOCK_WAIT_S)
        try:
            yield
        finally:
            lock.release()

    def commit_of(self, ref: str | None, *, pinned: str | None) -> str:
        """Full SHA of the pinned commit, of what `ref` names, or of the default branch; it is here then.

        Raises:
            AttemptFailure: there is no such commit, or the repository does not answer.
        """
        self._ensure()
        exact = pinned or (ref if ref is not None and _COMMIT.fullmatch(ref) else None)
        if exact is not None:
            return self._exactly(exact)
        self._fetch(*ALL)
        if ref is None or ref == "HEAD":
            return self._default_branch()
        return self._named(ref) or self._abbreviated(ref) or self._missing(ref)

    def _ensure(self) -> None:
        if not (self.path / "HEAD").exists():
            self.path.mkdir(parents=True, exist_ok=True)
            self.git.run("init", "--quiet", "--bare", "--template=", str(self.path), cwd=self.path)

    def _fetch(self, *refspecs: str) -> None:
        arguments = ["fetch", "--quiet", "--prune", "--no-tags", "--no-recurse-submodules", "--force"]
        self.git.remote(self.url, [*arguments, "--", self.url, *refspecs], cwd=self.path)

    def _exactly(self, commit: str) -> str:
        """Of no branch, it may still be on the host: a pull request's, or one before a force-push."""
        if not self._has(commit):
            self._fetch(*ALL)
        if not self._has(commit):
            self._fetch_one(commit)
        if not self._has(commit):
            raise AttemptFailure(
                f"code_ref: {shown(self.url)} has no commit {commit}; was it pushed, or force-pushed away?",
                retryable=False,
            )
        return commit.lower()

    def _fetch_one(self, commit: str) -> None:
        arguments = ["fetch", "--quiet", "--no-tags", "--", self.url, f"+{commit}:refs/canard/{commit}"]
        done = self.git.try_to(*arguments, cwd=self.path)
        if done.exit_code != 0 and not _NO_SUCH_COMMIT.search(done.err):
            raise explain(self.url, done.err)

    def _default_branch(self) -> str:
        listed = self.git.remote(self.url, ["ls-remote", "--", self.url, "HEAD"], cwd=self.path).split()
        if not listed:
            raise AttemptFailure(
                f"code_url: {shown(self.url)} has no commit on its default branch; name another in code_ref"
                f" ({self._what_there_is('')})",
                retryable=False,
            )
        return self._exactly(listed[0])

    def _named(self, ref: str) -> str | None:
        """A tag before a branch, as git itself takes them."""
        names = [ref] if ref.startswith("refs/") else [f"refs/tags/{ref}", f"refs/heads/{ref}"]
        return next((commit for name in names if (commit := self._commit(name))), None)

    def _abbreviated(self, ref: str) -> str | None:
        if not _ABBREVIATED.fullmatch(ref):
            return None
        commit = self._commit(ref)
        if commit is None and len(self._beginning_with(ref)) > 1:
            raise AttemptFailure(
                f"code_ref: {ref} is how several commits begin; give more characters", retryable=False
            )
        return commit

    def _missing(self, ref: str) -> NoReturn:
        raise AttemptFailure(
            f"code_ref: {shown(self.url)} has no branch, tag or commit {ref!r} ({self._what_there_is(ref)})",
            retryable=False,
        )

    def _has(self, commit: str) -> bool:
        return self.git.try_to("cat-file", "-e", f"{commit}^{{commit}}", cwd=self.path).exit_code == 0

    def _commit(self, name: str) -> str | None:
        found = self.git.try_to(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", cwd=self.path
        )
        return found.out.strip() if found.exit_code == 0 else None

    def _beginning_with(self, prefix: str) -> list[str]:
        return self.git.try_to("rev-parse", f"--disambiguate={prefix}", cwd=self.path).out.split()

    def _what_there_is(self, ref: str) -> str:
        listed = self.git.run(
            "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads", "refs/tags", cwd=self.path
        )
        names = listed.split()
        if not names:
            return "it has no branches or tags"
        near = difflib.get_close_matches(ref, names, n=3, cutoff=0.5)
        rest = [name for name in names if name not in near]
        shown_names = [*near, *rest][:MOST_NAMES]
        return "there is: " + ", ".join(shown_names) + (", ..." if len(names) > MOST_NAMES else "")


def mirror_of(url: str, *, cache: Path, git: Git) -> Mirror:
    """Where the mirror of this URL lies; it need not exist yet."""
    name = (
        re.sub(r"[^A-Za-z0-9._-]+", "-", url.rstrip("/").rpartition("/")[2])[:40].strip("-.") or "repository"
    )
    digest = hashlib.sha256(url.encode()).hexdigest()[:16]
    return Mirror(git=git, url=url, path=cache / f"{name}-{digest}.git")
