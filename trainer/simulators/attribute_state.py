"""What a Gymnasium environment remembers in attributes of its own and of its wrappers, as plain values.

Only what changed since the environment was made is state; the rest are its settings, and a resumed training
may have others.
"""

import random
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import torch

DEEPEST = 6
SIMULATOR_PACKAGES = ("mujoco", "pygame", "gymnasium.envs.mujoco.mujoco_rendering")
"""Their objects are pictures, or physics that somebody else saves."""

NO_STATE = (
    gymnasium.Space,
    gymnasium.Env,
    gymnasium.envs.registration.EnvSpec,
    types.ModuleType,
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    type,
)
PLAIN = (bool, int, float, str, type(None))

Coded = list[Any]
"""[kind, content]; torch loads it with weights_only."""


class UnknownStateError(Exception):
    """An attribute is of a type that cannot be written down as plain values; the message names it."""


class AttributeState:
    """Reads and writes the attributes of one environment, made but not yet reset."""

    def __init__(self, env: "gymnasium.Env[Any, Any]") -> None:
        self._layers = list(_layers(env))
        self._settings = [_attributes(layer) for layer in self._layers]

    def state_dict(self) -> list[dict[str, Coded]]:
        """Attributes that changed, layer by layer from the outside.

        Raises:
            UnknownStateError: not all of them can be told.
        """
        return [
            {
                name: coded
                for name, coded in _attributes(layer).items()
                if not _same(coded, settings.get(name))
            }
            for layer, settings in zip(self._layers, self._settings, strict=True)
        ]

    def load_state_dict(self, state: list[dict[str, Coded]]) -> None:
        """Changed attributes as they were then, all others as this environment was made."""
        for layer, settings, changed in zip(self._layers, self._settings, state, strict=True):
            for name, coded in {**settings, **changed}.items():
                setattr(layer, name, _decoded(coded, getattr(layer, name, None)))


def generator_state(env: "gymnasium.Env[Any, Any]") -> dict[str, Any]:
    """State of the environment's own random generator."""
    state: dict[str, Any] = _without_numpy(env.unwrapped.np_random.bit_generator.state)
    return state


def load_generator_state(env: "gymnasium.Env[Any, Any]", state: dict[str, Any]) -> None:
    env.unwrapped.np_random.bit_generator.state = state


def _layers(env: Any) -> Iterator[Any]:
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env
    yield env


def _attributes(layer: Any) -> dict[str, Coded]:
    return {
        name: _coded(value, f"{type(layer).__name__}.{name}", depth=0)
        for name, value in vars(layer).items()
        if not _stateless(value)
    }


def _stateless(value: Any) -> bool:
    if isinstance(value, NO_STATE):
        return True
    module = type(value).__module__
    return any(module == package or module.startswith(f"{package}.") for package in SIMULATOR_PACKAGES)


def _coded(value: Any, path: str, *, depth: int) -> Coded:  # noqa: PLR0911 - a table of types
    if depth > DEEPEST:
        raise UnknownStateError(path)
    if isinstance(value, PLAIN) and type(value) in PLAIN:
        return ["plain", value]
    if isinstance(value, np.ndarray | np.generic):
        return ["array" if isinstance(value, np.ndarray) else "number", _tensor(value, path)]
    if torch.is_tensor(value):
        return ["tensor", value.detach().cpu().clone()]
    if isinstance(value, np.random.Generator):
        return ["generator", _without_numpy(value.bit_generator.state)]
    if type(value) in (list, tuple, deque):
        items = [_coded(item, f"{path}[{i}]", depth=depth + 1) for i, item in enumerate(value)]
        return [type(value).__name__, items]
    if type(value) is dict and all(isinstance(key, str | int) for key in value):
        inner = {key: item for key, item in value.items() if not _stateless(item)}
        return ["dict", {k: _coded(item, f"{path}[{k!r}]", depth=depth + 1) for k, item in inner.items()}]
    return ["object", _coded_object(value, path, depth)]


def _coded_object(value: Any, path: str, depth: int) -> dict[str, Coded]:
    if not hasattr(value, "__dict__") or isinstance(value, random.Random) or hasattr(value, "__slots__"):
        raise UnknownStateError(f"{path} ({type(value).__name__})")
    return {
        name: _coded(inner, f"{path}.{name}", depth=depth + 1)
        for name, inner in vars(value).items()
        if not _stateless(inner)
    }


def _decoded(coded: Coded, current: Any) -> Any:  # noqa: PLR0911 - a table of kinds
    kind, content = coded
    match kind:
        case "array":
            return _into(current, content.numpy())
        case "number":
            return content.numpy()[()]
        case "tensor":
            return content.clone()
        case "generator":
            current.bit_generator.state = content
            return current
        case "list" | "tuple":
            items = [_decoded(item, None) for item in content]
            return items if kind == "list" else tuple(items)
        case "deque":
            return deque((_decoded(item, None) for item in content), getattr(current, "maxlen", None))
        case "dict":
            kept = current if isinstance(current, dict) else {}
            stateless = {key: item for key, item in kept.items() if _stateless(item)}
            return {**stateless, **{k: _decoded(item, kept.get(k)) for k, item in content.items()}}
        case "object":
            for name, inner in content.items():
                setattr(current, name, _decoded(inner, getattr(current, name, None)))
            return current
    return content


def _into(current: Any, saved: np.ndarray) -> np.ndarray:
    """The saved values, in the array that is there where it fits: others may hold views of it."""
    if (
        isinstance(current, np.ndarray)
        and current.flags.writeable
        and (current.shape, current.dtype) == (saved.shape, saved.dtype)
    ):
        current[...] = saved
        return current
    return saved.copy()


def _tensor(value: Any, path: str) -> torch.Tensor:
    try:
        return torch.from_numpy(np.array(value))
    except TypeError:
        raise UnknownStateError(f"{path} (array of {value.dtype})") from None


def _same(a: Any, b: Any) -> bool:
    if torch.is_tensor(a) and torch.is_tensor(b):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and bool(a == b)


def _without_numpy(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: _without_numpy(value) for key, value in state.items()}
    if isinstance(state, np.ndarray):
        return [int(word) for word in state]
    return state if isinstance(state, str) else int(state)
