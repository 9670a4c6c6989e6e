"""mjlab really trains here: Unitree robots on MuJoCo-Warp, on the CPU."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from trainers import LIMIT_S, Ended, Trainer, own_platform

GO1 = "Mjlab-Velocity-Flat-Unitree-Go1"
ROUGH_GO1 = "Mjlab-Velocity-Rough-Unitree-Go1"
STEPS = 24
"""Env steps of an iteration, as mjlab's agent for the Go1 has it."""
CONFIG = {"task_name": GO1, "num_envs": 8, "max_iterations": 3, "seed": 1}
TERMS = [
    *("action_rate_l2", "air_time", "angular_momentum", "body_ang_vel", "dof_pos_limits", "foot_clearance"),
    *("foot_slip", "foot_swing_height", "pose", "soft_landing", "track_angular_velocity"),
    *("track_linear_velocity", "upright"),
]


@pytest.fixture(scope="module")
def go1_run(mjlab: Trainer, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    return mjlab.run(tmp_path_factory.mktemp("go1") / "out", CONFIG)


def test_a_go1_trains(go1_run: Ended) -> None:
    assert go1_run.code == 0, go1_run.log[-2000:]
    assert go1_run.events("started")[0]["simulator"] == "mjlab"
    assert [event["iteration"] for event in go1_run.events("iteration")] == [1, 2, 3]
    assert go1_run.summary["env_steps"] == 3 * STEPS * 8
    assert go1_run.summary["mean_reward"] is not None
    assert go1_run.events("warning") == []


def test_the_tasks_own_agent_is_trained(go1_run: Ended) -> None:
    actor = _checkpoint(go1_run, 3)["actor_state_dict"]

    hidden = [
        len(weights) for name, weights in actor.items() if name.startswith("mlp.") and weights.ndim == 2
    ]
    assert hidden == [512, 256, 128, 12]
    assert actor["obs_normalizer.count"] > 0


def test_the_tasks_own_figures_are_curves(go1_run: Ended) -> None:
    curves = EventAccumulator(str(go1_run.output / "tensorboard")).Reload()

    tags = curves.Tags()["scalars"]
    assert {f"Episode_Reward/{term}" for term in TERMS} <= set(tags)
    assert {"Episode_Termination/fell_over", "Curriculum/command_vel/lin_vel_x_max"} <= set(tags)


def test_nothing_is_left_for_wandb(go1_run: Ended) -> None:
    """mjlab's own runner logs there unless told otherwise."""
    assert "wandb" not in go1_run.log
    assert sorted(path.name for path in go1_run.output.parent.iterdir()) == ["out", "out.json", "out.log"]


# torch announces the end of TorchScript; robots' runtimes still read it.
@pytest.mark.filterwarnings("ignore:.torch.jit.load. is deprecated:DeprecationWarning")
def test_the_policy_is_exported(go1_run: Ended) -> None:
    policy = torch.jit.load(go1_run.output / "policy" / "policy.pt")

    inputs = _checkpoint(go1_run, 3)["actor_state_dict"]["mlp.0.weight"].shape[1]
    assert policy(torch.zeros(5, inputs)).shape == (5, 12)
    assert {event["format"] for event in go1_run.events("policy")} == {"torchscript", "onnx"}


def test_reward_weights_are_those_of_the_terms(mjlab: Trainer, go1_run: Ended, tmp_path: Path) -> None:
    silenced = CONFIG | {"max_iterations": 2, "reward_weights": dict.fromkeys(TERMS, 0)}

    ended = mjlab.run(tmp_path / "out", silenced)

    assert ended.summary["mean_reward"] == 0.0
    assert go1_run.summary["mean_reward"] != 0.0


def test_an_unknown_reward_weight_is_refused_before_the_simulator_starts(
    mjlab: Trainer, tmp_path: Path
) -> None:
    ended = mjlab.run(tmp_path / "out", CONFIG | {"reward_weights": {"uprigth": 1.0}})

    assert ended.code == 2
    [failed] = ended.events("failed")
    assert "reward_weights.uprigth" in failed["message"]
    assert ", ".join(TERMS) in failed["message"]
    assert "Environment seed" not in ended.log


def test_a_misspelt_task_is_refused_with_the_near_ones(mjlab: Trainer, tmp_path: Path) -> None:
    ended = mjlab.run(tmp_path / "out", CONFIG | {"task_name": "Mjlab-Velocity-Flat-Unitree-Go2"})

    assert ended.code == 2
    assert f"did you mean {GO1}" in ended.events("failed")[0]["message"]


def test_a_task_that_lacks_a_motion_to_track_says_so(mjlab: Trainer, tmp_path: Path) -> None:
    ended = mjlab.run(tmp_path / "out", CONFIG | {"task_name": "Mjlab-Tracking-Flat-Unitree-G1"})

    assert ended.code == 2
    assert "motion_file" in ended.events("failed")[0]["message"]


def test_a_resume_goes_on_with_the_next_iteration_and_with_the_curricula(
    mjlab: Trainer, go1_run: Ended, tmp_path: Path
) -> None:
    two = go1_run.output / "checkpoints" / "model_2.pt"

    ended = mjlab.run(tmp_path / "out", CONFIG | {"max_iterations": 4}, "--resume", str(two))

    assert ended.code == 0, ended.log[-2000:]
    assert [event["iteration"] for event in ended.events("iteration")] == [3, 4]
    assert ended.summary["env_steps"] == 4 * STEPS * 8
    contents = _checkpoint(ended, 4)
    assert contents["canard"]["simulator_state"]["common_step_counter"] == 4 * STEPS
    assert contents["infos"]["env_state"]["common_step_counter"] == 4 * STEPS


OWN_RUNNER = """
import dataclasses
from mjlab.envs import ManagerBasedRlEnv
from mjlab.rl import RslRlVecEnvWrapper
from mjlab.tasks.registry import load_env_cfg, load_rl_cfg, load_runner_cls
import mjlab.tasks

cfg = load_env_cfg("{task}")
cfg.scene.num_envs = 4
env = RslRlVecEnvWrapper(ManagerBasedRlEnv(cfg=cfg, device="cpu"))
agent = dataclasses.replace(load_rl_cfg("{task}"), logger="tensorboard", upload_model=False)
runner = load_runner_cls("{task}")(env, dataclasses.asdict(agent), device="cpu")
runner.load("{checkpoint}")
print("LOADED", runner.current_learning_iteration, env.unwrapped.common_step_counter)
runner.current_learning_iteration, env.unwrapped.common_step_counter = 9, 130_000
runner.logger.logger_type = "tensorboard"
runner.save("theirs.pt")
"""


def test_checkpoints_go_to_mjlabs_own_runner_and_come_from_it(
    mjlab: Trainer, go1_run: Ended, tmp_path: Path
) -> None:
    three = go1_run.output / "checkpoints" / "model_3.pt"
    lines = mjlab.run_program(OWN_RUNNER.format(task=GO1, checkpoint=three), tmp_path)

    config = CONFIG | {"max_iterations": 11}
    ended = mjlab.run(tmp_path / "out", config, "--resume", str(tmp_path / "theirs.pt"))

    assert f"LOADED 3 {3 * STEPS}" in lines
    assert [event["iteration"] for event in ended.events("iteration")] == [11], "10 were done: indices from 0"
    counter = _checkpoint(ended, 11)["canard"]["simulator_state"]["common_step_counter"]
    assert counter == 130_000 + STEPS


CURRICULA = """
import json, torch
from trainer.simulators import make_simulator
from trainer.simulators.simulator import TaskRequest

def made(seed):
    request = TaskRequest(task_name="{task}", num_envs=6, seed=seed, device="cpu")
    return make_simulator("mjlab", request)

first = made(1)
task = first.env.unwrapped
task.common_step_counter = 130_000
task.scene.terrain.terrain_levels[:] = torch.tensor([0, 3, 5, 7, 8, 9])
state = first.state_dict()

second = made(2)
second.load_state_dict(state, same_envs=True)
task = second.env.unwrapped
origins = task.scene.terrain.terrain_origins[state["terrain_levels"], task.scene.terrain.terrain_types]
away = task.scene["robot"].data.root_link_pos_w - origins
print("RESULT", json.dumps({{
    "levels": task.scene.terrain.terrain_levels.tolist(),
    "away": away[:, :2].abs().max().item(),
    "counter": second.state_dict()["common_step_counter"],
    "fastest": task.command_manager.get_term("twist").cfg.ranges.lin_vel_x,
    "curricula": task.curriculum_manager.active_terms,
}}))
"""


def test_curricula_are_restored_and_the_robots_stand_on_the_terrain_they_had_reached(
    mjlab: Trainer, tmp_path: Path
) -> None:
    lines = mjlab.run_program(CURRICULA.format(task=ROUGH_GO1), tmp_path)

    result = _result(lines)
    assert result["levels"] == [0, 3, 5, 7, 8, 9]
    assert result["away"] < 1.0, "of the origins of these levels, which are metres apart"
    assert result["counter"] == 130_000
    assert result["fastest"] == [-1.5, 2.0], "the range of that stage"
    assert result["curricula"] == ["terrain_levels", "command_vel"]


EVERY_TASK = """
import json
from trainer.agent import agent_cfg_of
from canard.models import TrainingConfig
from mjlab.tasks.registry import load_env_cfg, load_rl_cfg
from rsl_rl.utils import resolve_callable
from trainer.simulators.isaaclab_cfg import reward_terms, set_reward_weights
from trainer.simulators.mjlab import agent_cfg_of_task
from trainer.simulators.mjlab_tasks import task_ids
import inspect

wrong = {}
for task_name in task_ids():
    try:
        env_cfg = load_env_cfg(task_name)
        term = next(iter(reward_terms(env_cfg)))
        set_reward_weights(env_cfg, {term: 2})
        assert type(env_cfg.rewards[term].weight) is float
        config = TrainingConfig(task_name=task_name, num_envs=64, gamma=0.5)
        agent = agent_cfg_of(config, agent_cfg_of_task(task_name))
        assert agent["algorithm"]["gamma"] == 0.5
        for network in ("actor", "critic"):
            settings = dict(agent[network])
            signature = inspect.signature(resolve_callable(settings.pop("class_name")))
            signature.bind(None, None, None, None, **settings)
    except Exception as error:
        wrong[task_name] = repr(error)
print("RESULT", json.dumps([task_ids(), wrong]))
"""


def test_every_task_of_mjlab_takes_our_settings(mjlab: Trainer, tmp_path: Path) -> None:
    names, wrong = _result(mjlab.run_program(EVERY_TASK, tmp_path))

    assert wrong == {}
    assert len(names) == 12


@pytest.mark.parametrize("task_name", ["Mjlab-Velocity-Flat-Unitree-G1", "Mjlab-Lift-Cube-Yam-Rgb"])
def test_a_humanoid_and_an_arm_that_sees_train_too(mjlab: Trainer, tmp_path: Path, task_name: str) -> None:
    ended = mjlab.run(tmp_path / "out", CONFIG | {"task_name": task_name, "max_iterations": 1})

    assert ended.code == 0, ended.log[-2000:]
    assert ended.summary["iteration"] == 1


def test_physics_steps_the_task_with_the_parameters_given(mjlab: Trainer, tmp_path: Path) -> None:
    config = {"task_name": GO1, "num_envs": 4, "steps": 20, "seed": 6, "params": {"episode_length_s": 0.1}}

    ended = mjlab.run(tmp_path / "out", config, physics=True)

    assert ended.code == 0, ended.log[-2000:]
    assert ended.summary["env_steps"] == 80
    assert ended.summary["task_metrics"]["episode_duration"] == pytest.approx(0.1, abs=0.021)


def test_a_dry_run_measures(mjlab: Trainer, tmp_path: Path) -> None:
    ended = mjlab.run(tmp_path / "out", CONFIG | {"max_iterations": 1000}, "--dry-run", "2")

    assert ended.code == 0, ended.log[-2000:]
    assert ended.summary["iteration"] == 2
    measured = ended.summary["dry_run"]
    assert min(measured["startup_s"], measured["iteration_s"], measured["env_steps_per_s"]) > 0
    assert measured["peak_host_bytes"] > 100e6
    assert ended.events("policy") == []


FILMED = CONFIG | {"max_iterations": 2, "video_enabled": True, "video_interval": 30}


# imageio-ffmpeg leaves the pipes of its reader to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_clips_show_the_robot_move(mjlab: Trainer, tmp_path: Path) -> None:
    ended = mjlab.run(tmp_path / "out", FILMED)

    assert ended.code == 0, ended.log[-2000:]
    assert ended.events("warning") == []
    assert [(event["path"], event["env_step"]) for event in ended.events("video")] == [
        ("videos/env_step_0.mp4", 0),
        ("videos/env_step_30.mp4", 30),
    ]
    frames = _frames(ended.output / "videos" / "env_step_0.mp4")
    assert len(frames) == 30
    assert frames[0].std() > 10, "something is seen"
    assert any(np.abs(frames[0].astype(int) - frame).max() > 60 for frame in frames), "it moves"


def test_without_a_renderer_there_is_one_warning_and_training_goes_on(mjlab: Trainer, tmp_path: Path) -> None:
    ended = mjlab.run(tmp_path / "out", FILMED, __EGL_VENDOR_LIBRARY_FILENAMES="/nonexistent")

    assert ended.code == 0, ended.log[-2000:]
    [warning] = ended.events("warning")
    assert "no video is recorded" in warning["message"]
    assert ended.summary["iteration"] == 2
    assert ended.events("video") == []


def test_one_command_trains_a_go1_on_the_embedded_platform(mjlab: Trainer, tmp_path: Path) -> None:
    overrides = ["task=go1_velocity", "num_envs=8", "max_iterations=2", "seed=1", "name=go1"]
    with own_platform(mjlab, tmp_path / "home") as variables:
        said = subprocess.run(
            [sys.executable, "-m", "canard_hydra", *overrides],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    assert said.returncode == 0, (said.stdout + said.stderr)[-3000:]
    assert "completed" in said.stdout + said.stderr
    artifacts = {path.name for path in (tmp_path / "home" / "artifacts").rglob("*") if path.is_file()}
    assert {"model_2.pt", "policy.pt", "policy.onnx", "summary.json"} <= artifacts


def _frames(path: Path) -> list[np.ndarray]:
    reader = imageio_ffmpeg.read_frames(path)
    width, height = next(reader)["size"]
    return [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader]


def _checkpoint(ended: Ended, iteration: int) -> dict[str, Any]:
    return torch.load(ended.output / "checkpoints" / f"model_{iteration}.pt", weights_only=True)


def _result(lines: list[str]) -> Any:
    [result] = [line for line in lines if line.startswith("RESULT ")]
    return json.loads(result.removeprefix("RESULT "))
