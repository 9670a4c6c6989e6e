"""PPO settings of the rail robot, in the `policy` schema that older projects use."""

from isaaclab.utils import configclass
from isaaclab_rl.rsl_rl import RslRlOnPolicyRunnerCfg, RslRlPpoActorCriticCfg, RslRlPpoAlgorithmCfg


@configclass
class BalancePPORunnerCfg(RslRlOnPolicyRunnerCfg):
    num_steps_per_env = 12
    max_iterations = 40
    save_interval = 10
    experiment_name = "rail_balance"
    policy = RslRlPpoActorCriticCfg(
        init_noise_std=0.8,
        actor_obs_normalization=True,
        critic_obs_normalization=True,
        actor_hidden_dims=[24, 24],
        critic_hidden_dims=[40, 24],
        activation="elu",
    )
    algorithm = RslRlPpoAlgorithmCfg(
        value_loss_coef=1.0,
        use_clipped_value_loss=True,
        clip_param=0.2,
        entropy_coef=0.003,
        num_learning_epochs=4,
        num_mini_batches=3,
        learning_rate=8.0e-4,
        schedule="adaptive",
        gamma=0.98,
        lam=0.95,
        desired_kl=0.01,
        max_grad_norm=1.0,
    )
