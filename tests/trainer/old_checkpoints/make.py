"""Makes the checkpoints in this folder: each by the OnPolicyRunner of the rsl-rl that its name says.

With the trainer's own interpreter (its torch was 2.13), in this folder:

    for version in 2.2.4 2.3.3 3.0.1 3.3.0 4.0.1 5.0.1 5.3.0; do
        python -m pip install --no-deps --target /tmp/rsl-rl/$version rsl-rl-lib==$version
        PYTHONPATH=/tmp/rsl-rl/$version python make.py $version
    done

Two PPO iterations on a small torch environment (4 observations, 1 action). Beside each checkpoint a JSON file
has what that version's own policy answers, and the optimizer's momenta by the name of their parameter, taken
from the living objects.
"""

import importlib.metadata
import json
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import torch
from rsl_rl.runners import OnPolicyRunner

try:
    from tensordict import TensorDict
except ImportError:  # rsl-rl 2 does without
    TensorDict = None

HERE = Path(__file__).parent
HIDDEN_DIMS = [8, 6]
NUM_ENVS = 8
NUM_OBSERVATIONS, NUM_PRIVILEGED = 4, 5
VARIANTS = {
    "2.2.4": ["normalised"],
    "2.3.3": ["normalised", "privileged"],
    "3.0.1": ["plain", "normalised", "log"],
    "3.3.0": ["normalised", "log", "recurrent", "heteroscedastic"],
    "4.0.1": ["plain", "normalised", "log", "recurrent"],
    "5.0.1": ["normalised"],
    "5.3.0": ["normalised", "log"],
}
"""plain: no observation normalisation, one standard deviation as it is. Each other one changes one thing."""


class Env:
    """A mass to be pushed to the origin, seen in four badly scaled numbers; speaks to rsl-rl 2 and later."""

    num_envs, num_actions, max_episode_length = NUM_ENVS, 1, 12
    device = "cpu"

    def __init__(self, *, major: int, privileged: bool) -> None:
        self.cfg: dict[str, Any] = {}
        self.major, self.privileged = major, privileged
        self.state = torch.randn(NUM_ENVS, 2)
        self.episode_length_buf = torch.zeros(NUM_ENVS, dtype=torch.long)
        self.unwrapped = self

    def observe(self) -> dict[str, torch.Tensor]:
        position, speed = self.state.unbind(1)
        seen = torch.stack([position, 10 * speed + 3, position * speed, 0.1 * position - 1], dim=1)
        groups = {"policy": seen}
        if self.privileged:
            groups["critic"] = torch.cat([5 * seen, torch.ones(NUM_ENVS, 1)], dim=1)
        return groups

    def get_observations(self) -> Any:
        groups = self.observe()
        if self.major == 2:
            return groups.pop("policy"), {"observations": groups}
        return TensorDict(groups, batch_size=[NUM_ENVS])

    def reset(self) -> Any:
        return self.get_observations()

    def step(self, actions: torch.Tensor) -> Any:
        speed = self.state[:, 1] + 0.1 * actions[:, 0].clamp(-1, 1)
        self.state = torch.stack([self.state[:, 0] + 0.1 * speed, speed], dim=1)
        rewards = -self.state.square().sum(1)
        self.episode_length_buf += 1
        dones = self.episode_length_buf >= self.max_episode_length
        self.state[dones] = torch.randn(int(dones.sum()), 2)
        self.episode_length_buf[dones] = 0
        extras: dict[str, Any] = {"time_outs": dones}
        if self.major == 2:
            seen, also = self.get_observations()
            return seen, rewards, dones.long(), {**extras, **also}
        return self.get_observations(), rewards, dones.long(), extras


