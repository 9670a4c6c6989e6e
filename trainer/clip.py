"""One video file: frames go to ffmpeg as they come, and the file is whole or absent."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np

from trainer.files import write_whole

PART = "recording.part.mp4"
"""One name for all, so that processes that were killed leave one such file at most."""
ENCODER_TIMEOUT_S = 60.0
BROWSERS = ["-movflags", "+faststart"]
"""The index before the pictures: a browser plays the file while it loads."""
ONE_CORE = ["-threads", "1"]
"""The others are the training's."""


class EncodingError(Exception):
    """The encoder did not make of the frames what it should; the message says what, or ffmpeg did."""


class Clip:
    """Frames of one size, shown at one pace: H.264 with the colours that browsers know (yuv420p).

    Args:
        path: ends in .mp4.
    """

    def __init__(self, path: Path, *, frames_per_s: float) -> None:
        self.path = path
        self._part = path.with_name(PART)
        self._frames_per_s = frames_per_s
        self._size: tuple[int, int] | None = None
        self._writer: Generator[None, Any, None] | None = None
        self._frames = 0

    def add(self, frame: Any) -> None:
        """Encode one more frame: uint8, shape (height, width, 3).

        Raises:
            EncodingError: it is something else, or not of the size of the others.
        """
        picture = _even(frame)
        size = (picture.shape[1], picture.shape[0])
        if self._writer is None:
            self._size, self._writer = size, self._opened(size)
        if size != self._size:
            raise EncodingError(f"a frame is {size[0]}x{size[1]}, those before {self._size}")
        self._writer.send(picture)
        self._frames += 1

    def _opened(self, size: tuple[int, int]) -> Generator[None, Any, None]:
        import imageio_ffmpeg

        self._part.parent.mkdir(parents=True, exist_ok=True)
        writer: Generator[None, Any, None] = imageio_ffmpeg.write_frames(
            self._part,
            size,
            fps=self._frames_per_s,
            macro_block_size=2,
            ffmpeg_log_level="error",
            ffmpeg_timeout=ENCODER_TIMEOUT_S,
            output_params=[*ONE_CORE, *BROWSERS],
        )
        writer.send(None)
        return writer

    def close(self) -> None:
        """Put the file in its place.

        Raises:
            EncodingError: it is not whole.
        """
        self._finish()
        write_whole(self.path, self._part.replace)

    def discard(self) -> None:
        """Leave nothing behind."""
        if self._writer is not None:
            self._writer.close()
        self._part.unlink(missing_ok=True)

    def try_out(self, frame: Any) -> None:
        """See that this frame can be encoded; nothing is left behind.

        Raises:
            EncodingError: it cannot.
        """
        try:
            self.add(frame)
            self._finish()
        finally:
            self.discard()

    def _finish(self) -> None:
        import imageio_ffmpeg

        if self._writer is None:
            raise EncodingError("no frame was added")
        self._writer.close()
        if not self._part.exists() or not self._part.stat().st_size:
            raise EncodingError("ffmpeg wrote no file; the lines before this in the log say why")
        frames, _ = imageio_ffmpeg.count_frames_and_secs(self._part)
        if frames != self._frames:
            raise EncodingError(f"{frames} of {self._frames} frames are in the file")


def encoder_problem() -> str | None:
    """Why nothing can be encoded in this environment, and what to install; None if it can."""
    try:
        import imageio_ffmpeg

        imageio_ffmpeg.get_ffmpeg_exe()
    except ModuleNotFoundError as error:
        if error.name != "imageio_ffmpeg":
            return f"importing imageio_ffmpeg failed ({error})"
        return "the encoder is not installed here; pip install 'imageio-ffmpeg>=0.5'"
    except Exception as error:
        return f"the encoder cannot be used ({type(error).__name__}: {error})"
    return None


def _even(frame: Any) -> np.ndarray:
    """Without the last row or column where their number is odd: H.264 stores colours for two by two."""
    picture = np.asarray(frame)
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
        raise EncodingError(f"a frame is {picture.dtype} {picture.shape}, not uint8 (height, width, 3)")
    height, width = (size // 2 * 2 for size in picture.shape[:2])
    return np.ascontiguousarray(picture[:height, :width])
