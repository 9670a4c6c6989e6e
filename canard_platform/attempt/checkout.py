"""From a repository's URL to a fresh work tree of one commit."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from canard_platform.attempt.failures import AttemptFailure
from canard_platform.attempt.git import Git, shown
from canard_platform.attempt.mirrors import mirror_of

log = logging.getLogger(__name__)

LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where the code comes from, as the task says it."""

    url: str
    ref: str | None
    """Exact text: "0012345" is no number."""
    pinned: str | None
    """Full SHA that the run uses, once one attempt has found it."""


@dataclass(frozen=True, kw_only=True)
class Checkout:
    tree: Path
    commit: str


def check_out(source: Source, tree: Path, *, cache: Path, git: Git, warn: Callable[[str], None]) -> Checkout:
    """Make `tree` a work tree of the commit that `source` means.

    Raises:
        AttemptFailure: naming code_url or code_ref, and what is wrong with it.
        Stopped: the attempt must stop.
    """
    git.check_url(source.url)
    if source.ref is not None and source.ref.startswith("-"):
        raise AttemptFailure(
            f"code_ref: {source.ref[:100]!r} is no branch, tag or commit: it begins with '-'", retryable=False
        )
    mirror = mirror_of(source.url, cache=cache, git=git)
    with mirror.locked():
        commit = mirror.commit_of(source.ref, pinned=source.pinned)
        clone = ["clone", "--quiet", "--shared", "--no-checkout", "--template="]
        git.run(*clone, "--", str(mirror.path), str(tree), cwd=mirror.path)
        git.run("checkout", "--quiet", "--detach", commit, cwd=tree)
    log.info("%s at %s is commit %s", shown(source.url), source.ref or "its default branch", commit)
    if (tree / ".gitmodules").exists():
        warn(f"{shown(source.url)} has submodules; they are not fetched, so their folders are empty")
    _refuse_lfs_pointers(git, tree)
    return Checkout(tree=tree, commit=commit)


def _refuse_lfs_pointers(git: Git, tree: Path) -> None:
    """A pointer in the place of a mesh would fail in the simulator, in words that nobody understands."""
    listed = git.run("ls-files", "-z", "--", ":(attr:filter=lfs)", cwd=tree)
    pointers = [name for name in listed.split("\0") if name and _is_pointer(tree / name)]
    if pointers:
        more = f" and {len(pointers) - 1} more" if len(pointers) > 1 else ""
        raise AttemptFailure(
            f"code_url: {pointers[0]}{more} is kept in Git LFS, which is not supported: what was checked out"
            " is a pointer, not the file; keep it in git itself, or fetch it when the environment is made",
            retryable=False,
        )


def _is_pointer(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(LFS_POINTER)) == LFS_POINTER
    except OSError:
        return False  # a link that leads nowhere
