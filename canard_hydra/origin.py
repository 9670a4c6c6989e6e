"""Where a value was written: the override, or the file and line. For errors only: it reads files again."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from hydra.plugins.config_source import ConfigSource
from hydra.types import RunMode
from omegaconf.errors import OmegaConfBaseException

from canard_hydra.conf_dir import CONFIG_NAME, OWN
from canard_hydra.structure import REFERENCE

MOST_STEPS = 5


@dataclass(frozen=True, kw_only=True)
class Origin:
    place: str
    """`ppo.gamma=${x}`, or `conf/ppo/mine.yaml:3`."""
    text: str
    """The value as it is written there."""
    is_override: bool = False


@dataclass(frozen=True, kw_only=True)
class Wording:
    """How one member was said: what its values can be traced back to."""

    config_name: str = CONFIG_NAME
    said: Sequence[str] = ()
    """All overrides of the command line, as they were typed."""
    swept: Sequence[str] = ()
    """Those of this member, which win."""

    @property
    def overrides(self) -> list[str]:
        keys = {override.partition("=")[0] for override in self.swept}
        return [*(one for one in self.said if one.partition("=")[0] not in keys), *self.swept]


def written(key: str, wording: Wording) -> str:
    """` (conf/ppo/mine.yaml:3)`; nothing where the key was typed just so, and its place is plain."""
    found = origin(key, wording)
    if found is None or (found.is_override and found.place.lstrip("+").startswith(f"{key}=")):
        return ""
    return f" ({found.place})"


def origin(key: str, wording: Wording) -> Origin | None:
    """The place of a dotted key; where its value is that of another key, the place of that one."""
    found = None
    for _ in range(MOST_STEPS):
        here = _override(key, wording.overrides) or _file(key.split("."), wording)
        if here is None:
            break
        found = here
        reference = REFERENCE.fullmatch(here.text)
        if reference is None:
            break
        key = reference["path"]
    return found


def origin_of_sweep(key: str, wording: Wording) -> Origin | None:
    """The place of the values that a file sweeps over."""
    return _file(["hydra", "sweeper", "params", key], wording)


def file_of_option(group: str, option: str) -> str | None:
    """`conf/task/mine.yaml`, as the user would open it; None when it is in no file."""
    path = f"{group}/{option}"
    file = _file_of(path, GlobalHydra.instance().config_loader().get_sources())
    return None if file is None else _shown(file)


def _override(key: str, overrides: Sequence[str]) -> Origin | None:
    for override in reversed(overrides):
        name, equals, text = override.partition("=")
        if equals and name.lstrip("+") == key:
            return Origin(place=override, text=text, is_override=True)
    return None


def _file(key: Sequence[str], wording: Wording) -> Origin | None:
    hydra = GlobalHydra.instance()
    if not hydra.is_initialized():
        return None
    try:
        return next(_files(key, wording), None)
    except (HydraException, OmegaConfBaseException, yaml.YAMLError, OSError, UnicodeError):
        return None


def _files(key: Sequence[str], wording: Wording) -> Iterator[Origin]:
    """What wins first: later in the defaults list."""
    loader = GlobalHydra.instance().config_loader()
    chosen = loader.compute_defaults_list(wording.config_name, wording.overrides, RunMode.RUN).defaults
    for default in reversed(chosen):
        parts = _within(key, default.package or "")
        file = _file_of(default.config_path or "", loader.get_sources())
        if parts and file is not None and (node := _node(yaml.compose(file.read_text()), parts)):
            yield Origin(place=f"{_shown(file)}:{node.start_mark.line + 1}", text=_text(node))


def _within(key: Sequence[str], package: str) -> Sequence[str]:
    """The parts of the key below the package; none when it is elsewhere."""
    above = package.split(".") if package else []
    return key[len(above) :] if list(key[: len(above)]) == above else []


def _file_of(path: str, sources: Sequence[ConfigSource]) -> Path | None:
    source = next((one for one in sources if one.is_config(path)), None)
    if source is None or source.scheme() != "file":
        return None
    return Path(source.path) / f"{path}.yaml"


def _node(root: yaml.Node | None, parts: Sequence[str]) -> yaml.Node | None:
    node = root
    for part in parts:
        if not isinstance(node, yaml.MappingNode):
            return None
        node = next((value for name, value in node.value if name.value == part), None)
    return node


def _text(node: yaml.Node) -> str:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


def _shown(file: Path) -> str:
    """As the user would open it; ours by its place in conf/."""
    here = os.path.relpath(file)
    if not here.startswith(os.pardir):
        return here
    parts = file.parts
    return "/".join(parts[len(parts) - 1 - parts[::-1].index(OWN) :]) if OWN in parts else str(file)
