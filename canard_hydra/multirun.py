"""From Hydra's multirun to members, made plain: one of each structure by Hydra, the others after it."""

import os
import random
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import CompactHydraException
from omegaconf import DictConfig, OmegaConf, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException

from canard_hydra.composed import Composed, make_plain
from canard_hydra.errors import ExperimentError
from canard_hydra.explain import Said, explain, too_late
from canard_hydra.grid import expand
from canard_hydra.launcher_choice import LauncherChoice
from canard_hydra.leaves import LeafReader
from canard_hydra.structure import Structure

SAMPLE = 2


@dataclass(frozen=True, kw_only=True)
class Member:
    """One member of a multirun, with what Hydra may want to hear of it at the end."""

    composed: Composed
    overrides: tuple[str, ...]
    config: DictConfig | None = None
    """As Hydra composed it; None where values were put into another's."""
    hydra: DictConfig | None = None


def members_overrides(base: DictConfig | None, overrides: Sequence[Override]) -> list[list[str]]:
    """The overrides of every member of a multirun: a grid, with `zip` and `repeats` of its configuration.

    Raises:
        ExperimentError: they ask for what cannot be.
    """
    groups = zipped_keys(base)
    repeats = _as_written(base, "repeats")
    if repeats in (None, 1):
        return expand(overrides, zipped=groups)
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise ExperimentError(f"repeats: must be a whole number, 1 or more, not {repeats!r}")
    seed = _as_written(base, "seed")
    return expand(overrides, zipped=groups, repeats=repeats, seed=seed if isinstance(seed, int) else 0)


def compose_members(
    loader: ConfigLoader, base: DictConfig, batch: Sequence[Sequence[str]], *, first_index: int, whole: bool
) -> list[Member]:
    """All members of a batch.

    Args:
        base: Hydra's configuration of the multirun itself.
        batch: overrides of each member.
        whole: keep the configuration of each, which takes Hydra a tenth of a second per member.

    Raises:
        ExperimentError: naming the member that cannot be composed, or is not complete.
    """
    composer = MemberComposer(loader, base, batch)
    if whole:
        return [composer.by_hydra(overrides, n) for n, overrides in enumerate(batch, start=first_index)]
    members = [composer.member(overrides, n) for n, overrides in enumerate(batch, start=first_index)]
    sample = composer.first_difference(members, first_index=first_index)
    if sample is None:
        return members
    warnings.warn(
        f"member {sample} came out otherwise than Hydra composes it, so Hydra composes them all; please"
        " report this with the command",
        stacklevel=2,
    )
    return [composer.by_hydra(overrides, n) for n, overrides in enumerate(batch, start=first_index)]


def said_overrides(config: DictConfig) -> list[str]:
    """The overrides as they were typed, and before them those that a file sweeps over."""
    # As text: an override may hold an interpolation, which means nothing in this place.
    params = _as_written(config, "hydra.sweeper.params") or {}
    return [*(f"{key}={value}" for key, value in params.items()), *task_overrides(config)]


def task_overrides(config: DictConfig) -> list[str]:
    """Those of the command line, or of one member, that are not for Hydra itself."""
    return list(_as_written(config, "hydra.overrides.task"))


def swept_keys(base: DictConfig, batch: Sequence[Sequence[str]]) -> list[str]:
    """Override keys of the batch that the user did not give one value, or that differ, in order."""
    said = {
        one.get_key_element(): one for one in OverridesParser.create().parse_overrides(said_overrides(base))
    }
    texts: dict[str, dict[str, None]] = {}
    for override in dict.fromkeys(override for overrides in batch for override in overrides):
        texts.setdefault(override.partition("=")[0], {})[override] = None
    return [
        key
        for key, different in texts.items()
        if len(different) > 1 or key not in said or said[key].is_sweep_override()
    ]


def zipped_keys(base: DictConfig | None) -> list[list[str]]:
    """Groups of keys that move together; a single group may be written without its outer brackets."""
    groups = _as_written(base, "zip") or []
    return [groups] if groups and not isinstance(groups[0], list) else groups


def _as_written(config: DictConfig | None, key: str) -> Any:
    node = OmegaConf.select(config, key) if config is not None else None
    return OmegaConf.to_container(node, resolve=False) if OmegaConf.is_config(node) else node


