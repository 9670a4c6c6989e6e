"""Hydra's errors for the person who typed: which override, what is wrong with it, what to type."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields

import yaml
from hydra.conf import HydraConf
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import CompactHydraException, OverrideParseException
from omegaconf.errors import GrammarParseError, OmegaConfBaseException

from canard.errors import CanardError
from canard_hydra.fields import (
    FIELD_OF_KEY,
    KNOWN_KEYS,
    REWARD_KEY,
    SECTIONS,
    example_of,
    nearest_key,
    unknown_key,
)
from canard_hydra.groups import Groups
from canard_hydra.unreadable import for_shell, is_readable, unreadable

SWEEPERS = {
    "ax": "hydra-ax-sweeper",
    "nevergrad": "hydra-nevergrad-sweeper",
    "optuna": "hydra-optuna-sweeper 'hydra-core<1.4'",
}
"""What brings the sweepers of Hydra's documentation; that of Optuna does not run on Hydra 1.4."""

USERS_MISTAKES = (CanardError, CompactHydraException, OmegaConfBaseException, yaml.YAMLError)

HYDRAS_VALUE_ERRORS = re.compile(
    r"Config group override must be a string|Invalid defaults list in|Only one of --run|The --resolve flag"
    r"|No trials are completed yet"
)
"""Hydra 1.3 raises these as plain ValueError, and Optuna the last."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """The command line, for an error that does not name its override."""

    overrides: Sequence[str] = ()
    multirun: bool = False
    groups: Groups = field(default_factory=Groups.current)


def is_users_mistake(error: Exception, said: Said) -> bool:
    if isinstance(error, USERS_MISTAKES):
        return True
    if isinstance(error, ValueError) and HYDRAS_VALUE_ERRORS.match(str(error)):
        return True
    return isinstance(error, AssertionError | TypeError | ValueError) and _misused_group(said) is not None


def explain(error: Exception, said: Said | None = None) -> str:
    """The error for people; Hydra's own words where they are the best there are."""
    said = said or Said()
    if isinstance(error, OverrideParseException):
        return unreadable(error.override, multirun=said.multirun)
    if isinstance(error, yaml.YAMLError):
        return _unreadable_file(error)
    text = str(error).strip()
    if isinstance(error, CanardError):
        return text
    cause = error.__cause__
    for one in (error, cause):
        if isinstance(one, GrammarParseError):
            return _unreadable_interpolation(one)
    if isinstance(cause, OmegaConfBaseException):
        text = f"{text}\n{cause}".strip()
    told = next((rule(found, said) for pattern, rule in RULES if (found := pattern.search(text))), text)
    return told if isinstance(error, USERS_MISTAKES) or told != text else _misused_group(said) or text


Rule = Callable[[re.Match[str], Said], str]


def _sweep_without_m(found: re.Match[str], _: Said) -> str:
    override = found["ambiguous"] or found["call"]
    key, values = override.split("=", 1)
    told = [
        f"{override}: several values, but no -m; nothing was submitted",
        f"  to sweep over them, one task each:  -m {_bare_in_shell(override)}",
        f"  to mean one list:                   {for_shell(f'{key}=[{values}]')}",
        f"  to mean one text:                   {for_shell(_as_text(key, values))}",
    ]
    return "\n".join(told[:2] if found["call"] else told)


def _as_text(key: str, values: str) -> str:
    return f'{key}="{values}"' if '"' not in values else f"{key}='{values}'"


def _bare_in_shell(override: str) -> str:
    return override if re.fullmatch(r"[\w.,=+/:@%-]+", override) else for_shell(override)


def _no_such_option(found: re.Match[str], said: Said) -> str:
    group, option, file = found["group"], found["option"], found["file"]
    there = said.groups.options(group)
    if not there:
        slash = group.rpartition("/")[2]
        return (
            f"{_place(file)}: its defaults name {group}/{option}, and there is no group {group!r};"
            f" a group of the top level is written with a slash, as in '/{slash}: {option}'"
        )
    if not option:
        return f"{group}: needs one of its options: {', '.join(there)}"
    near = nearest_key(option, there)
    hint = f"did you mean {group}={near}?" if near else f"there are: {', '.join(there)}"
    if group == "hydra/sweeper" and option in SWEEPERS:
        hint = f"pip install {SWEEPERS[option]}"
    where = f"in {group}" if group.startswith("hydra/") else f"in conf/{group}"
    return f"{group}={option}: no such option {where}; {hint}"


def _no_such_file(found: re.Match[str], _: Said) -> str:
    return f"{_place(found['file'])}: its defaults name {found['config']!r}, and there is no such file"


