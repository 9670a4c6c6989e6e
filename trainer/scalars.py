"""TensorBoard scalars under rsl-rl's own tags, so that curves of both lie over each other."""

from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

from trainer.report import IterationReport

FOLDER = "tensorboard"


class Scalars:
    """Writes one point per tag and iteration. Points at or after `start` by an earlier attempt are purged."""

    def __init__(self, output: Path, *, start: int) -> None:
        self._writer = SummaryWriter(
            str(output / FOLDER), purge_step=start + 1 if start else None, flush_secs=10
        )

    def add(self, report: IterationReport) -> None:
        points: dict[str, float | None] = {
            **{f"Loss/{name}": value for name, value in report.losses.items()},
            "Loss/learning_rate": report.learning_rate,
            "Policy/mean_std": report.action_std,
            "Perf/total_fps": report.env_steps_per_s,
            "Perf/collection_time": report.collection_s,
            "Perf/learning_time": report.learning_s,
            "Train/mean_reward": report.mean_reward,
            "Train/mean_episode_length": report.mean_episode_length,
            **report.task_scalars,
        }
        for tag, value in points.items():
            if value is not None:
                self._writer.add_scalar(tag, value, report.iteration)

    def close(self) -> None:
        self._writer.close()
