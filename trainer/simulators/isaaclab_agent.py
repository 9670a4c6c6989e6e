"""A task's rsl-rl settings, in whichever schema its author wrote them, as those of rsl-rl 5.

Isaac Lab tasks speak two schemas: one `policy` for both networks (rsl-rl up to 3), or `actor` and `critic`.
"""

import inspect
from collections.abc import Mapping
from typing import Any

from rsl_rl.algorithms import PPO

from trainer.errors import ConfigurationError

MODEL_OF_POLICY = {"ActorCritic": "MLPModel", "ActorCriticRecurrent": "RNNModel"}
RECURRENT_SETTINGS = ("rnn_type", "rnn_hidden_dim", "rnn_num_layers")
OLD_MODEL_SETTINGS = ("stochastic", "init_noise_std", "noise_std_type", "state_dependent_std")
RUNNER_SETTINGS = ("num_steps_per_env", "max_iterations", "save_interval", "clip_actions")
TAKEN_BY_THE_CONSTRUCTOR = ("class_name", "share_cnn_encoders")
"""Algorithm settings that rsl-rl reads although its PPO has no argument of the name."""


def train_cfg(agent: Mapping[str, Any], task_name: str) -> dict[str, Any]:
    """rsl-rl 5 settings from a task's agent configuration, in which `{}` stands for a missing value."""
    agent = _without_missing(agent)
    runner = agent.get("class_name", "OnPolicyRunner")
    if runner != "OnPolicyRunner":
        raise ConfigurationError(f"task_name: {task_name!r} is trained by {runner}, and Canard trains PPO")
    return {
        **{name: agent[name] for name in RUNNER_SETTINGS if name in agent},
        **(_models(agent) if "actor" in agent else _models_of_policy(agent, task_name)),
        "algorithm": _algorithm(agent.get("algorithm", {})),
        "obs_groups": _obs_groups(agent.get("obs_groups", {})),
    }


def _without_missing(settings: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: _without_missing(v) if isinstance(v, Mapping) else v for k, v in settings.items()}
    return {name: value for name, value in kept.items() if value != {}}


def _obs_groups(groups: Mapping[str, Any]) -> dict[str, Any]:
    """rsl-rl up to 3 called the actor's observations `policy`."""
    return {"actor" if name == "policy" else name: list(members) for name, members in groups.items()}


def _algorithm(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Without the settings that this rsl-rl does not have, as long as they ask for nothing."""
    known = {*inspect.signature(PPO.__init__).parameters, *TAKEN_BY_THE_CONSTRUCTOR}
    unknown = sorted(name for name, value in settings.items() if name not in known and value)
    if unknown:
        raise ConfigurationError(
            f"the task's agent configuration: this rsl-rl has no PPO setting {', '.join(unknown)}"
        )
    return {name: value for name, value in settings.items() if name in known}


def _models(agent: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _model(agent[name]) for name in ("actor", "critic")}


def _model(settings: Mapping[str, Any]) -> dict[str, Any]:
    model = {name: value for name, value in settings.items() if name not in OLD_MODEL_SETTINGS}
    if settings.get("stochastic") is True and model.get("distribution_cfg") is None:
        model["distribution_cfg"] = _distribution(settings)
    return model


def _models_of_policy(agent: Mapping[str, Any], task_name: str) -> dict[str, Any]:
    policy = agent.get("policy")
    class_name = policy.get("class_name", "ActorCritic") if policy else None
    if policy is None or class_name not in MODEL_OF_POLICY:
        raise ConfigurationError(
            f"task_name: the agent configuration of {task_name!r} has "
            + (f"policy class {class_name!r}" if policy else "neither policy nor actor and critic")
            + "; describe its networks as actor and critic"
        )
    shared = {
        "class_name": MODEL_OF_POLICY[class_name],
        "activation": policy["activation"],
        **{name: policy[name] for name in RECURRENT_SETTINGS if name in policy},
    }
    normalised = bool(agent.get("empirical_normalization"))
    return {
        "actor": {
            **shared,
            "hidden_dims": policy["actor_hidden_dims"],
            "obs_normalization": bool(policy.get("actor_obs_normalization", normalised)),
            "distribution_cfg": _distribution(policy),
        },
        "critic": {
            **shared,
            "hidden_dims": policy["critic_hidden_dims"],
            "obs_normalization": bool(policy.get("critic_obs_normalization", normalised)),
        },
    }


def _distribution(settings: Mapping[str, Any]) -> dict[str, Any]:
    depends_on_state = settings.get("state_dependent_std", False)
    return {
        "class_name": "HeteroscedasticGaussianDistribution" if depends_on_state else "GaussianDistribution",
        "init_std": settings.get("init_noise_std", 1.0),
        "std_type": settings.get("noise_std_type", "scalar"),
    }
