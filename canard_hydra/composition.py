"""Experiments without a command line: composed as by `canard-hydra -m`, and performed by nobody."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hydra import initialize_config_dir
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.singleton import Singleton
from hydra.types import RunMode
from omegaconf import DictConfig

from canard_hydra.app import VERSION_BASE
from canard_hydra.composed import Composed
from canard_hydra.conf_dir import CONFIG_NAME, ConfFolders, conf_dir, primary_dir
from canard_hydra.errors import ExperimentError
from canard_hydra.experiment import Experiment, make_experiment
from canard_hydra.explain import Said, explain, is_users_mistake
from canard_hydra.groups import Groups
from canard_hydra.multirun import MemberComposer, members_overrides, said_overrides, swept_keys, zipped_keys

MULTIRUN = "hydra.mode=MULTIRUN"


@dataclass(frozen=True, kw_only=True)
class Composition:
    """What one command line says."""

    base: DictConfig
    """Hydra's configuration of the multirun itself."""
    batch: Sequence[Sequence[str]]
    """Overrides of each member; one member without any when nothing is swept."""
    members: Sequence[Composed]

    def experiment(self) -> Experiment:
        """
        Raises:
            ExperimentError: a member is wrong.
        """
        keys = swept_keys(self.base, self.batch)
        return make_experiment(self.members, swept_keys=keys, zipped=zipped_keys(self.base))


@dataclass(frozen=True, kw_only=True)
class Compositions:
    """Of one folder with configuration files, before ours."""

    loader: ConfigLoader
    groups: Groups

    def compose(self, overrides: Sequence[str]) -> Composition:
        """
        Raises:
            ExperimentError: it cannot be composed, or a member is not complete.
        """
        try:
            base = self.base(overrides)
            batch = members_overrides(base, OverridesParser.create().parse_overrides(said_overrides(base)))
            composer = MemberComposer(self.loader, base, batch)
            members = [composer.member(one, number).composed for number, one in enumerate(batch)]
        except ExperimentError:
            raise
        except Exception as error:
            said = Said(overrides=overrides, multirun=True, groups=self.groups)
            if not is_users_mistake(error, said):
                raise
            raise ExperimentError(explain(error, said)) from error
        return Composition(base=base, batch=batch, members=members)

    def base(self, overrides: Sequence[str]) -> DictConfig:
        """The configuration before anything swept is set, with Hydra's own node."""
        # Hydra 1.4 takes no mode from a file that is chosen.
        base = self.loader.load_configuration(CONFIG_NAME, [*overrides, MULTIRUN], run_mode=RunMode.MULTIRUN)
        HydraConfig.instance().set_config(base)
        return base


@contextmanager
def compositions(conf: Path) -> Iterator[Compositions]:
    """Of this folder, and of ours behind it; Hydra's global state is the same again afterwards."""
    own = conf.resolve() if conf.resolve() != conf_dir().resolve() else None
    folders = ConfFolders(own)
    before = Singleton.get_state()
    try:
        Plugins.instance().register(folders.plugin())
        with initialize_config_dir(str(primary_dir(own)), job_name="canard_hydra", **VERSION_BASE):
            loader = GlobalHydra.instance().config_loader()
            yield Compositions(loader=loader, groups=Groups.on(folders.search_path))
    finally:
        Singleton.set_state(before)
