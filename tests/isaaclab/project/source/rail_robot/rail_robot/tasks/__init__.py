"""Gym IDs of the rail robot."""

import gymnasium as gym

gym.register(
    id="Rail-Balance-Direct-v0",
    entry_point=f"{__name__}.balance_direct_env:BalanceEnv",
    disable_env_checker=True,
    kwargs={
        "env_cfg_entry_point": f"{__name__}.balance_direct_env:BalanceDirectEnvCfg",
        "rsl_rl_cfg_entry_point": f"{__name__}.agents.rsl_rl_ppo_cfg:BalancePPORunnerCfg",
    },
)

gym.register(
    id="Rail-Balance-v0",
    entry_point="isaaclab.envs:ManagerBasedRLEnv",
    disable_env_checker=True,
    kwargs={
        "env_cfg_entry_point": f"{__name__}.balance_env_cfg:BalanceEnvCfg",
        "rsl_rl_cfg_entry_point": f"{__name__}.agents.rsl_rl_ppo_cfg:BalancePPORunnerCfg",
    },
)