class MemberComposer:
    """Composes one member after the other, by Hydra only what it has not seen the like of."""

    def __init__(self, loader: ConfigLoader, base: DictConfig, batch: Sequence[Sequence[str]]) -> None:
        self._loader = loader
        self._base = base
        self._said = said_overrides(base)
        self._swept = set(swept_keys(base, batch))
        self._launcher = LauncherChoice(loader)
        self._reader = LeafReader()
        self._structures: dict[tuple[str, ...], Structure | None] = {}

    def member(self, overrides: Sequence[str], number: int) -> Member:
        """
        Raises:
            ExperimentError: it cannot be composed, or is not complete.
        """
        apart = self._apart(overrides)
        leaves = {text: leaf for text in apart if (leaf := self._reader.read(text)) is not None}
        signature = tuple(leaves[text].key if text in leaves else text for text in apart)
        if signature not in self._structures:
            return self._first_of(signature, overrides, number, [leaf.key for leaf in leaves.values()])
        structure = self._structures[signature]
        if structure is None:
            return self.by_hydra(overrides, number)
        values = [leaf.value for leaf in leaves.values()]
        instance = HydraConfig.instance()
        before = instance.cfg
        try:
            composed = structure.member(values, number=number, overrides=apart, said=self._said)
        except (ExperimentError, OmegaConfBaseException):
            return self.by_hydra(overrides, number)  # which says it as it always does
        finally:
            instance.cfg = before
        return Member(composed=composed, overrides=tuple(overrides))

    def by_hydra(self, overrides: Sequence[str], number: int) -> Member:
        """The same, composed by Hydra itself."""
        return self._composed(overrides, number)[0]

    def first_difference(self, members: Sequence[Member], *, first_index: int) -> int | None:
        """Number of one of a few members that Hydra would have composed otherwise."""
        made = [n for n, member in enumerate(members) if member.config is None]
        chosen = {*random.Random(len(made)).sample(made, min(SAMPLE, len(made))), *made[-1:]}  # noqa: S311
        for number in sorted(chosen):
            ours = members[number].composed
            theirs = self.by_hydra(members[number].overrides, first_index + number).composed
            if _in_words(ours) != _in_words(theirs):
                return first_index + number
        return None

    def _apart(self, overrides: Sequence[str]) -> list[str]:
        """Those that set the member apart."""
        return [override for override in overrides if override.partition("=")[0] in self._swept]

    def _first_of(
        self, signature: tuple[str, ...], overrides: Sequence[str], number: int, leaves: Sequence[str]
    ) -> Member:
        member, current = self._composed(overrides, number)
        chosen = current.hydra.runtime.choices
        # Hydra loads the file of a chosen option before it sets any value, so a choice undoes none.
        names = [text.partition("=")[0].lstrip("+") for text in overrides]
        others = [name.lstrip("~") for name in names if name not in chosen]
        alone = all(sum(_overlap(key, other) for other in others) == 1 for key in leaves)
        assert member.config is not None  # noqa: S101 - Hydra composed it
        self._structures[signature] = (
            Structure.of(member.composed, member.config, current, self._base, leaves) if alone else None
        )
        return member

    def _composed(self, overrides: Sequence[str], number: int) -> tuple[Member, DictConfig]:
        try:
            return self._made(overrides, number)
        except (ExperimentError, CompactHydraException, OmegaConfBaseException, ValueError) as error:
            # ValueError: Hydra's own for a group that is set to null, among others.
            apart = " ".join(self._apart(overrides))
            raise ExperimentError(
                f"member {number} ({apart}): {explain(error, Said(overrides=overrides))}"
            ) from error

    def _made(self, overrides: Sequence[str], number: int) -> tuple[Member, DictConfig]:
        config = self._loader.load_sweep_config(self._base, list(overrides))
        self._refuse_another_sweep(config)
        with open_dict(config):
            config.hydra.job.id = str(number)
            config.hydra.job.num = number
        with _current(config) as current:
            hydra = current.hydra
            self._launcher.refuse_another(hydra.runtime.choices)
            with read_write(config), open_dict(config):
                del config["hydra"]
            composed = make_plain(config, hydra, overrides=self._apart(overrides), said=self._said)
        return Member(composed=composed, overrides=tuple(overrides), config=config, hydra=hydra), current

    def _refuse_another_sweep(self, config: DictConfig) -> None:
        """Hydra 1.3 would leave out what a file of a swept group sweeps over itself; 1.4 refuses it."""
        params = _as_written(config, "hydra.sweeper.params")
        if params != _as_written(self._base, "hydra.sweeper.params"):
            raise ExperimentError(too_late(f"hydra.sweeper ({', '.join(params or ())})"))


def _overlap(key: str, other: str) -> bool:
    return key == other or key.startswith(f"{other}.") or other.startswith(f"{key}.")


def _in_words(composed: Composed) -> str:
    """Values with their types: 1, 1.0 and True are equal otherwise."""
    return repr([sorted(part.items()) for part in (composed.fields, composed.control)]) + repr(
        (composed.overrides, composed.task_choice)
    )


@contextmanager
def _current(config: DictConfig) -> Iterator[DictConfig]:
    """Inside, `${hydra:...}` means this member, as in a job that Hydra runs; what HydraConfig then holds."""
    instance = HydraConfig.instance()
    before = instance.cfg
    instance.set_config(config)
    try:
        output = Path(str(config.hydra.sweep.dir)) / str(config.hydra.sweep.subdir)
        with read_write(config.hydra.runtime), open_dict(config.hydra.runtime):
            config.hydra.runtime.output_dir = os.path.abspath(output)
        instance.set_config(config)
        yield instance.cfg  # type: ignore[misc]
    finally:
        instance.cfg = before
