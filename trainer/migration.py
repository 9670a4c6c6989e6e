"""Checkpoints of any rsl-rl since 2 as the installed one loads them.

rsl-rl 2 and 3 save one ActorCritic, 2 with its observation normalisers beside it; 4 saves two models with the
standard deviation among their own parameters; 5 gives that to a distribution. Names and places change here,
and values only where a standard deviation is kept as its logarithm. `iter` is the index of the last iteration
done in all of them.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard

MADE_BY_KEY = "made_by"
"""Under which migrated contents tell where they come from."""

STD, LOG_STD = "distribution.std_param", "distribution.log_std_param"
OWN_PARAMETERS = {"std": STD, "log_std": LOG_STD}
"""Of an ActorCritic, or of an actor of rsl-rl 4."""

PARTS = {
    "actor_state_dict": {
        "actor.": "mlp.",
        "actor_obs_normalizer.": "obs_normalizer.",
        "memory_a.": "rnn.",
        "actor_cnns.": "cnns.",
    },
    "critic_state_dict": {
        "critic.": "mlp.",
        "critic_obs_normalizer.": "obs_normalizer.",
        "memory_c.": "rnn.",
        "critic_cnns.": "cnns.",
    },
}
"""Modules of an ActorCritic, and their names in the two models."""

ORDER = ("obs_normalizer.", "distribution.", "mlp.", "rnn.", "cnns.")
"""Of the modules in a model of rsl-rl 5: the optimizer numbers parameters by it."""

NORMALISERS_OF_2 = ("privileged_obs_norm_state_dict", "critic_obs_norm_state_dict")
"""Of the critic, in 2.3 and before."""

State = Mapping[str, Any]


class ForeignCheckpointError(ValueError):
    """Not a checkpoint that rsl-rl made of an actor and a critic."""


def migrated(contents: dict[str, Any]) -> dict[str, Any]:
    """The same checkpoint with the keys of rsl-rl 5; what has them already is returned as it is.

    Raises:
        ForeignCheckpointError: of neither version.
    """
    if isinstance(contents.get("model_state_dict"), Mapping):
        return _from_actor_critic(contents)
    if not all(isinstance(contents.get(key), Mapping) for key in PARTS):
        raise ForeignCheckpointError("not made by rsl-rl (no actor_state_dict, no model_state_dict)")
    if OWN_PARAMETERS.keys() & contents["actor_state_dict"].keys():
        actor = {
            OWN_PARAMETERS.get(name, name): value for name, value in contents["actor_state_dict"].items()
        }
        return {**contents, "actor_state_dict": actor, MADE_BY_KEY: "rsl-rl 4"}
    return contents


def parameters_of(models: Mapping[str, State]) -> list[tuple[str, str]]:
    """(model, name) as rsl-rl's optimizer numbers them: actor, critic, each in the order of its state."""
    return [
        (model, name) for model in PARTS for name in models[model] if not name.startswith("obs_normalizer.")
    ]


def is_optimizer_state(saved: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether it has the form of what torch's optimizers save."""
    return (
        isinstance(saved, Mapping)
        and isinstance(saved.get("state"), Mapping)
        and isinstance(saved.get("param_groups"), list)
        and all(isinstance(group, Mapping) and "params" in group for group in saved["param_groups"])
    )


def _from_actor_critic(contents: dict[str, Any]) -> dict[str, Any]:
    old: State = contents["model_state_dict"]
    places = {name: _place_in_two_models(name) for name in old}
    models = {model: _in_order_of_5(_parts(old, places, model)) for model in PARTS}
    for model, normaliser in zip(PARTS, _normalisers_of_2(contents), strict=True):
        models[model] = {**_prefixed("obs_normalizer.", normaliser), **models[model]}
    new_numbers = {place: number for number, place in enumerate(parameters_of(models))}
    # The optimizer of an ActorCritic numbers parameters in the order of its state, as of any module.
    moved = [new_numbers[place] for place in places.values() if place in new_numbers]
    kept = {key: value for key, value in contents.items() if not key.endswith("norm_state_dict")}
    del kept["model_state_dict"]
    optimizer = _renumbered(contents.get("optimizer_state_dict"), moved)
    return {**kept, **models, "optimizer_state_dict": optimizer, MADE_BY_KEY: "rsl-rl 2 or 3"}


def _place_in_two_models(name: str) -> tuple[str, str]:
    """Which model a part of an ActorCritic belongs to, and its name there."""
    if name in OWN_PARAMETERS:
        return "actor_state_dict", OWN_PARAMETERS[name]
    for model, modules in PARTS.items():
        for old, new in modules.items():
            if name.startswith(old):
                return model, new + name.removeprefix(old)
    raise ForeignCheckpointError(f"its model_state_dict has {name!r}, which is of no actor and no critic")


def _parts(old: State, places: Mapping[str, tuple[str, str]], model: str) -> dict[str, Any]:
    return {places[name][1]: value for name, value in old.items() if places[name][0] == model}


def _in_order_of_5(state: State) -> dict[str, Any]:
    def module_number(name: str) -> int:
        return next((number for number, module in enumerate(ORDER) if name.startswith(module)), len(ORDER))

    return {name: state[name] for name in sorted(state, key=module_number)}


def _normalisers_of_2(contents: State) -> tuple[State, State]:
    """Of actor and critic, empty where there is none.

    A critic without observations of its own got what the actor's normaliser gave; its own learned nothing.
    """
    of_actor: State = contents.get("obs_norm_state_dict") or {}
    of_critic: State = next((contents[key] for key in NORMALISERS_OF_2 if contents.get(key)), {})
    return of_actor, of_critic if int(of_critic.get("count", 0)) else of_actor


def _prefixed(prefix: str, state: State) -> dict[str, Any]:
    return {prefix + name: value for name, value in state.items()}


def _renumbered(optimizer: object, moved: list[int]) -> dict[str, Any] | None:
    """The optimizer's state with parameter i as parameter moved[i]; without parameters if that is unknown."""
    if not is_optimizer_state(optimizer):
        return None
    groups = optimizer["param_groups"]
    if len(groups) != 1 or len(groups[0]["params"]) != len(moved):
        return {"state": {}, "param_groups": [{**group, "params": []} for group in groups]}
    moved_to = dict(zip(groups[0]["params"], moved, strict=True))
    state = {moved_to[number]: value for number, value in optimizer["state"].items() if number in moved_to}
    return {"state": state, "param_groups": [{**groups[0], "params": sorted(moved)}]}
