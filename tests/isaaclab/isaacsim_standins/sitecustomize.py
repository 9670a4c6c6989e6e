"""Stands in for Isaac Sim, so that the unmodified source of Isaac Lab 2.3.2 can be imported without it.

`omni`, `pxr`, `carb`, `usdrt`, `hid` and `isaacsim` become modules in which every name exists and does
nothing. Only `SimulationApp` behaves: it notes what happened in the file named by STANDIN_LOG, and its
close() ends the process with code 0, as the real one does. The physics (simulation context, scene,
articulation) is the pure-torch cart of `fake_physics`. Everything else is Isaac Lab's own code. Python
imports a module of this name by itself when its folder is on PYTHONPATH.
"""

import builtins
import importlib.abc
import importlib.machinery
import os
import sys
import types

ROOTS = {"omni", "pxr", "carb", "usdrt", "hid", "isaacsim"}


def note(event: str) -> None:
    """Append one line to the log that a test reads."""
    if path := os.environ.get("STANDIN_LOG"):
        with open(path, "a", encoding="utf-8") as log:
            log.write(event + "\n")


class Anything(type):
    """A class of which every attribute, call, item and union is another such class."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = Anything(name, (), {})
        setattr(cls, name, value)
        return value

    def __call__(cls, *args, **kwargs):
        return Anything(cls.__name__, (), {})

    def __getitem__(cls, key):
        return Anything("item", (), {})

    def __iter__(cls):
        return iter(())

    def __int__(cls):
        return 0

    def __or__(cls, other):
        return cls

    __ror__ = __or__


class SimulationApp:
    """Notes its launch; close() ends the process at once, whatever the program was about to return."""

    def __init__(self, launch_config=None, experience=""):
        already = sorted(
            name for name in ("isaaclab.envs", "isaaclab_tasks", "isaaclab_rl") if name in sys.modules
        )
        note(
            f"app_launched argv={sys.argv[1:]} headless={launch_config['headless']} imported_before={already}"
        )
        builtins.ISAAC_LAUNCHED_FROM_TERMINAL = False
        note(f"app_cameras={'rendering' in experience} device={launch_config.get('physics_gpu', 'cpu')}")

    def close(self, *args, **kwargs):
        note("app_closed")
        os._exit(0)

    def is_running(self):
        return True

    def update(self):
        pass


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module below the stood-in roots, and puts the fake physics where Isaac Lab imports it."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ROOTS:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda name: self._attribute(module, name)
        return module

    def exec_module(self, module):
        if module.__name__ == "isaacsim":
            os.environ.setdefault("EXP_PATH", os.path.dirname(__file__))
            module.__file__ = __file__
            module.SimulationApp = SimulationApp
        if module.__name__ == "isaacsim.core.version":
            module.get_version = lambda: ("5.1.0", "", "5", "1", "0", "", "", "")

    @staticmethod
    def _attribute(module, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = Anything(name, (), {})
        setattr(module, name, value)
        return value


if os.environ.get("STANDIN_LOG"):
    sys.meta_path.insert(0, Finder())
