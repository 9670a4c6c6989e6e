"""Videos of a training: a clip every so many env steps, which never changes or stops the training."""

import math
import traceback
from pathlib import Path

from canard.models import TrainingConfig
from trainer import opengl
from trainer.clip import Clip, encoder_problem
from trainer.events import EventLog
from trainer.simulators.simulator import Simulator

FOLDER = "videos"
LONGEST_CLIP_STEPS = 200
MOST_FRAMES_PER_S = 60.0
"""What screens show."""


class Recorder:
    """Films environment 0: a clip begins at env step 0 and then every `interval` env steps.

    Env steps are calls of the vectorised environment. A clip lasts LONGEST_CLIP_STEPS, or less where the
    next begins earlier, and is shown at the simulator's own pace. Whatever fails while drawing or encoding
    is told once, as a warning, and nothing is recorded any more.

    Args:
        env_step: so many were done before.
        hint: what is known to be wrong with drawing here; said if it fails.
    """

    def __init__(
        self,
        simulator: Simulator,
        *,
        output: Path,
        events: EventLog,
        interval: int,
        env_step: int,
        hint: str | None = None,
    ) -> None:
        self._simulator = simulator
        self._output = output
        self._events = events
        self._interval = interval
        self._env_step = env_step
        self._hint = hint
        self._length = min(LONGEST_CLIP_STEPS, interval)
        self._stride = max(1, math.ceil(1 / simulator.step_dt_s / MOST_FRAMES_PER_S - 1e-6))
        self._clip: Clip | None = None
        self._begun: dict[str, int] = {}
        self._gave_up = False

    def preflight(self) -> bool:
        """Draw one frame and encode it; False, and the warning is said, if that fails."""
        try:
            self._new_clip("preflight").try_out(self._frame())
        except Exception as error:
            self._give_up(error)
        return not self._gave_up

    def after_step(self, iteration: int) -> None:
        """Take the frame of the env step that was done; `iteration`: how many are done."""
        if self._gave_up:
            return
        try:
            self._record(iteration)
        except Exception as error:
            self._give_up(error)
        self._env_step += 1

    def finish(self) -> None:
        """Close the clip that is open, with what it has."""
        try:
            self._close_clip()
        except Exception as error:
            self._give_up(error)

    def _record(self, iteration: int) -> None:
        position = self._env_step % self._interval
        if position == 0:
            self._clip = self._new_clip(f"env_step_{self._env_step}")
            self._begun = {"env_step": self._env_step, "iteration": iteration}
        if self._clip is None:
            return
        if position % self._stride == 0:
            self._clip.add(self._frame())
        if position + 1 == self._length:
            self._close_clip()

    def _new_clip(self, name: str) -> Clip:
        path = self._output / FOLDER / f"{name}.mp4"
        return Clip(path, frames_per_s=1 / self._simulator.step_dt_s / self._stride)

    def _frame(self) -> object:
        frame = self._simulator.frame()
        if frame is None:
            raise NoPictureError(f"the {self._simulator.name} simulator draws no picture of this task")
        return frame

    def _close_clip(self) -> None:
        clip, self._clip = self._clip, None
        if clip is None:
            return
        clip.close()
        self._events.emit("video", path=clip.path.relative_to(self._output).as_posix(), **self._begun)

    def _give_up(self, error: Exception) -> None:
        self._gave_up = True
        if not isinstance(error, NoPictureError):
            traceback.print_exception(error)
        clip, self._clip = self._clip, None
        if clip is not None:
            clip.discard()
        _warn(self._events, _said(error) if self._hint is None else f"{self._hint} [{_said(error)}]")


class NoPictureError(Exception):
    """The simulator has no picture to give."""


def prepared(config: TrainingConfig, events: EventLog) -> tuple[TrainingConfig, str | None]:
    """Before mujoco is imported: the config, without video where nothing can be encoded, and a hint.

    The hint says what is wrong with drawing by MuJoCo here, for the recorder; a training without video is
    told at once if its MUJOCO_GL had to be changed for mujoco to be imported at all.
    """
    if config.video_enabled and (problem := encoder_problem()):
        _warn(events, problem)
        config = config.model_copy(update={"video_enabled": False})
    hint = opengl.settle(drawing=config.video_enabled)
    if hint is not None and not config.video_enabled:
        events.emit("warning", message=hint)
    return config, hint


def _warn(events: EventLog, reason: str) -> None:
    events.emit("warning", message=f"video_enabled: no video is recorded: {reason}")


def _said(error: Exception) -> str:
    first = str(error).strip().partition("\n")[0]
    return first if isinstance(error, NoPictureError) else f"{type(error).__name__}: {first}"
