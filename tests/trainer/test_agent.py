"""Every field of TrainingConfig arrives in the objects that rsl-rl built, not only in a dict."""

from pathlib import Path
from typing import Any

import pytest
import torch

from canard.models import TrainingConfig
from trainer.agent import PPO_FIELDS, agent_cfg_of
from trainer.events import EventLog
from trainer.ranks import Ranks
from trainer.simulators.cartpole import Cartpole
from trainer.simulators.simulator import TaskRequest
from trainer.stop import StopRequest
from trainer.training import Training

VALUES: dict[str, Any] = {
    "learning_rate": 2.5e-4,
    "clip_param": 0.13,
    "entropy_coef": 0.017,
    "gamma": 0.975,
    "lam": 0.91,
    "num_learning_epochs": 3,
    "num_mini_batches": 6,
    "desired_kl": 0.023,
    "max_grad_norm": 0.77,
    "schedule": "fixed",
}


def built(tmp_path: Path, **fields: Any) -> Training:
    config = TrainingConfig(task_name="Canard-Cartpole-v0", num_envs=8, **fields)
    simulator = Cartpole(TaskRequest(task_name=config.task_name, num_envs=8, seed=0, device="cpu"))
    cfg = agent_cfg_of(config, simulator.agent_cfg)
    events = EventLog(tmp_path / "events.jsonl")
    training = Training(
        config,
        simulator,
        cfg,
        device="cpu",
        output=tmp_path,
        events=events,
        stop=StopRequest(),
        ranks=Ranks(),
    )
    events.close()
    return training


def test_the_table_below_has_every_ppo_field():
    assert set(VALUES) == set(PPO_FIELDS)


@pytest.mark.parametrize("field", VALUES)
def test_a_ppo_field_reaches_the_algorithm_and_only_it_changes(tmp_path: Path, field: str):
    plain, changed = built(tmp_path).alg, built(tmp_path, **{field: VALUES[field]}).alg

    assert getattr(changed, field) == VALUES[field]
    for other in set(VALUES) - {field}:
        assert getattr(changed, other) == getattr(plain, other)
    if field == "learning_rate":
        assert changed.optimizer.param_groups[0]["lr"] == VALUES[field]


def test_network_fields_reach_the_models(tmp_path: Path):
    alg = built(
        tmp_path,
        actor_hidden_dims=[32, 16],
        critic_hidden_dims=[24],
        activation="tanh",
        init_noise_std=0.4,
    ).alg

    linear = torch.nn.Linear
    assert [m.out_features for m in alg.actor.modules() if isinstance(m, linear)] == [32, 16, 1]
    assert [m.out_features for m in alg.critic.modules() if isinstance(m, linear)] == [24, 1]
    for model in (alg.actor, alg.critic):
        assert any(isinstance(m, torch.nn.Tanh) for m in model.modules())
        assert not any(isinstance(m, torch.nn.ELU) for m in model.modules())
    alg.act(built(tmp_path).env.get_observations())
    assert alg.actor.output_std.flatten().tolist() == pytest.approx([0.4] * 8)


def test_reward_weights_change_only_the_named_term():
    request = TaskRequest(
        task_name="Canard-Cartpole-v0", num_envs=1, seed=0, device="cpu", reward_weights={"effort": -0.5}
    )
    env = Cartpole(request).env

    _, rewards, _, _ = env.step(torch.tensor([[1.0]]))

    assert rewards.item() == pytest.approx(1.0 - 0.5)