def train_cfg(variant: str, major: int, groups: list[str]) -> dict[str, Any]:
    normalise = variant in ("normalised", "privileged")
    std_type = "log" if variant == "log" else "scalar"
    algorithm = {
        "class_name": "PPO",
        "num_learning_epochs": 2,
        "num_mini_batches": 2,
        "learning_rate": 1e-3,
        "schedule": "adaptive",
        "desired_kl": 0.01,
    }
    cfg = {
        "num_steps_per_env": 16,
        "save_interval": 100,
        "algorithm": {**algorithm, "rnd_cfg": None} if major >= 3 else algorithm,
    }
    critic_groups = [groups[-1]]
    recurrent = {"rnn_type": "lstm", "rnn_hidden_dim": 4, "rnn_num_layers": 1}
    if major >= 4:
        network = {"hidden_dims": HIDDEN_DIMS, "activation": "elu", "obs_normalization": normalise}
        network["class_name"] = "RNNModel" if variant == "recurrent" else "MLPModel"
        network |= recurrent if variant == "recurrent" else {}
        state_dependent = variant == "heteroscedastic"
        noise = {"init_noise_std": 0.7, "noise_std_type": std_type, "state_dependent_std": state_dependent}
        distribution = {"class_name": "GaussianDistribution", "init_std": 0.7, "std_type": std_type}
        stochastic = {"stochastic": True, **noise} if major == 4 else {"distribution_cfg": distribution}
        return {
            **cfg,
            "obs_groups": {"actor": ["policy"], "critic": critic_groups},
            "actor": {**network, **stochastic},
            "critic": dict(network),
        }
    policy = {
        "class_name": "ActorCriticRecurrent" if variant == "recurrent" else "ActorCritic",
        "actor_hidden_dims": HIDDEN_DIMS,
        "critic_hidden_dims": HIDDEN_DIMS,
        "activation": "elu",
        "init_noise_std": 0.7,
        "noise_std_type": std_type,
        **(recurrent if variant == "recurrent" else {}),
        **({"state_dependent_std": True} if variant == "heteroscedastic" else {}),
    }
    if major == 2:
        return {**cfg, "empirical_normalization": normalise, "policy": policy}
    normalisers = {"actor_obs_normalization": normalise, "critic_obs_normalization": normalise}
    return {
        **cfg,
        "obs_groups": {"policy": ["policy"], "critic": critic_groups},
        "policy": {**policy, **normalisers},
    }


def answers(runner: OnPolicyRunner, major: int, groups: dict[str, torch.Tensor]) -> dict[str, Any]:
    """Mean actions, standard deviations and values on fixed observations, from a fresh hidden state."""
    alg = runner.alg
    all_done = torch.ones(NUM_ENVS)
    with torch.inference_mode():
        if major >= 4:
            alg.eval_mode()
            seen = TensorDict(groups, batch_size=[NUM_ENVS])
            for model in (alg.actor, alg.critic):
                model.reset(all_done)
            mean = alg.actor(seen)
            alg.actor.reset(all_done)
            alg.actor(seen, stochastic_output=True)
            return {"mean": mean, "std": alg.actor.output_std, "values": alg.critic(seen)}
        runner.eval_mode()
        policy = alg.policy if hasattr(alg, "policy") else alg.actor_critic
        policy.reset(all_done)
        if major == 2:
            critic_groups = groups.get("critic")
            normaliser = getattr(runner, "privileged_obs_normalizer", None) or runner.critic_obs_normalizer
            seen = runner.obs_normalizer(groups["policy"])
            critic_seen = seen if critic_groups is None else normaliser(critic_groups)
        else:
            seen = critic_seen = TensorDict(groups, batch_size=[NUM_ENVS])
        mean = policy.act_inference(seen)
        policy.reset(all_done)
        policy.act(seen)
        return {"mean": mean, "std": policy.action_std, "values": policy.evaluate(critic_seen)}


def momenta(runner: OnPolicyRunner, major: int) -> dict[str, list[float]]:
    """Adam's first one, flat, by the name of the parameter, whatever the order in the file."""
    alg = runner.alg
    if major >= 4:
        modules = {"actor.": alg.actor, "critic.": alg.critic}
    else:
        modules = {"": alg.policy if hasattr(alg, "policy") else alg.actor_critic}
    return {
        prefix + name: alg.optimizer.state[parameter]["exp_avg"].flatten().tolist()
        for prefix, module in modules.items()
        for name, parameter in module.named_parameters()
    }


def make(version: str, variant: str) -> None:
    major = int(version.partition(".")[0])
    torch.manual_seed(7)
    env = Env(major=major, privileged=variant == "privileged")
    with tempfile.TemporaryDirectory() as folder:
        cfg = train_cfg(variant, major, list(env.observe()))
        runner = OnPolicyRunner(env, cfg, log_dir=folder, device="cpu")
        runner.learn(2)
        shutil.copy(Path(folder) / "model_1.pt", HERE / f"{version}_{variant}.pt")
    generator = torch.Generator().manual_seed(11)
    observations = {
        name: 2 * torch.randn(*seen.shape, generator=generator) for name, seen in env.observe().items()
    }
    told = {
        "rsl_rl": version,
        "learning_rate": runner.alg.learning_rate,
        "observations": {name: seen.tolist() for name, seen in observations.items()},
        **{name: tensor.tolist() for name, tensor in answers(runner, major, observations).items()},
        "momenta": momenta(runner, major),
    }
    (HERE / f"{version}_{variant}.json").write_text(json.dumps(told) + "\n")


def main() -> None:
    [version] = sys.argv[1:]
    installed = importlib.metadata.version("rsl-rl-lib")
    if installed != version:
        raise SystemExit(f"PYTHONPATH leads to rsl-rl {installed}, not {version}")
    warnings.simplefilter("ignore")
    for variant in VARIANTS[version]:
        make(version, variant)


if __name__ == "__main__":
    main()
