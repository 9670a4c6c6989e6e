"""Members that differ in plain values only: composed by Hydra once, the others set apart without it.

Whatever could make the result another than Hydra's - a key that the configuration does not have as a plain
untyped value, an interpolation that might look at a swept value and has no place among the fields - makes
`Structure.of` say no, and then Hydra composes each of them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import AnyNode, DictConfig, ListConfig, OmegaConf, open_dict, read_write

from canard_hydra.composed import PATH_FIELDS, Composed, needed_keys, place, resolved_at
from canard_hydra.exact_text import TEXT_KEYS
from canard_hydra.fields import FIELD_OF_KEY
from canard_hydra.leaves import settable

REFERENCE = re.compile(r"\$\{(?:oc\.select:)?(?P<path>[A-Za-z_]\w*(?:\.\w+)*)(?:,[^${}]*)?\}")
"""An interpolation that looks at one absolute path, and at nothing else."""
ENVIRONMENT = re.compile(r"\$\{oc\.env:[^${}]*\}")
OF_THE_JOB = re.compile(r"\$\{hydra:job\.(?:num|id)\}")
LOOKED_AT = {*TEXT_KEYS, *(key for key, field in FIELD_OF_KEY.items() if field in PATH_FIELDS)}
"""Keys whose value is not taken as it is."""


@dataclass(frozen=True, kw_only=True)
class Structure:
    """One member as Hydra composed it, and how others are made of it."""

    composed: Composed
    config: DictConfig
    """Without Hydra's node; its leaves are set anew for each member where something is looked up in it."""
    hydra: DictConfig
    """What HydraConfig holds while a member is current."""
    master: DictConfig
    leaves: tuple[str, ...]
    following: tuple[str, ...]
    """Keys whose values have to be looked up in the configuration of each member."""
    weights: dict[str, Any]
    """Reward weights with those that are null, in their order."""

    @classmethod
    def of(
        cls,
        composed: Composed,
        config: DictConfig,
        hydra: DictConfig,
        master: DictConfig,
        leaves: Sequence[str],
    ) -> "Structure | None":
        """None where it cannot be told that values are all that differs."""
        if len(set(leaves)) != len(leaves) or any(key in hydra.hydra.runtime.choices for key in leaves):
            return None
        if not all(_is_plain_leaf(config, key) for key in leaves):
            return None
        following = _following(config, leaves)
        if following is None:
            return None
        weights = OmegaConf.select(config, "task.reward_weights")
        return cls(
            composed=composed,
            config=config,
            hydra=hydra,
            master=master,
            leaves=tuple(leaves),
            following=(*following, *(key for key in leaves if key in LOOKED_AT)),
            weights=OmegaConf.to_container(weights, resolve=True) if weights is not None else {},  # type: ignore[arg-type]
        )

    def member(
        self, values: Sequence[Any], *, number: int, overrides: Sequence[str], said: Sequence[str]
    ) -> Composed:
        """The member with these values of the leaves.

        Raises:
            ExperimentError: one of them, or one that follows from them, means nothing.
        """
        fields, control = dict(self.composed.fields), dict(self.composed.control)
        weights = dict(self.weights)
        for key, value in zip(self.leaves, values, strict=True):
            place(key, value, fields=fields, control=control, weights=weights)
        if self.following:
            self._make_current(values, number)
            for key in self.following:
                value = resolved_at(self.config, key, said)
                place(key, value, fields=fields, control=control, weights=weights)
        return replace(self.composed, overrides=tuple(overrides), fields=fields, control=control)

    def _make_current(self, values: Sequence[Any], number: int) -> None:
        for key, value in zip(self.leaves, values, strict=True):
            section, _, leaf = key.rpartition(".")
            parent = OmegaConf.select(self.config, section) if section else self.config
            parent[leaf] = value
        # What a resolver remembers is remembered for one member.
        OmegaConf.copy_cache(from_config=self.master, to_config=self.config)
        job = self.hydra.hydra.job
        with read_write(job), open_dict(job):
            job.num = number
            job.id = str(number)
        HydraConfig.instance().cfg = self.hydra  # type: ignore[assignment]


def _is_plain_leaf(config: DictConfig, key: str) -> bool:
    """Whether setting the key does nothing but set it: an untyped value in an open, writable mapping."""
    section, _, leaf = key.rpartition(".")
    parent = OmegaConf.select(config, section) if section else config
    if not isinstance(parent, DictConfig) or OmegaConf.is_readonly(parent):
        return False
    if parent._metadata.object_type not in (dict, None) or parent._metadata.element_type is not Any:
        return False
    node = parent._get_node(leaf)
    if isinstance(node, ListConfig):
        return node._metadata.element_type is Any and not OmegaConf.is_readonly(node)
    return type(node) is AnyNode


def _following(config: DictConfig, leaves: Sequence[str]) -> list[str] | None:
    """Keys whose interpolations look, or may look, at a leaf; None if one of them has no place of its own."""
    texts = dict(_interpolations(OmegaConf.to_container(config, resolve=False), ""))
    tainted, before = set(leaves), -1
    while before != len(tainted):
        before = len(tainted)
        tainted |= {key for key, text in texts.items() if _may_look_at(text, tainted)}
    needed = needed_keys(config)
    following = [key for key in texts if key in tainted and key.partition(".")[0] in needed]
    placed = all(
        settable(key) and ("hydra" not in texts[key] or _only_the_job(texts[key])) for key in following
    )
    return following if placed and not set(following) & set(leaves) else None


def _only_the_job(text: str) -> bool:
    return "hydra" not in OF_THE_JOB.sub("", text)


def _may_look_at(text: str, keys: set[str]) -> bool:
    rest = ENVIRONMENT.sub("", REFERENCE.sub("", text))
    if "${" in rest:
        return True
    paths = [match["path"] for match in REFERENCE.finditer(text)]
    return any(
        path == key or path.startswith(f"{key}.") or key.startswith(f"{path}.")
        for path in paths
        for key in keys
    )


def _interpolations(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """Dotted keys of all values with an interpolation; a list counts as one value."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _interpolations(item, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        if "${" in (text := repr(value)):
            yield key, text
    elif isinstance(value, str) and "${" in value:
        yield key, value
