"""Balance the mast, written as a direct environment."""

from __future__ import annotations

import math
from collections.abc import Sequence

import isaaclab.sim as sim_utils
import torch
from isaaclab.assets import ArticulationCfg, AssetBaseCfg
from isaaclab.envs import DirectRLEnv, DirectRLEnvCfg
from isaaclab.scene import InteractiveSceneCfg
from isaaclab.sim import SimulationCfg
from isaaclab.utils import configclass
from isaaclab.utils.math import sample_uniform
from isaaclab_newton.physics import MJWarpSolverCfg, NewtonCfg
from isaaclab_physx.physics import PhysxCfg
from isaaclab_tasks.utils import PresetCfg

from ..robots import RAIL_ROBOT_CFG


@configclass
class BalancePhysicsCfg(PresetCfg):
    """PhysX unless told otherwise: this project was first written for Isaac Sim."""

    isaacsim_physx: PhysxCfg = PhysxCfg()
    newton_mjwarp: NewtonCfg = NewtonCfg(
        solver_cfg=MJWarpSolverCfg(njmax=5, nconmax=3, integrator="implicitfast")
    )
    default: PhysxCfg = isaacsim_physx


@configclass
class BalanceDirectSceneCfg(InteractiveSceneCfg):
    ground = AssetBaseCfg(prim_path="/World/ground", spawn=sim_utils.GroundPlaneCfg())
    robot: ArticulationCfg = RAIL_ROBOT_CFG.replace(prim_path="{ENV_REGEX_NS}/Robot")


@configclass
class BalanceDirectEnvCfg(DirectRLEnvCfg):
    decimation = 2
    episode_length_s = 4.0
    action_space = 1
    observation_space = 4
    state_space = 0

    sim: SimulationCfg = SimulationCfg(dt=1 / 120, render_interval=2, physics=BalancePhysicsCfg())
    scene: BalanceDirectSceneCfg = BalanceDirectSceneCfg(
        num_envs=512, env_spacing=4.0, replicate_physics=True
    )

    force_scale = 60.0  # [N]
    rail_half_length = 3.0  # [m]
    start_angle = 0.15 * math.pi  # [rad]

    alive_reward = 1.0
    fall_penalty = -2.0
    tilt_penalty = -1.0
    speed_penalty = -0.01


class BalanceEnv(DirectRLEnv):
    """Observations: cart position and speed, mast angle and speed. Action: force on the cart."""

    cfg: BalanceDirectEnvCfg

    def __init__(self, cfg: BalanceDirectEnvCfg, render_mode: str | None = None, **kwargs):
        super().__init__(cfg, render_mode, **kwargs)
        self.robot = self.scene["robot"]
        self._cart = self.robot.find_joints("rail_to_cart")[0]
        self._mast = self.robot.find_joints("cart_to_mast")[0]

    def _pre_physics_step(self, actions: torch.Tensor) -> None:
        self._force = self.cfg.force_scale * actions.clamp(-1.0, 1.0)

    def _apply_action(self) -> None:
        self.robot.set_joint_effort_target_index(target=self._force, joint_ids=self._cart)

    def _get_observations(self) -> dict:
        position = self.robot.data.joint_pos.torch
        speed = self.robot.data.joint_vel.torch
        columns = [
            position[:, self._cart],
            speed[:, self._cart],
            position[:, self._mast],
            speed[:, self._mast],
        ]
        return {"policy": torch.cat(columns, dim=-1)}

    def _get_rewards(self) -> torch.Tensor:
        tilt = self.robot.data.joint_pos.torch[:, self._mast].squeeze(-1)
        speed = self.robot.data.joint_vel.torch[:, self._cart].squeeze(-1)
        fell = self.reset_terminated.float()
        reward = self.cfg.alive_reward * (1.0 - fell) + self.cfg.fall_penalty * fell
        reward = reward + self.cfg.tilt_penalty * tilt.square() + self.cfg.speed_penalty * speed.abs()
        return reward * self.step_dt

    def _get_dones(self) -> tuple[torch.Tensor, torch.Tensor]:
        position = self.robot.data.joint_pos.torch
        off_the_rail = position[:, self._cart].squeeze(-1).abs() > self.cfg.rail_half_length
        fallen = position[:, self._mast].squeeze(-1).abs() > math.pi / 2
        return off_the_rail | fallen, self.episode_length_buf >= self.max_episode_length - 1

    def _reset_idx(self, env_ids: Sequence[int] | None):
        super()._reset_idx(env_ids)
        position = self.robot.data.default_joint_pos.torch[env_ids].clone()
        speed = self.robot.data.default_joint_vel.torch[env_ids].clone()
        shape = position[:, self._mast].shape
        position[:, self._mast] += sample_uniform(
            -self.cfg.start_angle, self.cfg.start_angle, shape, self.device
        )
        self.robot.write_joint_position_to_sim_index(position=position, env_ids=env_ids)
        self.robot.write_joint_velocity_to_sim_index(velocity=speed, env_ids=env_ids)
