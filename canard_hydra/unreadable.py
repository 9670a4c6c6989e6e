"""An override that Hydra's grammar refuses: which character it is, and what to type instead."""

import difflib
import re
import shlex
from collections.abc import Iterator, Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from canard_hydra.exact_text import TEXT_KEYS
from canard_hydra.fields import FIELD_OF_KEY, KNOWN_KEYS, REWARD_KEY, example_of, nearest_key

CLOSING = {"[": "]", "{": "}", "(": ")"}
FUNCTIONS = {
    "range": "range(1,4)",
    "choice": "choice(1,2)",
    "interval": "interval(1e-4,1e-2)",
    "glob": "glob(*)",
    "sort": "sort(3,1,2)",
    "shuffle": "shuffle(1,2,3)",
}
"""Hydra's, each as one would write it."""

CALL = re.compile(r"(?P<name>\w+)\s*\(")
SAID_BY_CALL = re.compile(r"while evaluating '.*': (?P<reason>.+)", re.DOTALL)
UNKNOWN_FUNCTION = re.compile(r"Unknown function '(?P<name>[^']*)'")
UNEXPECTED = re.compile(r"(?:extraneous input|mismatched input|missing EQUAL at) '(?P<text>[^<'][^']*)'")
LEFT_OUT = re.compile(r"^,|,\s*,|,$|\[\s*,|,\s*\]")
"""A comma with no value on one of its sides."""

PART = re.compile(r"(?:\[[^\]]*\]|\{[^}]*\}|\([^)]*\)|[^,])+")
"""Of a sweep's values."""


def unreadable(override: str, *, multirun: bool = False) -> str:
    """One line for an override that does not parse.

    Args:
        multirun: commas at the top level part the values of a sweep.
    """
    key, equals, value = override.partition("=")
    if not equals:
        return _no_override(override)
    fault = _fault(key, value, override)
    bare = key.strip(" '\"")
    meant = _meant(bare)
    if meant not in (None, bare):
        fault = f"{fault}, and there is no key {key!r}"
    typed = next((one for one in _repairs(key, meant, value, multirun) if is_readable(one)), None)
    if typed is None:
        return f"{override}: {fault}{_example(meant or bare, value)}"
    return f"{override}: {fault}; type it as {for_shell(typed)} (the outer quotes are the shell's)"


def _meant(key: str) -> str | None:
    """The key, or the one that it is a misspelling of; one of the user's own has a plus."""
    if not key or key[0] in "+~" or key.partition(".")[0] in ("hydra", "tags"):
        return key or None
    return key if key in KNOWN_KEYS else nearest_key(key) or key


def is_readable(override: str) -> bool:
    """Whether Hydra takes it, and OmegaConf the text that it holds."""
    try:
        parsed = OverridesParser.create().parse_override(override)
        value = parsed.value()
        if isinstance(value, str):
            OmegaConf.create({"value": value})
    except (HydraException, OmegaConfBaseException):
        return False
    return bool(parsed.key_or_group)


def for_shell(override: str) -> str:
    """In quotes that a shell takes away again."""
    if "'" not in override:
        return f"'{override}'"
    if "!" in override:  # means an earlier command to an interactive shell, in double quotes too
        return shlex.quote(override)
    return '"' + re.sub(r'([\\"$`])', r"\\\1", override) + '"'


def _no_override(text: str) -> str:
    key, colon, value = text.partition(":")
    if colon and key in KNOWN_KEYS:
        return f"{text!r} is no override: '=' parts key and value, as in {key}={value.strip()}"
    example = f"{key}=..." if key in KNOWN_KEYS else "num_envs=256"
    return f"{text!r} is no override: it needs the form key=value, as in {example}"


def _example(key: str, value: str) -> str:
    call = CALL.match(value)
    if call and call["name"] in FUNCTIONS:
        return f", as in {key}={FUNCTIONS[call['name']]}"
    return example_of(key.lstrip("+"))


def _fault(key: str, value: str, override: str) -> str:
    message, start = _refusal(override)
    return (
        _fault_of_key(key)
        or _fault_of_call(message)
        or _fault_of_pairs(value)
        or _fault_of_character(override, start, key)
    )


def _fault_of_key(key: str) -> str | None:
    if key[:1] in ("'", '"'):
        return f"the quote {key[0]} before the key belongs before the value"
    if not key.strip("+~ "):
        return "there is no key before '='"
    return "no blank may stand beside the key" if key != key.strip() else None


def _fault_of_call(message: str) -> str | None:
    if unknown := UNKNOWN_FUNCTION.search(message):
        return f"the character '(' makes it a call, and there is no function {unknown['name']!r}"
    said = SAID_BY_CALL.search(message)
    return said["reason"].strip().splitlines()[0] if said else None


