"""`hydra/sweeper=canard`: Hydra's own grid with pairs and repeats, always in one batch.

Hydra loads this file in every Hydra program of the environment: nothing heavy here, and no future import.
"""

import sys
from typing import Dict, List, Optional, Sequence

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper, BasicSweeperConf
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.types import Override


class CanardSweeper(BasicSweeper):
    """A multirun is one run, so it is launched whole."""

    def __init__(self, max_batch_size: Optional[int] = None, params: Optional[Dict[str, str]] = None) -> None:
        if max_batch_size is not None:
            sys.stderr.write(
                f"hydra.sweeper.max_batch_size={max_batch_size} is ignored: a multirun is one run, and the"
                " platform decides how many tasks run at once\n"
            )
        super().__init__(max_batch_size=None, params=params)

    def split_arguments(
        self, overrides: List[Override], max_batch_size: Optional[int]
    ) -> List[List[List[str]]]:
        from canard_hydra.multirun import members_overrides

        return [members_overrides(self.config, overrides)]

    def validate_batch_is_legal(self, batch: Sequence[Sequence[str]]) -> None:
        """The launcher composes every member before anything is sent, and says which one is wrong."""


ConfigStore.instance().store(
    group="hydra/sweeper",
    name="canard",
    node=BasicSweeperConf(_target_="hydra_plugins.canard_launcher.sweeper.CanardSweeper"),
    provider="canard",
)
