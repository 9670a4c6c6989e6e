"""From Hydra's multirun to members: each one composed by Hydra itself, and made plain while it is current."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import CompactHydraException
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from canard_hydra.composed import Composed, make_plain
from canard_hydra.errors import ExperimentError
from canard_hydra.explain import explain
from canard_hydra.launcher_choice import LauncherChoice


@dataclass(frozen=True, kw_only=True)
class Member:
    """One member of a multirun, with what Hydra wants to hear of it at the end."""

    composed: Composed
    overrides: tuple[str, ...]
    config: DictConfig
    hydra: DictConfig


def compose_members(
    loader: ConfigLoader, base: DictConfig, batch: Sequence[Sequence[str]], *, first_index: int
) -> list[Member]:
    """All members of a batch.

    Args:
        base: Hydra's configuration of the multirun itself.
        batch: overrides of each member.

    Raises:
        ExperimentError: naming the member that cannot be composed, or is not complete.
    """
    said = said_overrides(base)
    swept = set(swept_keys(base, batch))
    launcher = LauncherChoice(loader)
    composed = []
    for index, overrides in enumerate(batch, start=first_index):
        apart = [override for override in overrides if override.partition("=")[0] in swept]
        try:
            composed.append(
                _compose(loader, base, overrides, index, apart=apart, said=said, launcher=launcher)
            )
        except (ExperimentError, CompactHydraException) as error:
            raise ExperimentError(f"member {index} ({' '.join(apart)}): {explain(error)}") from error
    return composed


def said_overrides(config: DictConfig) -> list[str]:
    """The overrides as they were typed, and before them those that a file sweeps over."""
    # As text: an override may hold an interpolation, which means nothing in this place.
    params = _as_written(config, "hydra.sweeper.params") or {}
    return [*(f"{key}={value}" for key, value in params.items()), *task_overrides(config)]


def task_overrides(config: DictConfig) -> list[str]:
    """Those of the command line, or of one member, that are not for Hydra itself."""
    return list(_as_written(config, "hydra.overrides.task"))


def swept_keys(base: DictConfig, batch: Sequence[Sequence[str]]) -> list[str]:
    """Override keys of the batch that the user did not give one value, in order."""
    said = {
        one.get_key_element(): one for one in OverridesParser.create().parse_overrides(said_overrides(base))
    }
    keys = dict.fromkeys(override.partition("=")[0] for overrides in batch for override in overrides)
    return [key for key in keys if key not in said or said[key].is_sweep_override()]


def _as_written(config: DictConfig, key: str) -> Any:
    node = OmegaConf.select(config, key)
    return OmegaConf.to_container(node, resolve=False) if OmegaConf.is_config(node) else node


def _compose(
    loader: ConfigLoader,
    base: DictConfig,
    overrides: Sequence[str],
    number: int,
    *,
    apart: Sequence[str],
    said: Sequence[str],
    launcher: LauncherChoice,
) -> Member:
    config = loader.load_sweep_config(base, list(overrides))
    with open_dict(config):
        config.hydra.job.id = str(number)
        config.hydra.job.num = number
    with _current(config) as hydra:
        launcher.refuse_another(config.hydra.runtime.choices)
        with read_write(config), open_dict(config):
            del config["hydra"]
        composed = make_plain(config, hydra, overrides=apart, said=said)
    return Member(composed=composed, overrides=tuple(overrides), config=config, hydra=hydra)


@contextmanager
def _current(config: DictConfig) -> Iterator[DictConfig]:
    """Inside, `${hydra:...}` means this member, as in a job that Hydra runs."""
    instance = HydraConfig.instance()
    before = instance.cfg
    instance.set_config(config)
    try:
        output = Path(str(config.hydra.sweep.dir)) / str(config.hydra.sweep.subdir)
        with read_write(config.hydra.runtime), open_dict(config.hydra.runtime):
            config.hydra.runtime.output_dir = os.path.abspath(output)
        instance.set_config(config)
        yield instance.cfg.hydra  # type: ignore[union-attr]
    finally:
        instance.cfg = before
