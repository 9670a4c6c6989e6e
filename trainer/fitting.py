"""A loaded checkpoint made to fit the algorithm that goes on from it, and what of it cannot."""

from typing import Any

import torch

from trainer.migration import LOG_STD, MADE_BY_KEY, STD, State, is_optimizer_state, parameters_of

MOMENTA = "the optimizer's momenta"


def fitted(contents: dict[str, Any], algorithm: Any) -> tuple[dict[str, Any], list[str]]:
    """The contents as this very PPO of rsl-rl loads them, and what of it has to start anew, in words."""
    anew: list[str] = []
    contents = _with_std_as_in(algorithm.get_policy(), contents, anew)
    if not _fits(contents.get("optimizer_state_dict"), algorithm.optimizer):
        contents = {**contents, "optimizer_state_dict": _fresh_state(algorithm.optimizer, contents)}
        anew.append(MOMENTA)
    rnd = algorithm.rnd
    if rnd and _shapes(contents.get("rnd_state_dict") or {}) != _shapes(rnd.state_dict()):
        fresh = {"rnd_state_dict": rnd.state_dict(), "rnd_optimizer_state_dict": rnd.optimizer.state_dict()}
        contents = {**contents, **fresh}
        anew.append("random network distillation")
    return contents, anew


def in_words(contents: dict[str, Any], anew: list[str]) -> str:
    """Of a checkpoint that rsl-rl itself made: where it comes from, what goes on, what starts anew."""
    made_by = contents.get(MADE_BY_KEY)
    origin = f"{made_by} and converted" if made_by else "rsl-rl itself"
    goes_on = [
        "networks",
        "observation normalisers",
        *([] if MOMENTA in anew else [MOMENTA]),
        "learning rate",
    ]
    starts_anew = [*anew, "episodes", "count of env steps"]
    return (
        f"was made by {origin}: {', '.join(goes_on)} and iteration go on;"
        f" {', '.join(starts_anew)} and random states start anew"
    )


def _with_std_as_in(actor: torch.nn.Module, contents: dict[str, Any], anew: list[str]) -> dict[str, Any]:
    """The standard deviation, or its logarithm: as the actor keeps it."""
    saved, wanted = contents["actor_state_dict"], actor.state_dict()
    if LOG_STD in saved and STD in wanted:
        there, here, value = LOG_STD, STD, torch.exp(saved[LOG_STD])
    elif STD in saved and LOG_STD in wanted:
        there, here, value = STD, LOG_STD, torch.log(saved[STD])
    else:
        return contents
    anew.append(f"the momentum of {here}, which was {there}")
    renamed = {(here if name == there else name): saved[name] for name in saved}
    contents = {**contents, "actor_state_dict": {**renamed, here: value}}
    optimizer = contents.get("optimizer_state_dict")
    if not is_optimizer_state(optimizer):
        return contents
    number = parameters_of(contents).index(("actor_state_dict", here))
    others = {key: state for key, state in optimizer["state"].items() if key != number}
    return {**contents, "optimizer_state_dict": {**optimizer, "state": others}}


def _fits(saved: object, optimizer: torch.optim.Optimizer) -> bool:
    """torch looks at how many parameters there are, and not at the shapes of their momenta."""
    if not is_optimizer_state(saved):
        return False
    theirs, ours = saved["param_groups"], optimizer.param_groups
    if [len(group["params"]) for group in theirs] != [len(group["params"]) for group in ours]:
        return False
    numbers = [number for group in theirs for number in group["params"]]
    parameters = [parameter for group in ours for parameter in group["params"]]
    return all(
        tensor.ndim == 0 or tensor.shape == parameter.shape
        for number, parameter in zip(numbers, parameters, strict=True)
        for tensor in saved["state"].get(number, {}).values()
        if torch.is_tensor(tensor)
    )


def _fresh_state(optimizer: torch.optim.Optimizer, contents: dict[str, Any]) -> dict[str, Any]:
    """Without momenta, at the learning rate of then."""
    fresh, saved = optimizer.state_dict(), contents.get("optimizer_state_dict")
    rates = (
        [group["lr"] for group in saved["param_groups"] if "lr" in group] if is_optimizer_state(saved) else []
    )
    groups = [{**group, **({"lr": rates[0]} if rates else {})} for group in fresh["param_groups"]]
    return {**fresh, "param_groups": groups}


def _shapes(state: State) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in state.items() if torch.is_tensor(tensor)}
