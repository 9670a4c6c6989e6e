"""A chosen option that asks for another launcher is refused: Hydra would not say that it comes too late."""

import re
from collections.abc import Mapping
from typing import Any

from hydra.core.config_loader import ConfigLoader
from omegaconf import OmegaConf

from canard_hydra.errors import ExperimentError

LAUNCHER = "hydra/launcher"
OVERRIDE = re.compile(rf"override\s+/?{LAUNCHER}")


class LauncherChoice:
    """Looks into each chosen option once, however many members choose it."""

    def __init__(self, loader: ConfigLoader) -> None:
        self._loader = loader
        self._seen: set[str] = set()

    def refuse_another(self, choices: Mapping[str, Any]) -> None:
        """
        Raises:
            ExperimentError: the defaults of a chosen option override the launcher.
        """
        for group, option in choices.items():
            path = f"{group.partition('@')[0]}/{option}"
            if isinstance(option, str) and not group.startswith("hydra/") and path not in self._seen:
                self._look_into(path)
                self._seen.add(path)

    def _look_into(self, path: str) -> None:
        for source in self._loader.get_sources():
            if source.is_config(path):
                config = OmegaConf.to_container(source.load_config(path).config, resolve=False)
                if isinstance(config, dict):
                    _refuse(path, config.get("defaults") or [])
                return


def _refuse(path: str, defaults: list[Any]) -> None:
    for entry in defaults:
        for key, launcher in entry.items() if isinstance(entry, dict) else ():
            if OVERRIDE.fullmatch(str(key)) and launcher != "canard":
                raise ExperimentError(
                    f"conf/{path}.yaml asks for hydra/launcher={launcher}, but only the launcher 'canard'"
                    " submits; leave that line out"
                )
