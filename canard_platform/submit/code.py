"""Where user code may come from, checked before a run exists.

A remote repository is only looked at by its URL here; whether it answers shows at the first checkout, or
before when results are to be reused (see `canard_platform.submit.remotes`). A repository on this machine is
opened, and its ref pinned to a commit.
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from canard.errors import InvalidRequestError

GIT_TIMEOUT_S = 30
_SCP_LIKE = re.compile(r"git@[A-Za-z0-9][A-Za-z0-9.-]*:(?!/{0,1}-)[^\s:]+")
_REF = re.compile(r"(?!-)[^\x00-\x20\x7f~^:?*\[\\]+")
ACCEPTED = (
    "write https://host/owner/repo, ssh://git@host/owner/repo, git@host:owner/repo,"
    " or the absolute path of a repository on this machine"
)


@dataclass(frozen=True, kw_only=True)
class Code:
    url: str
    ref: str | None


def resolve_code(code: Code, *, local_paths: bool) -> str | None:
    """The pinned commit of a local repository; None for a remote one, which the first checkout pins.

    Raises:
        InvalidRequestError: naming code_url or code_ref.
    """
    if code.ref is not None and (not _REF.fullmatch(code.ref) or ".." in code.ref):
        raise InvalidRequestError(
            f"code_ref: {code.ref[:100]!r} is no branch, tag or commit", field="code_ref"
        )
    if code.url.startswith("/"):
        return _pin(code, local_paths=local_paths)
    if not _is_remote(code.url):
        raise InvalidRequestError(
            f"code_url: {code.url[:200]!r} is no address of a git repository", field="code_url", hint=ACCEPTED
        )
    return None


def _is_remote(url: str) -> bool:
    if any(character.isspace() or not character.isprintable() for character in url):
        return False
    if _SCP_LIKE.fullmatch(url):
        return True
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    if parts.scheme not in {"https", "ssh"} or not parts.hostname or parts.hostname.startswith("-"):
        return False
    if parts.password is not None:
        raise InvalidRequestError(
            "code_url: must not hold a password or token, since it is shown and logged", field="code_url"
        )
    return not (parts.username or "").startswith("-") and parts.path.strip("/") != ""


def _pin(code: Code, *, local_paths: bool) -> str:
    if not local_paths:
        raise InvalidRequestError(
            "code_url: a path works only when the platform runs on the same machine",
            field="code_url",
            hint="push the repository and give its https or ssh URL",
        )
    if not Path(code.url).is_dir():
        raise InvalidRequestError(
            f"code_url: {code.url} is no folder on the platform's machine", field="code_url"
        )
    root = _git(code.url, "rev-parse", "--git-dir")
    if root.returncode != 0:
        raise InvalidRequestError(
            f"code_url: {code.url} is no git repository ({_first_line(root.stderr)})",
            field="code_url",
            hint="git init, commit, and submit again",
        )
    return _commit(code)


def _commit(code: Code) -> str:
    # The remote-tracking form comes second: `code_ref=main` means this repository's own main first.
    names = ("HEAD",) if code.ref is None else (code.ref, f"refs/remotes/origin/{code.ref}")
    for name in names:
        answer = _git(code.url, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if answer.returncode == 0:
            return answer.stdout.strip()
    if code.ref is None:
        raise InvalidRequestError(
            f"code_url: {code.url} has no commit yet; commit the code first", field="code_url"
        )
    known = _git(code.url, "for-each-ref", "--count=10", "--format=%(refname:short)").stdout.split()
    raise InvalidRequestError(
        f"code_ref: {code.url} has no {code.ref!r}",
        field="code_ref",
        hint=f"there is: {', '.join(known)}" if known else "it has no branches or tags",
    )


def _git(folder: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["git", "-C", folder, *arguments],
            capture_output=True,
            text=True,
            timeout=GIT_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise InvalidRequestError(
            "code_url: git is not installed on the platform's machine", field="code_url"
        ) from None
    except subprocess.TimeoutExpired:
        raise InvalidRequestError(
            f"code_url: git did not answer within {GIT_TIMEOUT_S} s for {folder}", field="code_url"
        ) from None


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "git says nothing"
