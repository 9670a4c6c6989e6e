"""The config groups that Hydra can see, their options, and the keys that an option's file declares."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hydra._internal.config_repository import ConfigRepository
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

PACKAGE_OF_ALL = "_global_"


@dataclass(frozen=True)
class Groups:
    """For errors: nothing here raises, and what cannot be read is not there."""

    repository: ConfigRepository | None = field(default=None)

    @classmethod
    def on(cls, search_path: ConfigSearchPath | None) -> "Groups":
        return cls(ConfigRepository(search_path)) if search_path is not None else cls()

    @classmethod
    def current(cls) -> "Groups":
        """Those of the Hydra program that is running."""
        hydra = GlobalHydra.instance()
        return cls.on(hydra.config_loader().get_search_path()) if hydra.is_initialized() else cls()

    @property
    def names(self) -> Sequence[str]:
        """Of the top level."""
        return self._list("", ObjectType.GROUP)

    def options(self, group: str) -> Sequence[str]:
        return self._list(group, ObjectType.CONFIG)

    def folders(self, group: str) -> Sequence[str]:
        """Groups within a group."""
        return self._list(group, ObjectType.GROUP)

    def declaring(self, group: str, key: str) -> Sequence[str]:
        """Options whose own file has the key, such as `task.reward_weights.alive`."""
        parts = key.split(".")[1:]
        return [option for option in self.options(group) if _has(self._load(f"{group}/{option}"), parts)]

    def keys_under(self, group: str, key: str) -> Sequence[str]:
        """The keys of a mapping, in the files of all options."""
        found: dict[str, None] = {}
        for option in self.options(group):
            node = self._load(f"{group}/{option}")
            for part in key.split(".")[1:]:
                node = node._get_node(part) if isinstance(node, DictConfig) else None  # type: ignore[assignment]
            found.update((str(one), None) for one in (node if isinstance(node, DictConfig) else ()))
        return list(found)

    def _list(self, group: str, kind: ObjectType) -> Sequence[str]:
        if self.repository is None:
            return []
        return self.repository.get_group_options(group, results_filter=kind)

    def _load(self, path: str) -> DictConfig | None:
        try:
            loaded = self.repository.load_config(path) if self.repository is not None else None
        except (HydraException, OmegaConfBaseException, YAMLError, OSError, ValueError):
            return None
        return loaded.config if loaded is not None and isinstance(loaded.config, DictConfig) else None


def _has(config: DictConfig | None, parts: Sequence[str]) -> bool:
    node = config
    for part in parts:
        if not isinstance(node, DictConfig) or part not in node:
            return False
        node = node._get_node(part)  # type: ignore[assignment]
    return True
