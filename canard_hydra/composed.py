"""One configuration as Hydra composed it, made plain: resolved, complete, every key with a meaning."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from canard.paths import absolute_if_it_is_a_path
from canard_hydra.conf_dir import CONFIG_NAME
from canard_hydra.errors import ExperimentError, KeyedError, MissingValueError
from canard_hydra.exact_text import TEXT_KEYS, exact_text, text_keys
from canard_hydra.fields import (
    CONTROL_KEYS,
    FIELD_OF_KEY,
    KNOWN_KEYS,
    REWARD_KEY,
    RUN_FIELDS,
    SECTIONS,
    nearest_key,
    training_fields,
)

RAISED = re.compile(r"^\w+ raised while resolving interpolation: ")
"""What OmegaConf puts before a resolver's own message."""

PATH_FIELDS = ("code_url", "checkpoint_url")


@dataclass(frozen=True, kw_only=True)
class Composed:
    """What one member says, before the model has checked it."""

    overrides: tuple[str, ...]
    """That set this member apart; Hydra's own and those that all members share are left out."""
    fields: dict[str, Any]
    """Of TrainingConfig."""
    control: dict[str, Any]
    """name, mode, wait, tags, dry_run_iterations; `platform` when the mode needs one."""
    task_choice: str | None
    """Option of the group `task`."""
    said: tuple[str, ...] = ()
    """All overrides of the command line, as they were typed."""
    config_name: str = CONFIG_NAME


def make_plain(
    config: DictConfig, hydra: DictConfig, *, overrides: Sequence[str], said: Sequence[str]
) -> Composed:
    """Resolve everything, here and now: where the run will be, no resolver of this process exists.

    Args:
        config: the composed configuration without Hydra's own node.
        hydra: Hydra's own node; HydraConfig must be set to it, for `${hydra:...}`.
        overrides: of this member.
        said: all overrides of the command line, as they were typed.

    Raises:
        ExperimentError: a value is ???, an interpolation does not resolve, or a key means nothing.
    """
    needed = needed_keys(config)
    _refuse_lists(config)
    _refuse_missing(config, needed)
    try:
        _refuse_keys_without_meaning(config, hydra)
        return _made(config, hydra, needed, overrides, said)
    except KeyedError as error:
        from canard_hydra.origin import Wording, written  # which reads files again

        name = hydra.job.config_name or CONFIG_NAME
        where = written(error.key, Wording(config_name=name, said=said, swept=overrides))
        raise ExperimentError(f"{error}{where}") from None


def _made(
    config: DictConfig,
    hydra: DictConfig,
    needed: Sequence[str],
    overrides: Sequence[str],
    said: Sequence[str],
) -> Composed:
    values = {key: _resolved(config, key) for key in needed}
    if values.get("mode") == "plan" and "platform" in config:
        values["platform"] = _platform_if_it_is_known(config)
    for key in text_keys(config):
        _put(values, key, exact_text(config, key, said))
    fields = training_fields(values)
    for name in PATH_FIELDS:
        if name in fields:
            fields[name] = absolute_if_it_is_a_path(fields[name])
    return Composed(
        overrides=tuple(overrides),
        fields=fields,
        control={key: values[key] for key in CONTROL_KEYS if key in values},
        task_choice=hydra.runtime.choices.get("task"),
        said=tuple(said),
        config_name=hydra.job.config_name or CONFIG_NAME,
    )


def _platform_if_it_is_known(config: DictConfig) -> Any:
    """A plan looks there for what was trained before, but does without."""
    try:
        return _resolved(config, "platform")
    except ExperimentError:
        return {"kind": "remote"}


def needed_keys(config: DictConfig) -> list[str]:
    """Keys that this mode uses: only a submit asks where the platform is."""
    known = {*RUN_FIELDS, *SECTIONS, *CONTROL_KEYS}
    if OmegaConf.select(config, "mode", default="submit") != "submit":
        known.remove("platform")
    return [str(key) for key in config if key in known]


