"""Where the configuration files are: the user's own first, then those that came with the program."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hydra.core.config_search_path import ConfigSearchPath
    from hydra.plugins.search_path_plugin import SearchPathPlugin

CONFIG_NAME = "config"
OWN = "conf"
PROVIDER = "canard"


def conf_dir() -> Path:
    """The folder that came with the program: within the package in a wheel, the repository's otherwise."""
    package = Path(__file__).parent
    packaged = package / "conf"
    return packaged if packaged.is_dir() else package.parent / "conf"


def own_conf_dir(cwd: Path) -> Path | None:
    """The user's `./conf`, if there is one and it is not ours."""
    own = cwd / OWN
    return own.resolve() if own.is_dir() and own.resolve() != conf_dir().resolve() else None


def primary_dir(own: Path | None) -> Path:
    """The folder with the primary config.yaml: the user's when it has one."""
    if own is not None and (own / f"{CONFIG_NAME}.yaml").is_file():
        return own
    return conf_dir()


class ConfFolders:
    """The user's folder before the primary one, ours behind it; remembers where Hydra looked."""

    def __init__(self, own: Path | None) -> None:
        self.own = own
        self.search_path: ConfigSearchPath | None = None

    def plugin(self) -> "type[SearchPathPlugin]":
        """For this process only."""
        from hydra.plugins.search_path_plugin import SearchPathPlugin  # here, so that a name needs no Hydra

        folders = self

        class ConfFoldersPlugin(SearchPathPlugin):
            def manipulate_search_path(self, search_path: "ConfigSearchPath") -> None:
                folders._extend(search_path)

        return ConfFoldersPlugin

    def _extend(self, search_path: "ConfigSearchPath") -> None:
        known = {entry.path for entry in search_path.get_path()}
        main = primary_dir(self.own)
        if self.own is not None and self.own != main and f"file://{self.own}" not in known:
            search_path.prepend(provider=f"{PROVIDER}-own", path=f"file://{self.own}", anchor="main")
        if main != conf_dir() or not known & {str(conf_dir()), f"file://{conf_dir()}"}:
            search_path.append(provider=PROVIDER, path=f"file://{conf_dir()}")
        self.search_path = search_path
