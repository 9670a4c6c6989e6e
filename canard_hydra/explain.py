"""Hydra's errors for the person who typed: which override, what is wrong with it, what to type."""

import re

from hydra.errors import CompactHydraException, OverrideParseException
from omegaconf.errors import OmegaConfBaseException

from canard.members import REWARD_PREFIX
from canard_hydra.fields import KNOWN_KEYS, nearest_key, unknown_key

NOT_IN_STRUCT = re.compile(r"Could not override '(?P<key>[^']+)'")
NO_SUCH_OPTION = re.compile(r"Could not find '(?P<group>[^']+)/(?P<option>[^'/]+)'")
SWEEP_WITHOUT_M = re.compile(
    r"Ambiguous value for argument '(?P<override>.+)'$|Sweep parameters '(?P<call>.+)' req", re.M
)
NO_SUCH_GROUP = re.compile(r"Could not (?:override|load) '(?P<group>[^'=]+/[^']+)'")


def explain(error: Exception) -> str:
    """The error for people; Hydra's own words where they are the best there are."""
    if isinstance(error, OverrideParseException):
        return _unreadable(error.override, str(error))
    text = str(error).strip()
    if not isinstance(error, CompactHydraException | OmegaConfBaseException):
        return text
    if isinstance(error.__cause__, OmegaConfBaseException):
        text = f"{text}\n{error.__cause__}".strip()
    return _composition(text)


def _composition(text: str) -> str:
    if swept := SWEEP_WITHOUT_M.search(text):
        return _sweep_without_m(swept["override"] or swept["call"])
    if option := NO_SUCH_OPTION.search(text):
        return _no_such_option(option["group"], option["option"], text)
    if key := NOT_IN_STRUCT.search(text):
        return _no_such_key(key["key"])
    return text


def _no_such_key(key: str) -> str:
    """A key that the chosen options do not declare: misspelt, or one that only other options have."""
    if key.startswith(f"task.{REWARD_PREFIX}"):
        return f"{key}: this task's file names no such reward term; to set it all the same: +{key}=..."
    if key in KNOWN_KEYS:
        return f"{key}: no such key in the options that are chosen; to set it all the same: ++{key}=..."
    return f"{unknown_key(key)} (a key of your own: +{key}=...)" if "." not in key else unknown_key(key)


def _no_such_option(group: str, option: str, text: str) -> str:
    options = [
        line.strip() for line in text.splitlines() if line.startswith("\t") and "provider=" not in line
    ]
    near = nearest_key(option, options) if options else None
    hint = f"did you mean {group}={near}?" if near else f"there are: {', '.join(options) or 'none'}"
    return f"{group}={option}: no such option in conf/{group}; {hint}"


def _sweep_without_m(override: str) -> str:
    key, _, values = override.partition("=")
    return (
        f"{override}: several values, but no -m; nothing was submitted\n"
        f"  to sweep over them, one task each:  -m {override}\n"
        f"  to mean one list:                   '{key}=[{values}]'\n"
        f"  to mean one text:                   '{key}=\"{values}\"'"
    )


def _unreadable(override: str, message: str) -> str:
    """Hydra's grammar refused it: say which character, and the quoted form to type."""
    key, equals, value = override.partition("=")
    if not equals:
        return f"{override!r} is no override: it needs the form key=value, as in num_envs=256"
    culprit = _culprit(key, value, message)
    what = culprit or "Hydra cannot read this value"
    return f"{override}: {what}; type it as '{_quoted(key, value)}' (the outer quotes are the shell's)"


def _culprit(key: str, value: str, message: str) -> str | None:
    if key[:1] in "'\"":
        return f"the quote {key[0]} before the key belongs before the value"
    if "Unknown function" in message:
        return "the character '(' means a call unless it is quoted"
    odd = re.search(r"[^\w\s./:+\-\\@?|%*$,=\[\]{}()'\"]|[^\x00-\x7f]", value)
    if odd:
        return f"the character {odd[0]!r} cannot stand unquoted"
    for opening, closing in ("[]", "{}", "()"):
        if value.count(opening) != value.count(closing):
            return f"{opening!r} and {closing!r} do not match"
    return None


def _quoted(key: str, value: str) -> str:
    """The override with its value, or each value of a list of choices, in double quotes."""
    key, value = key.strip("'\""), value.strip("'\"")
    if value[:1] in "[{" and value.count(value[0]) != value.count({"[": "]", "{": "}"}[value[0]]):
        return f"{key}={value}{ {'[': ']', '{': '}'}[value[0]] }"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{key}="{escaped}"'
