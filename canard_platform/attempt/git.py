"""The git command line, without prompts, hooks, surprising transports or background jobs."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from canard_platform.attempt.commands import Finished, run_command
from canard_platform.attempt.failures import AttemptFailure
from canard_platform.attempt.stop import StopOrder
from canard_platform.attempt.symptoms import recognised

TIMEOUT_S = 1800.0
QUIET = ("-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.hooksPath=/dev/null")

_REMOTE = re.compile(r"(?:https|ssh)://[^\s-]\S*|[\w.-]+@[A-Za-z0-9][\w.-]*:(?!-)\S+")


@dataclass(frozen=True, kw_only=True)
class Git:
    """Runs git for one attempt; every call ends when the attempt must stop."""

    stop: StopOrder
    local_paths: bool
    """Whether a repository may be a path of this machine."""

    def check_url(self, url: str) -> None:
        """Raises AttemptFailure for what is neither https, ssh nor, where allowed, a path."""
        if _REMOTE.fullmatch(url) or (self.local_paths and url.startswith("/")):
            return
        raise AttemptFailure(
            f"code_url: {shown(url)} is refused; write https://host/owner/repo or ssh://git@host/owner/repo"
            + (", or an absolute path" if self.local_paths else ""),
            retryable=False,
        )

    def run(self, *arguments: str, cwd: Path) -> str:
        """What git prints.

        Raises:
            AttemptFailure: it failed, which on local data it should not.
        """
        done = self.try_to(*arguments, cwd=cwd)
        if done.exit_code != 0:
            said = last_line(done.err) or f"exit code {done.exit_code}"
            raise AttemptFailure(f"git {arguments[0]} failed: {said}", retryable=True, detail=done.err)
        return done.out

    def remote(self, url: str, arguments: Sequence[str], *, cwd: Path) -> str:
        """A command that asks the repository at `url`.

        Raises:
            AttemptFailure: in words that say what is wrong with the repository, or on the way to it.
        """
        done = self.try_to(*arguments, cwd=cwd)
        if done.exit_code != 0:
            raise explain(url, done.err)
        return done.out

    def try_to(self, *arguments: str, cwd: Path) -> Finished:
        env = environment(local_paths=self.local_paths)
        return run_command(["git", *QUIET, *arguments], stop=self.stop, timeout_s=TIMEOUT_S, cwd=cwd, env=env)


def environment(*, local_paths: bool) -> Mapping[str, str]:
    """What git runs with: it asks nobody, and speaks no other protocols."""
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    return {
        **inherited,
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "GIT_SSH_COMMAND": f"{os.environ.get('GIT_SSH_COMMAND', 'ssh')} -oBatchMode=yes",
        "GIT_ALLOW_PROTOCOL": "https:ssh:file" if local_paths else "https:ssh",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_HTTP_LOW_SPEED_LIMIT": "1000",
        "GIT_HTTP_LOW_SPEED_TIME": "60",
    }


_NOT_INHERITED = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"})
"""Set where we were started from a git hook, and about another repository."""

_AUTHENTICATION = re.compile(
    r"could not read (Username|Password)|Authentication failed|Permission denied \(|terminal prompts disabled"
    r"|returned error: 40[13]|Invalid username or",
)
_HOST_KEY = re.compile(r"Host key verification failed|REMOTE HOST IDENTIFICATION")
_NOT_THERE = re.compile(
    r"[Rr]epository .*not found|does not appear to be a git repository|does not exist|returned error: 404"
    r"|not a git repository",
)
_REFUSED = re.compile(r"transport '.*' not allowed|dubious ownership|strange hostname|strange pathname")


def explain(url: str, said: str) -> AttemptFailure:
    """What git's words about a remote repository mean, and whether trying again can help."""
    where, line = shown(url), last_line(said, prefer=("fatal:", "error:", "ERROR:"))
    known = recognised(said)
    if known:
        return AttemptFailure(f"fetching {where}: {known}", retryable=True, detail=said)
    if _AUTHENTICATION.search(said):
        message = (
            f"code_url: {where} needs authentication (or does not exist): this machine has no credentials for"
            " it; make the repository public, or give the platform's user a deploy key or credential helper"
        )
    elif _HOST_KEY.search(said):
        message = f"code_url: {where}: its host key is not known on this machine; add it to known_hosts"
    elif _NOT_THERE.search(said):
        message = f"code_url: there is no git repository at {where} ({line})"
    elif _REFUSED.search(said):
        message = f"code_url: {where}: {line}"
    else:
        return AttemptFailure(f"code_url: {where} cannot be reached: {line}", retryable=True, detail=said)
    return AttemptFailure(message, retryable=False, detail=said)


def shown(url: str) -> str:
    """The URL without a password or token."""
    try:
        parts = urlsplit(url)
        if parts.scheme and parts.username is not None and (parts.password or parts.scheme != "ssh"):
            return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))[:200]
    except ValueError:
        pass
    return url[:200]


def last_line(text: str, *, prefer: Sequence[str] = ("fatal:", "error:")) -> str:
    """The line that says most: the last that git marked, else the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith(tuple(prefer))]
    return (marked or lines or [""])[-1][:300]
