"""Which commits the refs of a remote repository are now.

Asked when results are to be reused; a repository that does not answer soon is not waited for.
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from canard_platform.attempt.commands import run_command
from canard_platform.attempt.failures import AttemptFailure
from canard_platform.attempt.git import QUIET, environment, last_line, shown
from canard_platform.attempt.stop import StopOrder
from canard_platform.submit.code import Code

ANSWER_S = 10.0
ALL_ANSWERS_S = 15.0
"""For all repositories of a run: whoever submits waits for it."""

_COMMIT = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}")
_LISTED = re.compile(r"([0-9a-f]{40,64})\t(\S+)")


@dataclass(frozen=True, kw_only=True)
class Found:
    """A full SHA, or why it is not known."""

    commit: str | None = None
    problem: str | None = None


def remote_commits(codes: Sequence[Code], *, local_paths: bool) -> Mapping[Code, Found]:
    """One question a repository, in bounded time; a full SHA needs none."""
    found: dict[Code, Found] = {}
    deadline = time.monotonic() + ALL_ANSWERS_S
    for url, of_url in groupby(sorted(codes, key=lambda code: code.url), key=lambda code: code.url):
        group = list(of_url)
        exact = {
            code: Found(commit=code.ref.lower()) for code in group if code.ref and _COMMIT.fullmatch(code.ref)
        }
        named = [code for code in group if code not in exact]
        found |= exact
        if named:
            within_s = min(ANSWER_S, deadline - time.monotonic())
            found |= _named(url, named, local_paths=local_paths, within_s=within_s)
    return found


def _named(url: str, codes: Sequence[Code], *, local_paths: bool, within_s: float) -> dict[Code, Found]:
    refs = _listed(url, [name for code in codes for name in _names(code.ref)], local_paths, within_s)
    if isinstance(refs, Found):
        return dict.fromkeys(codes, refs)
    return {code: _commit(code, refs) for code in codes}


def _listed(url: str, names: Sequence[str], local_paths: bool, within_s: float) -> Mapping[str, str] | Found:
    """Commits by full name of ref, or the problem with the repository."""
    if within_s <= 0:
        return Found(problem=f"there was no time left to ask {shown(url)}")
    command = ["git", *QUIET, "ls-remote", "--", url, *dict.fromkeys(names)]
    try:
        done = run_command(
            command, stop=StopOrder(), timeout_s=within_s, env=environment(local_paths=local_paths)
        )
    except AttemptFailure as failure:
        return Found(problem=f"{shown(url)} cannot be asked ({failure})")
    if done.exit_code != 0:
        return Found(problem=f"{shown(url)} cannot be asked ({last_line(done.err)})")
    return {name: commit for commit, name in _LISTED.findall(done.out)}


def _commit(code: Code, refs: Mapping[str, str]) -> Found:
    for name in _names(code.ref):
        if name in refs:
            return Found(commit=refs[name])
    if code.ref is None:
        return Found(problem=f"{shown(code.url)} has no default branch")
    hint = "an abbreviated commit must be written in full"
    return Found(problem=f"{shown(code.url)} has no branch or tag {code.ref!r} ({hint})")


def _names(ref: str | None) -> list[str]:
    """What the ref may mean, in the order of the checkout: a tag before a branch, what it points to first."""
    if ref is None or ref == "HEAD":
        return ["HEAD"]
    names = [ref] if ref.startswith("refs/") else [f"refs/tags/{ref}", f"refs/heads/{ref}"]
    return [one for name in names for one in (f"{name}^{{}}", name)]