def _fault_of_pairs(value: str) -> str | None:
    for opening, closing in CLOSING.items():
        if value.count(opening) != value.count(closing):
            return f"{opening!r} and {closing!r} do not match"
    return "a value is missing beside a comma" if LEFT_OUT.search(value) else None


def _fault_of_character(override: str, start: int | None, key: str) -> str:
    if start is None or start >= len(override):
        return "Hydra cannot read this value"
    where = f"the character {override[start]!r} at position {start + 1}"
    if start < len(key):
        return f"{where} cannot stand in a key"
    if override[start] in "'\"" and override.count(override[start]) % 2:
        return f"{where} opens a text that does not end"
    return f"{where} cannot stand {'there' if _takes_numbers(key) else 'unquoted'}"


def _refusal(override: str) -> tuple[str, int | None]:
    """What Hydra's parser says, and the index of the character that it could not go on from."""
    try:
        OverridesParser.create().parse_override(override)
    except HydraException as error:
        cause, message = error.__cause__, str(error)
        start = getattr(cause, "startIndex", None)  # of its lexer
        if start is None:
            start = getattr(getattr(cause, "offendingToken", None), "start", None)  # of its parser
        if start is None and (unexpected := UNEXPECTED.search(message)):
            start = override.find(unexpected["text"], override.find("="))
        return message, None if start is None or start < 0 else start
    return "", None


def _repairs(key: str, meant: str | None, value: str, multirun: bool) -> Iterator[str]:
    """What may have been meant, likeliest first."""
    value = _without_half_a_pair(key, value.strip())
    if meant is None:
        return
    if key[:1] not in ("'", '"'):
        yield f"{meant}={value.lstrip('= ') or value}"
    if value.startswith("choice(") and "null" in value:  # which Hydra takes in a plain list of values only
        yield f"{meant}={value.removeprefix('choice(').removesuffix(')')}"
    numbers = value and _takes_numbers(meant)
    repaired = _repaired_numbers(value) if numbers else _repaired_text(meant, value, multirun)
    yield from (f"{meant}={one}" for one in repaired)


def _without_half_a_pair(key: str, value: str) -> str:
    """Without a quote whose partner is missing, or stands before the key."""
    if key[:1] in ("'", '"'):
        return value.removesuffix(key[0])
    if value[:1] in ("'", '"') and value.count(value[0]) % 2:
        return value[1:]
    return value


def _takes_numbers(key: str) -> bool:
    bare = key.lstrip("+")
    return (bare in FIELD_OF_KEY and bare not in TEXT_KEYS) or bare.startswith(REWARD_KEY)


def _repaired_numbers(value: str) -> Iterator[str]:
    """Numbers are never quoted, unless they are looked up: close, complete or rename."""
    if "${" in value:
        yield _quoted(value)
    yield value.lstrip(": ")
    commas = re.sub(r",(\s*,)+", ",", value).strip(", ")
    yield re.sub(r"([\[(])\s*,\s*", r"\1", re.sub(r"\s*,\s*([\])])", r"\1", commas))
    if value[0] in CLOSING and value.count(value[0]) > value.count(CLOSING[value[0]]):
        yield value + CLOSING[value[0]]
    if value[0] == "(":
        yield f"[{value.strip('()')}]"
    if call := CALL.match(value):
        yield value + ")"
        for name in difflib.get_close_matches(call["name"], FUNCTIONS, n=1):
            yield name + value[len(call["name"]) :]


def _repaired_text(key: str, value: str, multirun: bool) -> Iterator[str]:
    """In double quotes: each value of a sweep, or the whole."""
    if value[:1] in ("[", "{") and key not in TEXT_KEYS:
        yield value + CLOSING[value[0]]
    if multirun and len(parts := _choices(value)) > 1:
        yield ",".join(_quoted(part) for part in parts)
    yield _quoted(value)
    yield _quoted(value).replace("${", "\\${")


def _choices(value: str) -> Sequence[str]:
    """Parts at the commas that stand in no brackets; quotes round a part are its own."""
    parts = [found.strip() for found in PART.findall(value)]
    bare = [
        part[1:-1] if len(part) > 1 and part[0] == part[-1] and part[0] in "'\"" else part for part in parts
    ]
    return bare if all(bare) else []


def _quoted(text: str) -> str:
    """Only a quote needs a backslash, and the backslashes that stand before one."""
    escaped = re.sub(r'(\\*)("|$)', lambda found: found[1] * 2 + found[2].replace('"', '\\"'), text)
    return f'"{escaped}"'
