"""TrainingConfig over a task's own agent, in rsl-rl's configuration of 5.x."""

import copy
from typing import Any

from canard.models import TrainingConfig
from trainer.errors import ConfigurationError

PPO_FIELDS = (
    "learning_rate",
    "clip_param",
    "entropy_coef",
    "gamma",
    "lam",
    "num_learning_epochs",
    "num_mini_batches",
    "desired_kl",
    "max_grad_norm",
    "schedule",
)
"""The same name in TrainingConfig and in rsl-rl's `algorithm`."""

ACTIVATIONS = (
    "elu",
    "selu",
    "relu",
    "crelu",
    "lrelu",
    "tanh",
    "sigmoid",
    "softplus",
    "gelu",
    "swish",
    "mish",
    "identity",
)
"""Names that rsl-rl 5.4.2 and later resolve."""


def default_agent_cfg(
    *,
    num_steps_per_env: int,
    hidden_dims: list[int],
    obs_normalization: bool = False,
    obs_group: str = "policy",
) -> dict[str, Any]:
    """PPO as Isaac Lab's locomotion tasks set it, for a task that brings no agent of its own."""
    model = {"class_name": "MLPModel", "activation": "elu", "obs_normalization": obs_normalization}
    return {
        "num_steps_per_env": num_steps_per_env,
        "obs_groups": {"actor": [obs_group], "critic": [obs_group]},
        "actor": {
            **model,
            "hidden_dims": list(hidden_dims),
            "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0, "std_type": "scalar"},
        },
        "critic": {**model, "hidden_dims": list(hidden_dims)},
        "algorithm": {
            "class_name": "PPO",
            "num_learning_epochs": 5,
            "num_mini_batches": 4,
            "clip_param": 0.2,
            "gamma": 0.99,
            "lam": 0.95,
            "value_loss_coef": 1.0,
            "entropy_coef": 0.005,
            "learning_rate": 1e-3,
            "max_grad_norm": 1.0,
            "use_clipped_value_loss": True,
            "schedule": "adaptive",
            "desired_kl": 0.01,
        },
    }


def agent_cfg_of(
    config: TrainingConfig, base: dict[str, Any], *, multi_gpu: dict[str, int] | None = None
) -> dict[str, Any]:
    """A fresh agent configuration: the task's, with the fields that the user set in place.

    Raises:
        ConfigurationError: rsl-rl would take it without a word and do something else.
    """
    cfg = copy.deepcopy(base)
    for name in PPO_FIELDS:
        value = getattr(config, name)
        if value is not None:
            cfg["algorithm"][name] = value
    if config.actor_hidden_dims is not None:
        cfg["actor"]["hidden_dims"] = list(config.actor_hidden_dims)
    if config.critic_hidden_dims is not None:
        cfg["critic"]["hidden_dims"] = list(config.critic_hidden_dims)
    if config.activation is not None:
        cfg["actor"]["activation"] = cfg["critic"]["activation"] = config.activation
    if config.init_noise_std is not None:
        _distribution(cfg)["init_std"] = config.init_noise_std
    cfg["multi_gpu"] = multi_gpu
    _refuse_what_rsl_rl_takes_silently(cfg, config)
    return cfg


def _distribution(cfg: dict[str, Any]) -> dict[str, Any]:
    distribution: dict[str, Any] | None = cfg["actor"].get("distribution_cfg")
    if not distribution:
        raise ConfigurationError("the task's actor has no distribution: PPO needs one to explore")
    return distribution


def _refuse_what_rsl_rl_takes_silently(cfg: dict[str, Any], config: TrainingConfig) -> None:
    if not _distribution(cfg).get("init_std", 1.0) > 0:
        raise ConfigurationError("init_noise_std: must be above 0")
    for network in ("actor", "critic"):
        if str(cfg[network]["activation"]).lower() not in ACTIVATIONS:
            raise ConfigurationError(
                f"activation: rsl-rl has no {cfg[network]['activation']!r}; it has {', '.join(ACTIVATIONS)}"
            )
    algorithm = cfg["algorithm"]
    if algorithm["schedule"] not in ("adaptive", "fixed"):
        raise ConfigurationError(f"schedule: must be adaptive or fixed, not {algorithm['schedule']!r}")
    samples = config.num_envs * cfg["num_steps_per_env"]
    if algorithm["num_mini_batches"] > samples:
        raise ConfigurationError(
            f"num_mini_batches: {algorithm['num_mini_batches']} mini-batches of {samples} samples "
            f"({config.num_envs} envs x {cfg['num_steps_per_env']} steps); use at most {samples}"
        )
