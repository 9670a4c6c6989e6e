"""Simulation context, scene and cart of pure torch, with the methods that a 2.3.2 direct environment calls.

`install()` puts them into the modules of Isaac Lab that would otherwise start PhysX.
"""

import contextlib
import enum
import math
import os
from types import SimpleNamespace

import torch
from sitecustomize import note

RAIL_TO_CART, CART_TO_POLE = 0, 1


class FakeSimulationContext:
    """Steps the articulations that were registered with it."""

    class RenderMode(enum.IntEnum):
        NO_RENDERING = 0
        PARTIAL_RENDERING = 1

    _instance = None

    def __init__(self, cfg):
        self.cfg = cfg
        self.device = cfg.device
        self.render_mode = self.RenderMode.NO_RENDERING
        self.articulations = []
        self.steps = 0
        type(self)._instance = self

    @classmethod
    def instance(cls):
        return cls._instance

    @classmethod
    def clear_instance(cls):
        cls._instance = None
        if os.environ.get("STANDIN_END_AT_CLOSE"):
            note("ended_at_close")
            os._exit(0)

    def get_initial_stage(self):
        return None

    def has_gui(self):
        return False

    has_rtx_sensors = has_gui

    def step(self, render=True):
        self.steps += 1
        for articulation in self.articulations:
            articulation.step(self.cfg.dt)
            if str(self.steps) == os.environ.get("STANDIN_NAN_AT_STEP"):
                articulation.data.joint_vel[0] = float("nan")

    def reset(self):
        pass

    forward = render = stop = clear = clear_all_callbacks = reset


class FakeScene:
    """So many environments, nothing in them but the articulations that the task adds."""

    def __init__(self, cfg):
        self.cfg = cfg
        self.num_envs = cfg.num_envs
        self.articulations = {}
        self.env_origins = torch.zeros(cfg.num_envs, 3)
        FakeSimulationContext.instance().num_envs = cfg.num_envs

    def clone_environments(self, copy_from_source=False):
        pass

    def filter_collisions(self, global_prim_paths=()):
        pass

    def reset(self, env_ids=None):
        pass

    def write_data_to_sim(self):
        pass

    def update(self, dt):
        pass


class FakeCart:
    """A cart with a pole: joint 0 slides, joint 1 swings."""

    def __init__(self, cfg):
        sim = FakeSimulationContext.instance()
        sim.articulations.append(self)
        self.num_envs = sim.num_envs
        self._ALL_INDICES = torch.arange(self.num_envs)
        self._force = torch.zeros(self.num_envs)
        self.data = SimpleNamespace(
            joint_pos=torch.zeros(self.num_envs, 2),
            joint_vel=torch.zeros(self.num_envs, 2),
            default_joint_pos=torch.zeros(self.num_envs, 2),
            default_joint_vel=torch.zeros(self.num_envs, 2),
            default_root_state=torch.zeros(self.num_envs, 13),
        )

    def find_joints(self, name):
        index = {"slider_to_cart": RAIL_TO_CART, "cart_to_pole": CART_TO_POLE}[name]
        return [index], [name]

    def set_joint_effort_target(self, target, joint_ids=None):
        self._force = target.detach().reshape(self.num_envs)

    def step(self, dt):
        angle = self.data.joint_pos[:, CART_TO_POLE]
        acceleration = torch.stack(
            [self._force / 1.2, 9.81 * torch.sin(angle) - self._force * torch.cos(angle)], 1
        )
        self.data.joint_vel += dt * acceleration
        self.data.joint_pos += dt * self.data.joint_vel
        self.data.joint_pos[:, CART_TO_POLE].remainder_(2 * math.pi)
        swung_past = self.data.joint_pos[:, CART_TO_POLE] > math.pi
        self.data.joint_pos[swung_past, CART_TO_POLE] -= 2 * math.pi

    def write_root_pose_to_sim(self, pose, env_ids=None):
        pass

    write_root_velocity_to_sim = write_root_pose_to_sim

    def write_joint_state_to_sim(self, position, velocity, joint_ids=None, env_ids=None):
        self.data.joint_pos[env_ids] = position
        self.data.joint_vel[env_ids] = velocity


def install() -> None:
    """Replace the physics of the direct environments and of the stock cartpole, and nothing else."""
    import isaaclab.envs.direct_rl_env as direct
    import isaaclab_tasks.direct.cartpole.cartpole_env as cartpole

    direct.SimulationContext = FakeSimulationContext
    direct.InteractiveScene = FakeScene
    direct.use_stage = contextlib.nullcontext
    direct.attach_stage_to_usd_context = lambda: None
    cartpole.Articulation = FakeCart
    cartpole.spawn_ground_plane = lambda **kwargs: None
    cartpole.sim_utils = SimpleNamespace(
        DomeLightCfg=lambda **settings: SimpleNamespace(func=lambda *prim: None)
    )
    note("fake_physics_installed")


install()