def _defaults_override(found: re.Match[str], said: Said) -> str:
    group = found["what"].partition("@")[0]
    near = nearest_key(group, said.groups.names)
    hint = f"there is no group {group!r}" + (f"; did you mean {near!r}?" if near else "")
    if group in said.groups.names:
        hint = f"it is chosen in another place: say 'override /{group}@_global_.{group}: ...'"
    return f"{_place(found['file'])}: its defaults override {found['what']}; {hint}"


def _bad_defaults(found: re.Match[str], _: Said) -> str:
    return f"{_place(found['file'])}: {found['reason']}"


def _in_file(found: re.Match[str], _: Said) -> str:
    key = f"{found['key']}: " if found["key"] else ""
    return f"{_place(found['file'])}: {key}{found['reason']}"


def _no_such_key(found: re.Match[str], said: Said) -> str:
    """A key that the chosen options do not declare: misspelt, or one that only other options have."""
    key = found["key"]
    if "/" in key or key.partition("@")[0] in said.groups.names:
        return _no_such_group(key, said)
    if key.startswith("hydra."):
        return _no_such_key_of_hydra(key, said)
    if key.startswith(REWARD_KEY) or key in KNOWN_KEYS:
        return _only_some_options(key, said)
    return _meaningless_key(key, said)


def _meaningless_key(key: str, said: Said) -> str:
    value = key.rpartition(".")[0]
    if value in FIELD_OF_KEY:
        return f"unknown key {key!r}: {value} is one value{example_of(value)}"
    if nearest_key(key) or key.partition(".")[0] in SECTIONS:
        return unknown_key(key)
    if near := _in_a_misspelt_section(key, said):
        return f"unknown key {key!r}; did you mean {near!r}?"
    return f"{unknown_key(key)} (one of your own, for others to refer to: +{key}=...)"


def _in_a_misspelt_section(key: str, said: Said) -> str | None:
    section, dot, rest = key.partition(".")
    near = nearest_key(section, (*said.groups.names, "tags"))
    return f"{near}{dot}{rest}" if near and near != section else None


def _no_such_group(key: str, said: Said) -> str:
    group, at, _place_of_it = key.partition("@")
    if group not in said.groups.names:
        return f"{key}: there is no such group; there are: {', '.join(said.groups.names)}"
    if at:
        return f"{key}: no such place for the group {group!r}; did you mean {group}=...?"
    return f"{key}: is a group; choose one of its options: {', '.join(said.groups.options(group))}"


def _only_some_options(key: str, said: Said) -> str:
    """Hydra composes with the option of the defaults first, so the key has to be there too."""
    group = key.partition(".")[0]
    having = said.groups.declaring(group, key)
    value = next((one.partition("=")[2] for one in said.overrides if one.partition("=")[0] == key), "...")
    force = f"to set it whatever the option: {for_shell(f'++{key}={value}')}"
    if having:
        files = ", ".join(f"conf/{group}/{option}.yaml" for option in having)
        return f"{key}: not every option in question has it (there is one in {files}); {force}"
    if not key.startswith(REWARD_KEY):
        return f"{key}: the chosen option of {group} does not have it; {force}"
    near = nearest_key(
        key, [f"{REWARD_KEY}{term}" for term in said.groups.keys_under("task", REWARD_KEY[:-1])]
    )
    hint = f"did you mean {near!r}? Else, " if near else ""
    return f"{key}: no task's file names this reward term; {hint}{force}"


def _no_such_key_of_hydra(key: str, said: Said) -> str:
    first, _, rest = key.removeprefix("hydra.").partition(".")
    known = [field.name for field in fields(HydraConf)]
    if first not in known:
        near = nearest_key(first, known)
        return f"unknown key 'hydra.{first}'" + (f"; did you mean 'hydra.{near}'?" if near else "")
    if first == "sweeper" and rest:
        return (
            f"unknown key {key!r}: the chosen sweeper does not have it;"
            f" another is chosen by hydra/sweeper=... ({', '.join(said.groups.options('hydra/sweeper'))})"
        )
    return f"unknown key {key!r}; to see Hydra's own: canard-hydra --cfg hydra"


def _nothing_to_delete(found: re.Match[str], said: Said) -> str:
    key, equals, value = found["key"].partition("=")
    if key in said.groups.names:
        return f"~{found['key']}: {key} has another option; to leave the group out: ~{key}"
    if key not in KNOWN_KEYS:
        return f"~{key}: {unknown_key(key)}"
    return f"~{key}: it has {'another value' if equals or value else 'no value that could go'}"


def _other_value(found: re.Match[str], _: Said) -> str:
    return f"~{found['key']}={found['value']}: its value is {_as_typed(found['is'])}"


