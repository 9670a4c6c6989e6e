"""The training itself: rollouts and PPO updates by rsl-rl's algorithm, in a loop that can be interrupted.

rsl-rl's own runner repeats an iteration after a resume, counts "N more", and saves neither random states nor
the environment; this loop counts iterations done and ends at a total.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from rsl_rl.algorithms import PPO
from tensordict import TensorDict

from canard.models import TrainingConfig
from trainer import checkpoints, randomness
from trainer.checkpoints import SavedCheckpoint
from trainer.episodes import EpisodeStatistics
from trainer.errors import DivergenceError, Preempted
from trainer.events import EventLog
from trainer.fitting import fitted, in_words
from trainer.normalisers import SharedNormalisers
from trainer.ranks import Ranks
from trainer.report import IterationReport
from trainer.scalars import Scalars
from trainer.shapes import refuse_other_shapes
from trainer.simulators.simulator import Simulator
from trainer.stop import StopRequest
from trainer.video import Recorder

UNRELATED_TO_POLICY = {"code_url", "code_ref", "checkpoint_url"}
"""Where things came from: a checkpoint is passed on, and they may be private."""
SAVES_PER_TASK = 10
LARGEST_SAVE_INTERVAL = 50
SAVE_EVERY_S = 180.0


class Training:
    """One task on one simulator.

    Args:
        agent_cfg: rsl-rl's configuration, already merged; see `trainer.agent`.
        output: folder that everything is written under.
        ranks: this process among those that train the task; only the first writes.
    """

    def __init__(
        self,
        config: TrainingConfig,
        simulator: Simulator,
        agent_cfg: dict[str, Any],
        *,
        device: str,
        output: Path,
        events: EventLog,
        stop: StopRequest,
        ranks: Ranks,
    ) -> None:
        self.config = config
        self.simulator = simulator
        self.env = simulator.env
        self.device = device
        self.output = output
        self.events = events
        self.stop = stop
        self.ranks = ranks
        self.num_steps: int = agent_cfg["num_steps_per_env"]
        self.alg = PPO.construct_algorithm(self.env.get_observations(), self.env, agent_cfg, device)
        if ranks.size > 1:
            self.alg.broadcast_parameters()
        self.normalisers = SharedNormalisers(self.alg, ranks)
        self.episodes = EpisodeStatistics(self.env.num_envs, device)
        self.iteration = 0
        self.env_steps = 0
        self.saved: list[SavedCheckpoint] = []
        self.reports: list[IterationReport] = []
        self._task_scalars: dict[str, list[torch.Tensor | float]] = {}
        self.recorder: Recorder | None = None
        self._saved_iteration = 0
        self._last_save = time.monotonic()

    def learn(self) -> None:
        """Train to the total of max_iterations; a checkpoint is there at every end that saves anything.

        Raises:
            Preempted: a stop was requested; the iteration was finished and saved.
            DivergenceError: a number is not finite; the last checkpoint is the last good one.
        """
        scalars = Scalars(self.output, start=self.iteration) if self.ranks.is_first else None
        self.alg.train_mode()
        if self.simulator.start_at_random_episode_lengths and self.iteration == 0:
            self._spread_episode_ages()
        observations = self.env.get_observations().to(self.device)
        try:
            while self.iteration < self.config.max_iterations:
                if self.ranks.any(self.stop.requested):
                    self._save_unless_saved()
                    raise Preempted
                observations, report = self._iterate(observations)
                self.reports.append(report)
                if scalars is not None:
                    scalars.add(report)
                self.events.emit("iteration", **report.as_event())
                if self.ranks.any(self._save_is_due()):
                    self.save()
            self._save_unless_saved()  # also when it was done before it was resumed: this output has it too
        finally:
            if self.recorder is not None:
                self.recorder.finish()
            if scalars is not None:
                scalars.close()

    @property
    def steps_of_each_env(self) -> int:
        return self.env_steps // (int(self.env.num_envs) * self.ranks.size)

    @property
    def env_steps_per_iteration(self) -> int:
        return self.num_steps * int(self.env.num_envs) * self.ranks.size

    def _spread_episode_ages(self) -> None:
        ages = torch.randint_like(self.env.episode_length_buf, high=int(self.env.max_episode_length))
        self.env.episode_length_buf = ages

    def _iterate(self, observations: TensorDict) -> tuple[TensorDict, IterationReport]:
        start = time.perf_counter()
        with self.normalisers.shared(), self.ranks.diverging_together(), self._naming_nonfinite_numbers():
            observations = self._roll_out(observations)
        collected = time.perf_counter()
        losses = self.alg.update()
        learned = time.perf_counter()

        self.iteration += 1
        self.env_steps += self.env_steps_per_iteration
        self.episodes.close_iteration()
        with self.ranks.diverging_together():
            self._refuse_nonfinite_update(losses)
        return observations, self._report(losses, collected - start, learned - collected)

    def _roll_out(self, observations: TensorDict) -> TensorDict:
        with torch.inference_mode():
            for _ in range(self.num_steps):
                actions = self.alg.act(observations)
                observations, rewards, dones, extras = self.env.step(actions.to(self.env.device))
                observations, rewards, dones = (
                    observations.to(self.device),
                    rewards.to(self.device),
                    dones.to(self.device),
                )
                if self.recorder is not None:
                    self.recorder.after_step(self.iteration)
                self.alg.process_env_step(observations, rewards, dones, extras)
                self.episodes.add_step(rewards, dones)
                self._note_task_scalars(extras)
            self._refuse_nonfinite_rollout(observations)
            self.alg.compute_returns(observations)
        return observations

    @contextmanager
    def _naming_nonfinite_numbers(self) -> Iterator[None]:
        """Where a simulator chokes on a number that is not finite, that number is the cause to tell."""
        try:
            yield
        except DivergenceError:
            raise
        except Exception:
            seen = self.alg.transition.observations
            self._refuse_nonfinite_rollout(seen if seen is not None else self.alg.storage.observations)
            raise

    def _refuse_nonfinite_rollout(self, observations: TensorDict) -> None:
        # Observations first: a bad one makes the value of its step bad, and by it the reward.
        named = [
            (f"observation {name}", tensor)
            for seen in (self.alg.storage.observations, observations)
            for name, tensor in seen.items()
        ]
        self._refuse_nonfinite([*named, ("reward", self.alg.storage.rewards)], self.iteration + 1)

    def _refuse_nonfinite_update(self, losses: dict[str, float]) -> None:
        for name, value in losses.items():
            if not math.isfinite(value):
                raise DivergenceError(iteration=self.iteration, term=f"{name} loss")
        parameters = [
            (f"{network} parameter {name}", parameter)
            for network, model in (("actor", self.alg.actor), ("critic", self.alg.critic))
            for name, parameter in model.named_parameters()
        ]
        self._refuse_nonfinite(parameters, self.iteration)

    def _refuse_nonfinite(self, named: list[tuple[str, torch.Tensor]], iteration: int) -> None:
        floating = [(term, tensor) for term, tensor in named if tensor.is_floating_point()]
        # Together: asking each one would wait for the GPU each time.
        finite = torch.stack([torch.isfinite(tensor).all() for _, tensor in floating])
        if not finite.all():
            term, _ = floating[int(finite.logical_not().nonzero()[0])]
            raise DivergenceError(iteration=iteration, term=term)

    def _note_task_scalars(self, extras: dict[str, Any]) -> None:
        for name, value in (extras.get("log") or extras.get("episode") or {}).items():
            tag = name if "/" in name else f"Episode/{name}"
            # Read at the end of the iteration: reading one now would wait for the GPU in each step.
            number = value.float().mean() if torch.is_tensor(value) else float(value)
            self._task_scalars.setdefault(tag, []).append(number)

    def _report(self, losses: dict[str, float], collection_s: float, learning_s: float) -> IterationReport:
        task_scalars = {tag: _mean(values) for tag, values in self._task_scalars.items()}
        self._task_scalars.clear()
        return IterationReport(
            iteration=self.iteration,
            max_iterations=self.config.max_iterations,
            env_steps=self.env_steps,
            mean_reward=self.episodes.mean_reward,
            mean_episode_length=self.episodes.mean_length,
            collection_s=collection_s,
            learning_s=learning_s,
            env_steps_per_s=self.env_steps_per_iteration / (collection_s + learning_s),
            learning_rate=float(self.alg.learning_rate),
            action_std=self.alg.get_policy().output_std.mean().item(),
            losses={name: float(value) for name, value in losses.items()},
            task_scalars=task_scalars,
        )

    def _save_is_due(self) -> bool:
        interval = max(1, min(LARGEST_SAVE_INTERVAL, self.config.max_iterations // SAVES_PER_TASK))
        return self.iteration % interval == 0 or time.monotonic() - self._last_save > SAVE_EVERY_S

    def _save_unless_saved(self) -> None:
        if self.iteration and self._saved_iteration != self.iteration:
            self.save()

    def save(self) -> None:
        """Write a checkpoint of the iterations done, and say so. All ranks have to call it."""
        self._saved_iteration, self._last_save = self.iteration, time.monotonic()
        worlds = self.ranks.all_gathered(self._world())
        if self.ranks.is_first:
            self._write(worlds)
        self.ranks.wait()  # for the file: a rank that left earlier would be taken for one that failed

    def _write(self, worlds: list[dict[str, Any]]) -> None:
        mean_reward = self.episodes.mean_reward
        saved = checkpoints.save(
            self.output, iteration=self.iteration, mean_reward=mean_reward, contents=self._contents(worlds)
        )
        self.saved.append(saved)
        self.events.emit(
            "checkpoint",
            iteration=saved.iteration,
            path=saved.path,
            sha256=saved.sha256,
            size_bytes=saved.size_bytes,
            mean_reward=saved.mean_reward,
        )

    @property
    def best_checkpoint(self) -> SavedCheckpoint | None:
        """Of this attempt: the highest mean reward, of equal ones the later."""
        known = [saved for saved in self.saved if saved.mean_reward is not None]
        return max(known, key=lambda saved: (saved.mean_reward, saved.iteration), default=None)

    def _world(self) -> dict[str, Any]:
        """What this rank has that no other has: its environments, their episodes, its random generators."""
        world: dict[str, Any] = checkpoints.on_cpu(
            {
                "episodes": self.episodes.state_dict(),
                "randomness": randomness.state_dict(),
                "simulator_state": self.simulator.state_dict(),
            }
        )
        return world

    def _contents(self, worlds: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            **self.alg.save(),
            "iter": self.iteration,
            "infos": {"env_state": {"common_step_counter": self.steps_of_each_env}},
            checkpoints.OUR_KEY: {
                "version": checkpoints.OUR_VERSION,
                "iteration": self.iteration,
                "env_steps": self.env_steps,
                "task_name": self.config.task_name,
                "simulator": self.simulator.name,
                "num_envs": self.env.num_envs,
                "learning_rate_asked": self.config.learning_rate,
                "config": self.config.model_dump(mode="json", exclude=UNRELATED_TO_POLICY),
                **worlds[0],
                "other_ranks": worlds[1:],
            },
        }

    def resume(self, contents: dict[str, Any], *, name: str) -> None:
        """Go on from a loaded checkpoint, of ours or of rsl-rl; `name` is for people.

        Raises:
            ConfigurationError: of another network.
        """
        contents, anew = fitted(contents, self.alg)
        refuse_other_shapes(contents, self.alg.get_policy(), key="actor_state_dict", name="actor")
        refuse_other_shapes(contents, self.alg._raw_critic, key="critic_state_dict", name="critic")
        self.alg.load(contents, None, True)
        self.iteration = checkpoints.iteration_of(contents)
        ours = contents.get(checkpoints.OUR_KEY)
        if ours is None:
            self._warn(f"{name} {in_words(contents, anew)}")
            self._restore_curricula(contents)
            self._take_learning_rate(None)
            return
        if anew:
            self._warn(f"{name}: {' and '.join(anew)} start anew")
        self.env_steps = ours["env_steps"]
        self._restore_world(ours)
        self._take_learning_rate(ours["learning_rate_asked"])

    def _restore_curricula(self, contents: dict[str, Any]) -> None:
        """mjlab's own runner saves how many steps its curricula have seen."""
        state = (contents.get("infos") or {}).get("env_state")
        if state and self.simulator.name == "mjlab":
            self.simulator.load_state_dict(state, same_envs=False)

    def _restore_world(self, ours: dict[str, Any]) -> None:
        worlds = [ours, *ours.get("other_ranks", [])]
        world = worlds[self.ranks.rank] if self.ranks.rank < len(worlds) else None
        if world is None:
            return  # more GPUs than before: this one starts with new episodes
        state = world["simulator_state"]
        same = (
            state is not None
            and ours["simulator"] == self.simulator.name
            and ours["task_name"] == self.config.task_name
        )
        same_envs = ours["num_envs"] == self.env.num_envs
        self.episodes.load_state_dict(
            world["episodes"], same_episodes=same and same_envs and self.simulator.resumes_within_episodes
        )
        randomness.load_state_dict(world["randomness"])
        if same:
            self.simulator.load_state_dict(state, same_envs=same_envs)
        elif ours["task_name"] != self.config.task_name:
            self._warn(f"the checkpoint is of {ours['task_name']}, this task is {self.config.task_name}")

    def _take_learning_rate(self, asked_then: float | None) -> None:
        """A rate that the user asks for now, and did not then, wins over the one that was saved."""
        asked = self.config.learning_rate
        if asked is None or asked in (asked_then, self.alg.learning_rate):
            return
        self._warn(
            f"learning_rate: {asked:g} as configured, not {self.alg.learning_rate:g} of the checkpoint"
        )
        self.alg.learning_rate = asked
        for group in self.alg.optimizer.param_groups:
            group["lr"] = asked

    def _warn(self, message: str) -> None:
        self.events.emit("warning", message=message)


def _mean(values: list[torch.Tensor | float]) -> float:
    tensors = [value for value in values if torch.is_tensor(value)]
    if len(tensors) == len(values):
        return torch.stack(tensors).mean().item()
    return fmean(float(value) for value in values)
