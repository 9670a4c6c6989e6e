"""Networks of another shape, refused in one sentence instead of a wall of tensors."""

from typing import Any

import torch

from canard.models import TrainingConfig
from trainer.errors import ConfigurationError

NORMALISER = "obs_normalizer."


def refuse_other_hidden_dims(contents: dict[str, Any], config: TrainingConfig) -> None:
    """What can be said before a simulator is started, which may take minutes.

    Raises:
        ConfigurationError: the config asks for other hidden layers than the checkpoint has.
    """
    for name, wanted in (("actor", config.actor_hidden_dims), ("critic", config.critic_hidden_dims)):
        saved = _layers(_shapes(contents[f"{name}_state_dict"]))[1:-1]
        if wanted is not None and saved and saved != wanted:
            raise ConfigurationError(
                f"{name}_hidden_dims: checkpoint has {saved}, config has {wanted}; a training goes on with"
                " the network that it began with"
            )


def refuse_other_shapes(contents: dict[str, Any], model: torch.nn.Module, *, key: str, name: str) -> None:
    """`name` is the network's for people, `key` where the checkpoint has it.

    Raises:
        ConfigurationError: the network of the checkpoint is not the one of the config.
    """
    saved, wanted = _shapes(contents[key]), _shapes(model.state_dict())
    if saved == wanted:
        return
    disagree = f"checkpoint and config disagree on the {name}"
    saved_layers, wanted_layers = _layers(saved), _layers(wanted)
    if saved_layers != wanted_layers:
        raise ConfigurationError(
            f"{disagree}: checkpoint has {saved_layers}, config has {wanted_layers}"
            " (inputs, hidden dims, outputs)"
        )
    normalised, normalises = (any(n.startswith(NORMALISER) for n in names) for names in (saved, wanted))
    if normalised != normalises:
        raise ConfigurationError(
            f"{disagree}: checkpoint has {'an' if normalised else 'no'} observation normaliser, config has"
            f" {'one' if normalises else 'none'}"
        )
    different = sorted({shape[0] for shape in set(saved.items()) ^ set(wanted.items())})
    raise ConfigurationError(f"{disagree}: {', '.join(different[:3])} not in both alike")


def _shapes(state: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in state.items() if torch.is_tensor(tensor)}


def _layers(shapes: dict[str, tuple[int, ...]]) -> list[int]:
    weights = [shape for name, shape in shapes.items() if name.startswith("mlp.") and len(shape) == 2]
    return [weights[0][1], *(shape[0] for shape in weights)] if weights else []