def _as_typed(value: str) -> str:
    return {"None": "null", "True": "true", "False": "false"}.get(value, value)


def _chosen_twice(found: re.Match[str], _: Said) -> str:
    group = found["group"]
    return f"{group}: is chosen twice; to choose another option, without '+': {group}=..."


def _group_without_option(_: re.Match[str], said: Said) -> str:
    return _misused_group(said) or "a group needs the name of one of its options"


def _misused_group(said: Said) -> str | None:
    """Hydra has no error of its own for a group that is given a number."""
    for override in said.overrides:
        if not override.partition("=")[0].strip("+~"):  # which Hydra's grammar lets through
            return unreadable(override)
        if not is_readable(override):
            continue
        parsed = OverridesParser.create().parse_override(override)
        group, value = parsed.key_or_group, parsed.value()
        names = value if isinstance(value, list) else [value]
        if group in said.groups.names and not all(isinstance(one, str) for one in names):
            return f"{override}: {group} needs one of its options: {', '.join(said.groups.options(group))}"
    return None


def _wrong_for_hydra(found: re.Match[str], _: Said) -> str:
    return f"{found['override']}: {found['reason']}"


def _no_primary(found: re.Match[str], _: Said) -> str:
    places = ", ".join(dict.fromkeys(re.findall(r"path=file://(\S+)", found.string)))
    return f"--config-name {found['name']}: there is no {found['name']}.yaml in {places or 'conf/'}"


def too_late(what: str) -> str:
    return (
        f"a file of a swept group sets {what}, which comes too late; say it on the command line, or choose"
        " that file alone"
    )


IN_FILE = r"In '(?P<file>[^']+)': "
RULES: tuple[tuple[re.Pattern[str], Rule], ...] = (
    (
        re.compile(
            r"Ambiguous value for argument '(?P<ambiguous>.+)'$|Sweep parameters '(?P<call>.+)' req", re.M
        ),
        _sweep_without_m,
    ),
    (re.compile(IN_FILE + r"Could not find '(?P<group>[^']+)/(?P<option>[^'/]*)'"), _no_such_option),
    (re.compile(IN_FILE + r"Could not load '(?P<config>[^']+)'"), _no_such_file),
    (
        re.compile(
            IN_FILE + r"(?:Could not override '|Invalid Defaults List override '.*'\.\s+No earlier Group"
            r" Default for ')(?P<what>[^']+)'"
        ),
        _defaults_override,
    ),
    (re.compile(r"Invalid defaults list in '(?P<file>[^']+)', (?P<reason>.+)"), _bad_defaults),
    (
        re.compile(
            IN_FILE + r"\w+ raised while composing config:\n(?P<reason>[^\n]+)"
            r"(?:\n\s+full_key: (?P<key>\S+))?"
        ),
        _in_file,
    ),
    (re.compile(r"Could not override '(?P<key>[^']*)'"), _no_such_key),
    (
        re.compile(
            r"Could not delete from config\. The value of '(?P<key>[^']+)'"
            r" is (?P<is>.+) and not (?P<value>.+)\."
        ),
        _other_value,
    ),
    (re.compile(r"Could not delete (?:from config\. )?'(?P<key>[^']*)'"), _nothing_to_delete),
    (
        re.compile(r"(?P<group>\S+) appears more than once in the final defaults list"),
        _chosen_twice,
    ),
    (re.compile(r"Config group override must be a string"), _group_without_option),
    (
        re.compile(r"Error merging override (?P<override>.+)\n(?P<reason>[^\n]+)"),
        _wrong_for_hydra,
    ),
    (
        re.compile(r"'(?P<what>hydra[./]\w+)' must be (?:configured|selected) before the sweep starts"),
        lambda found, _said: too_late(found["what"]),
    ),
    (
        re.compile(r"No trials are completed yet"),
        lambda _found, _said: "no trial of the sweeper completed; the reason of each is above",
    ),
    (re.compile(r"Cannot find primary config '(?P<name>[^']+)'"), _no_primary),
)
"""What Hydra 1.3 and 1.4 say, and what is told instead; the first that fits."""


def _unreadable_file(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    where = f"{mark.name}:{mark.line + 1}: " if mark is not None else ""
    return f"{where}cannot be read as YAML: {problem}"


def _unreadable_interpolation(error: GrammarParseError) -> str:
    key = f"{error.full_key}: " if error.full_key else ""
    reason = str(error.msg or error).splitlines()[0]
    return f"{key}an interpolation cannot be read ({reason}); a '${{' that is plain text is written \\${{"


def _place(config: str) -> str:
    """`task/mine` -> `conf/task/mine.yaml`"""
    return f"conf/{config}.yaml"
