"""Isaac Lab 3.0.0 really trains here: on the CPU, with Newton, its stock cartpole and a user's project."""

import json
import signal
from pathlib import Path

import pytest
import torch
from trainers import LIMIT_S, Ended, Trainer, newest_checkpoint, wait_for

STOCK = "Isaac-Cartpole-Direct"


@pytest.fixture(scope="module")
def stock_run(isaaclab: Trainer, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    config = {
        "task_name": STOCK,
        "num_envs": 64,
        "max_iterations": 25,
        "seed": 1,
        "reward_weights": {"rew_scale_alive": 2},
    }
    return isaaclab.run(tmp_path_factory.mktemp("stock") / "out", config)


@pytest.fixture(scope="module")
def direct_run(rail_robot: Trainer, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    config = {
        "task_name": "Rail-Balance-Direct-v0",
        "num_envs": 32,
        "max_iterations": 15,
        "seed": 2,
        "actor_hidden_dims": [16],
        "learning_rate": 0.002,
        "schedule": "fixed",
        "reward_weights": {"alive_reward": 3},
    }
    return rail_robot.run(tmp_path_factory.mktemp("direct") / "out", config, "--import", "rail_robot")


def test_the_stock_cartpole_trains_and_its_reward_rises(stock_run: Ended) -> None:
    assert stock_run.code == 0, stock_run.log[-2000:]
    summary = stock_run.summary
    assert (summary["iteration"], summary["env_steps"]) == (25, 25 * 16 * 64)
    assert summary["mean_reward"] > 2 * summary["first_mean_reward"] > 0
    assert stock_run.events("started")[0]["simulator"] == "isaaclab"
    assert [event["iteration"] for event in stock_run.events("iteration")] == list(range(1, 26))


# torch announces the end of TorchScript; robots' runtimes still read it.
@pytest.mark.filterwarnings("ignore:.torch.jit.load. is deprecated:DeprecationWarning")
def test_the_policy_is_exported(stock_run: Ended) -> None:
    policy = torch.jit.load(stock_run.output / "policy" / "policy.pt")

    assert policy(torch.zeros(3, 4)).shape == (3, 1)
    assert {event["format"] for event in stock_run.events("policy")} == {"torchscript", "onnx"}


def test_the_tasks_own_agent_is_the_base(stock_run: Ended) -> None:
    actor = _checkpoint(stock_run, 25)["actor_state_dict"]

    assert [tuple(w.shape) for name, w in actor.items() if name.endswith("weight")] == [
        (32, 4),
        (32, 32),
        (1, 32),
    ]


def test_only_fields_that_the_user_set_go_over_the_agent(direct_run: Ended) -> None:
    assert direct_run.code == 0, direct_run.log[-2000:]
    contents = _checkpoint(direct_run, 15)
    actor, critic = (_shapes(contents[f"{name}_state_dict"]) for name in ("actor", "critic"))

    assert actor == [(16, 4), (1, 16)]
    assert critic == [(40, 4), (24, 40), (1, 24)], "the project's own critic"
    assert any("normalizer" in name for name in contents["actor_state_dict"]), "the project's own normaliser"
    assert {event["learning_rate"] for event in direct_run.events("iteration")} == {0.002}


def test_a_project_written_for_isaac_sim_runs_on_newton_and_says_so(direct_run: Ended) -> None:
    warnings = [event["message"] for event in direct_run.events("warning")]

    assert any("Isaac Sim" in message and "newton_mjwarp" in message for message in warnings)
    assert direct_run.summary["mean_reward"] > direct_run.summary["first_mean_reward"]


def test_reward_weights_of_a_direct_task_are_its_attributes(
    rail_robot: Trainer, direct_run: Ended, tmp_path: Path
) -> None:
    config = json.loads((direct_run.output.parent / "out.json").read_text())
    silenced = dict.fromkeys(("alive_reward", "fall_penalty", "speed_penalty", "tilt_penalty"), 0)

    ended = rail_robot.run(
        tmp_path / "out",
        config | {"max_iterations": 2, "reward_weights": silenced},
        "--import",
        "rail_robot",
    )

    assert ended.summary["mean_reward"] == 0.0
    assert direct_run.summary["first_mean_reward"] > 0


def test_a_manager_based_task_is_found_through_the_projects_entry_point(
    rail_robot: Trainer, tmp_path: Path
) -> None:
    config = {
        "task_name": "Rail-Balance-v0",
        "num_envs": 32,
        "max_iterations": 15,
        "seed": 3,
        "reward_weights": {"alive": 2},
    }

    ended = rail_robot.run(tmp_path / "out", config)

    assert ended.code == 0, ended.log[-2000:]
    assert ended.summary["mean_reward"] > ended.summary["first_mean_reward"]


@pytest.mark.parametrize(
    ("task_name", "weights", "known"),
    [
        ("Rail-Balance-v0", {"alife": 1.0}, "alive, cart_speed, mast_speed, terminating"),
        ("Rail-Balance-Direct-v0", {"alive": 1.0}, "alive_reward"),
    ],
)
def test_an_unknown_reward_weight_is_refused_before_the_simulator_starts(
    rail_robot: Trainer, tmp_path: Path, task_name: str, weights: dict[str, float], known: str
) -> None:
    ended = rail_robot.run(
        tmp_path / "out", {"task_name": task_name, "num_envs": 4, "reward_weights": weights}
    )

    assert ended.code == 2
    message = ended.events("failed")[0]["message"]
    assert next(iter(weights)) in message
    assert known in message
    assert "Starting the simulation" not in ended.log


def test_a_misspelt_task_is_refused_with_the_near_ones(isaaclab: Trainer, tmp_path: Path) -> None:
    ended = isaaclab.run(tmp_path / "out", {"task_name": "Isaac-Cartpole-Direkt", "num_envs": 4})

    assert ended.code == 2
    assert "Isaac-Cartpole-Direct" in ended.events("failed")[0]["message"]


def test_a_killed_training_goes_on_where_its_newest_checkpoint_is(isaaclab: Trainer, tmp_path: Path) -> None:
    config = {"task_name": STOCK, "num_envs": 16, "max_iterations": 40, "seed": 4}
    first = isaaclab.start(tmp_path / "first", config)
    wait_for(tmp_path / "first" / "checkpoints" / "model_8.pt", first)
    first.kill()
    first.wait()
    newest = newest_checkpoint(tmp_path / "first")
    done = int(newest.stem.split("_")[1])

    ended = isaaclab.run(tmp_path / "second", config, "--resume", str(newest))

    assert ended.code == 0, ended.log[-2000:]
    assert [event["iteration"] for event in ended.events("iteration")] == list(range(done + 1, 41))
    counter = _checkpoint(ended, 40)["canard"]["simulator_state"]["common_step_counter"]
    assert counter == 40 * 16, "curricula go on"
    assert ended.summary["env_steps"] == 40 * 16 * 16


def test_sigterm_leaves_a_checkpoint_and_the_code_of_a_preemption(isaaclab: Trainer, tmp_path: Path) -> None:
    config = {"task_name": STOCK, "num_envs": 16, "max_iterations": 10_000, "seed": 5}
    process = isaaclab.start(tmp_path / "out", config)
    wait_for(tmp_path / "out" / "events.jsonl", process, text='"event": "iteration"')

    process.send_signal(signal.SIGTERM)

    assert process.wait(timeout=LIMIT_S) == 75
    assert list((tmp_path / "out" / "checkpoints").glob("model_*.pt"))
    assert not (tmp_path / "out" / "summary.json").exists()


def test_two_ranks_train_together(isaaclab: Trainer, tmp_path: Path) -> None:
    config = {"task_name": STOCK, "num_envs": 16, "max_iterations": 3, "seed": 1, "gpu_count": 2}
    ended = isaaclab.run(tmp_path / "out", config)

    assert ended.code == 0, ended.log[-2000:]
    per_iteration = ended.events("iteration")[0]["env_steps"]
    assert per_iteration % (2 * 16) == 0
    assert [event["iteration"] for event in ended.events("iteration")] == [1, 2, 3]
    assert ended.summary["env_steps"] == 3 * per_iteration


def test_physics_steps_the_task_with_the_parameters_given(isaaclab: Trainer, tmp_path: Path) -> None:
    config = {"task_name": STOCK, "num_envs": 4, "steps": 30, "seed": 6, "params": {"episode_length_s": 0.1}}

    ended = isaaclab.run(tmp_path / "out", config, physics=True)

    assert ended.code == 0, ended.log[-2000:]
    assert ended.summary["task_metrics"]["episode_duration"] == pytest.approx(0.1, abs=0.02)


FRAMES = """
from trainer.simulators import make_simulator, simulator_of
from trainer.simulators.simulator import TaskRequest

said = []
request = TaskRequest(task_name="{task}", num_envs=4, seed=1, device="cpu", video=True, warn=said.append)
simulator = make_simulator(simulator_of("{task}"), request)
first = simulator.frame()
if first is not None:
    first = first.copy()
for _ in range(10):
    simulator.env.step(simulator.random_actions())
last = simulator.frame()
seen = None if first is None else (first.shape, bool(first.std() > 1), bool((first != last).any()))
print("FRAMES", seen, said)
"""


def test_pictures_show_the_robots_move(isaaclab: Trainer, tmp_path: Path) -> None:
    assert "FRAMES ((480, 640, 3), True, True) []" in _frames(isaaclab, tmp_path)


def test_without_a_renderer_there_is_one_warning_and_no_picture(isaaclab: Trainer, tmp_path: Path) -> None:
    printed = _frames(isaaclab, tmp_path, __EGL_VENDOR_LIBRARY_FILENAMES="/nonexistent")

    assert "FRAMES None ['video_enabled: nothing can be drawn here" in printed


def _frames(isaaclab: Trainer, folder: Path, **variables: str) -> str:
    return "\n".join(isaaclab.run_program(FRAMES.format(task=STOCK), folder, **variables))


def _checkpoint(ended: Ended, iteration: int) -> dict[str, dict[str, torch.Tensor]]:
    return torch.load(ended.output / "checkpoints" / f"model_{iteration}.pt", weights_only=True)


def _shapes(state: dict[str, torch.Tensor]) -> list[tuple[int, ...]]:
    return [tuple(w.shape) for name, w in state.items() if name.startswith("mlp.") and w.ndim == 2]
