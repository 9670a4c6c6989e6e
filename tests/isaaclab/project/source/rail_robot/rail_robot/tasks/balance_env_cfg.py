"""Balance the mast, written as a manager-based environment."""

import math

import isaaclab.sim as sim_utils
from isaaclab.assets import ArticulationCfg, AssetBaseCfg
from isaaclab.envs import ManagerBasedRLEnvCfg, mdp
from isaaclab.managers import (
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
)
from isaaclab.managers import TerminationTermCfg as DoneTermCfg
from isaaclab.scene import InteractiveSceneCfg
from isaaclab.utils import configclass
from isaaclab_newton.physics import MJWarpSolverCfg, NewtonCfg

from ..robots import RAIL_ROBOT_CFG

MAST = SceneEntityCfg("robot", joint_names=["cart_to_mast"])
CART = SceneEntityCfg("robot", joint_names=["rail_to_cart"])


@configclass
class BalanceSceneCfg(InteractiveSceneCfg):
    ground = AssetBaseCfg(prim_path="/World/ground", spawn=sim_utils.GroundPlaneCfg(size=(100.0, 100.0)))
    robot: ArticulationCfg = RAIL_ROBOT_CFG.replace(prim_path="{ENV_REGEX_NS}/Robot")


@configclass
class ActionsCfg:
    force = mdp.JointEffortActionCfg(asset_name="robot", joint_names=["rail_to_cart"], scale=60.0)


@configclass
class ObservationsCfg:
    @configclass
    class PolicyCfg(ObservationGroupCfg):
        joint_pos = ObservationTermCfg(func=mdp.joint_pos_rel)
        joint_vel = ObservationTermCfg(func=mdp.joint_vel_rel)

    policy: PolicyCfg = PolicyCfg()


@configclass
class EventCfg:
    reset_cart = EventTermCfg(
        func=mdp.reset_joints_by_offset,
        mode="reset",
        params={"asset_cfg": CART, "position_range": (-0.5, 0.5), "velocity_range": (0.0, 0.0)},
    )
    reset_mast = EventTermCfg(
        func=mdp.reset_joints_by_offset,
        mode="reset",
        params={
            "asset_cfg": MAST,
            "position_range": (-0.15 * math.pi, 0.15 * math.pi),
            "velocity_range": (-0.2, 0.2),
        },
    )


@configclass
class RewardsCfg:
    alive = RewardTermCfg(func=mdp.is_alive, weight=1.0)
    terminating = RewardTermCfg(func=mdp.is_terminated, weight=-2.0)
    cart_speed = RewardTermCfg(func=mdp.joint_vel_l1, weight=-0.01, params={"asset_cfg": CART})
    mast_speed = RewardTermCfg(func=mdp.joint_vel_l1, weight=-0.005, params={"asset_cfg": MAST})


@configclass
class TerminationsCfg:
    time_out = DoneTermCfg(func=mdp.time_out, time_out=True)
    off_the_rail = DoneTermCfg(
        func=mdp.joint_pos_out_of_manual_limit, params={"asset_cfg": CART, "bounds": (-3.0, 3.0)}
    )
    fallen = DoneTermCfg(
        func=mdp.joint_pos_out_of_manual_limit,
        params={"asset_cfg": MAST, "bounds": (-math.pi / 2, math.pi / 2)},
    )


@configclass
class BalanceEnvCfg(ManagerBasedRLEnvCfg):
    scene: BalanceSceneCfg = BalanceSceneCfg(num_envs=512, env_spacing=4.0)
    observations: ObservationsCfg = ObservationsCfg()
    actions: ActionsCfg = ActionsCfg()
    events: EventCfg = EventCfg()
    rewards: RewardsCfg = RewardsCfg()
    terminations: TerminationsCfg = TerminationsCfg()

    def __post_init__(self):
        self.decimation = 2
        self.episode_length_s = 4.0
        self.sim.dt = 1 / 120
        self.sim.render_interval = self.decimation
        self.sim.physics = NewtonCfg(
            solver_cfg=MJWarpSolverCfg(njmax=5, nconmax=3, integrator="implicitfast")
        )
