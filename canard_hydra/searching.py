"""Sweepers that search (Optuna, Ax, Nevergrad): they minimise unless told otherwise, and here are rewards."""

from collections.abc import Mapping
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf

GROUP = "hydra/sweeper"
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "optuna": {"direction": "maximize", "max_failure_rate": 1.0},
    "nevergrad": {"optim.maximize": True, "optim.max_failure_rate": 1.0},
    "ax": {"ax_config.experiment.minimize": False, "ax_config.early_stop.minimize": False},
}
"""By sweeper. A failed task is a failed trial, and the study goes on; Ax has no such setting."""
# Hydra 1.3 replaces what has the same name; from 1.4 on it wants to be told.
REPLACE: dict[str, Any] = {} if hydra.__version__.startswith("1.3.") else {"replace": True}


def maximise_by_default() -> None:
    """Change the defaults of those that are installed, in this process; what a user says still wins."""
    store = ConfigStore.instance()
    installed = set(store.list(GROUP))
    for name, values in DEFAULTS.items():
        if f"{name}.yaml" in installed:
            found = store.load(f"{GROUP}/{name}.yaml")
            for key, value in values.items():
                OmegaConf.update(found.node, key, value)
            store.store(group=GROUP, name=name, node=found.node, provider=found.provider, **REPLACE)