def _refuse_lists(config: DictConfig) -> None:
    """A file that holds a list would be told by whatever looks into it first."""
    for section in SECTIONS:
        node = config._get_node(section, validate_access=False)
        if isinstance(node, ListConfig):
            raise ExperimentError(
                f"{section}: is a list, but must be a group of keys; see the file that was chosen from"
                f" conf/{section}/"
            )


def _refuse_missing(config: DictConfig, needed: Sequence[str]) -> None:
    try:
        missing = sorted(key for key in OmegaConf.missing_keys(config) if key.partition(".")[0] in needed)
    except OmegaConfBaseException:
        return  # An interpolation that does not resolve; `_resolved` says which.
    if missing:
        raise _missing(missing)


def _missing(keys: Sequence[str]) -> MissingValueError:
    has = "has" if len(keys) == 1 else "have"
    return MissingValueError(
        f"{', '.join(keys)} {has} no value yet (???); say it, as in {keys[0]}=...", keys=tuple(keys)
    )


def _refuse_keys_without_meaning(config: DictConfig, hydra: DictConfig) -> None:
    """A top-level key of the user's own is welcome when something refers to it; else it does nothing."""
    known = {*RUN_FIELDS, *SECTIONS, *CONTROL_KEYS}
    own = [str(key) for key in config if key not in known]
    if not own:
        return
    texts = [text for node in (config, hydra) for text in _strings(_raw(node))]
    for key in own:
        reference = re.compile(rf"\$\{{[^}}]*(?<!\w){re.escape(key)}(?!\w)")
        if not any(reference.search(text) for text in texts):
            near = nearest_key(key, KNOWN_KEYS)
            hint = f"did you mean {near!r}?" if near else "remarks belong under tags, as in +tags.note=..."
            raise KeyedError(f"unknown key {key!r}, and nothing refers to it; {hint}", key=key)


def resolved_at(config: DictConfig, key: str, said: Sequence[str]) -> Any:
    """What `make_plain` makes of this one key, dotted.

    Raises:
        ExperimentError: as `make_plain`.
    """
    if key in TEXT_KEYS:
        value: Any = exact_text(config, key, said)
    else:
        section, _, leaf = key.rpartition(".")
        value = _resolved(OmegaConf.select(config, section) if section else config, leaf)
    field = FIELD_OF_KEY.get(key)
    return absolute_if_it_is_a_path(value) if field in PATH_FIELDS and value is not None else value


def place(
    key: str, value: Any, *, fields: dict[str, Any], control: dict[str, Any], weights: dict[str, Any]
) -> None:
    """Put the value of one key where `make_plain` puts it.

    Args:
        weights: reward weights with those that are null.
    """
    term = key.removeprefix(REWARD_KEY)
    if term != key:
        weights[term] = value
        field, value = "reward_weights", {term: w for term, w in weights.items() if w is not None} or None
    elif key in FIELD_OF_KEY:
        field = FIELD_OF_KEY[key]
    else:
        if key in CONTROL_KEYS:
            control[key] = value
        return  # else it is a recommendation, which other keys look at
    if value is None:
        fields.pop(field, None)
    else:
        fields[field] = value


def _resolved(config: DictConfig, key: str) -> Any:
    try:
        value = config[key]
        if OmegaConf.is_config(value):
            return OmegaConf.to_container(value, resolve=True, throw_on_missing=True)
        return value
    except MissingMandatoryValue as error:
        raise _missing([error.full_key or key]) from error
    except OmegaConfBaseException as error:
        where = error.full_key or key
        reason = RAISED.sub("", str(error.msg or error).splitlines()[0])
        if "recursi" in reason.lower():
            reason = "it refers to itself"
        raise ExperimentError(f"{where}: cannot be resolved: {reason}") from error


def _put(values: dict[str, Any], key: str, text: str | None) -> None:
    section, _, leaf = key.rpartition(".")
    target = values.get(section) if section else values
    if isinstance(target, dict) and leaf in target:
        target[leaf] = text


def _raw(node: DictConfig) -> Any:
    return OmegaConf.to_container(node, resolve=False)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
