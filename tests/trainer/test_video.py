"""Videos of a training: there, whole and moving, and never in the training's way."""

import signal
import sys
import time
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
import torch

# imageio-ffmpeg leaves the pipes of its reader to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

CARTPOLE = {
    "task_name": "Canard-Cartpole-v0",
    "num_envs": 8,
    "max_iterations": 10,
    "seed": 3,
    "video_enabled": True,
    "video_interval": 100,
}
PENDULUM = {**CARTPOLE, "task_name": "InvertedPendulum-v5", "num_envs": 16, "max_iterations": 2}


def decoded(path: Path) -> tuple[dict, list[np.ndarray]]:
    reader = imageio_ffmpeg.read_frames(path)
    told = next(reader)
    width, height = told["size"]
    return told, [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader]


def parameters(output: Path) -> dict[str, torch.Tensor]:
    newest = max((output / "checkpoints").glob("*.pt"), key=lambda path: int(path.stem[6:]))
    return torch.load(newest, weights_only=True)["actor_state_dict"]


def alike(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize(("config", "clips"), [(CARTPOLE, [0, 100, 200]), (PENDULUM, [0, 100, 200])])
def test_clips_that_move_begin_at_every_interval_and_change_no_weight(trainer, config, clips):
    filmed = trainer.run(config)
    unseen = trainer.run({**config, "video_enabled": False})

    assert filmed.code == 0, filmed.stderr
    assert filmed.events("warning") == []
    events = filmed.events("video")
    assert [event["env_step"] for event in events] == clips
    for event in events:
        path = filmed.output / event["path"]
        told, frames = decoded(path)
        assert (told["codec"], told["pix_fmt"][:7]) == ("h264", "yuv420p")
        assert len(frames) > 10
        assert any(np.abs(frames[0].astype(int) - frame).max() > 60 for frame in frames)
        content = path.read_bytes()
        assert 0 < content.index(b"moov") < content.index(b"mdat"), "a browser has to load it all first"
    assert [path.name for path in sorted((filmed.output / "videos").iterdir())] == [
        f"env_step_{clip}.mp4" for clip in clips
    ]
    assert alike(parameters(filmed.output), parameters(unseen.output))
    assert not (unseen.output / "videos").exists()


def test_a_resumed_training_films_on_and_no_clip_twice(trainer):
    first = trainer.run({**CARTPOLE, "max_iterations": 5})
    checkpoint = first.output / "checkpoints/model_5.pt"

    second = trainer.run(CARTPOLE, "--resume", str(checkpoint))

    assert [event["env_step"] for event in first.events("video")] == [0, 100]
    assert [event["env_step"] for event in second.events("video")] == [200]


def test_a_stop_finishes_the_clip_that_is_open(trainer):
    process, output = trainer.start({**CARTPOLE, "max_iterations": 100_000, "video_interval": 100_000})
    events = output / "events.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and '"event": "iteration"' not in (
        events.read_text() if events.exists() else ""
    ):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)

    assert process.returncode == 75
    assert '"event": "video"' in events.read_text()
    _, frames = decoded(output / "videos/env_step_0.mp4")
    assert frames


def test_only_the_first_of_two_ranks_films(trainer):
    ended = trainer.run({**CARTPOLE, "gpu_count": 2, "max_iterations": 2})

    assert ended.code == 0, ended.stderr
    assert [event["env_step"] for event in ended.events("video")] == [0]


def test_without_an_encoder_there_is_one_warning_that_says_what_to_install(trainer, tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/imageio_ffmpeg.py").write_text(
        "raise ModuleNotFoundError('no', name='imageio_ffmpeg')"
    )

    ended = trainer.run({**CARTPOLE, "max_iterations": 2}, path=tmp_path / "broken")

    assert ended.code == 0, ended.stderr
    [warning] = ended.events("warning")
    assert "pip install 'imageio-ffmpeg" in warning["message"]
    assert ended.events("video") == []


@pytest.mark.skipif(sys.platform != "linux", reason="MUJOCO_GL is for Linux")
@pytest.mark.parametrize("backend", ["osmesa", "garbage", "glfw"])
def test_a_renderer_that_cannot_work_is_one_warning_and_the_training_goes_on(trainer, monkeypatch, backend):
    monkeypatch.setenv("MUJOCO_GL", backend)
    monkeypatch.delenv("DISPLAY", raising=False)

    ended = trainer.run(PENDULUM)

    assert ended.code == 0, ended.stderr
    warnings = ended.events("warning")
    if not ended.events("video"):  # OSMesa may be there
        assert len(warnings) == 1
        assert f"MUJOCO_GL={backend}" in warnings[0]["message"]
        assert "unset MUJOCO_GL" in warnings[0]["message"]


@pytest.mark.skipif(sys.platform != "linux", reason="MUJOCO_GL is for Linux")
@pytest.mark.parametrize("backend", [None, "egl", "osmesa", "glfw", "garbage"])
def test_a_training_without_video_works_under_every_setting(trainer, monkeypatch, backend):
    monkeypatch.delenv("DISPLAY", raising=False)
    if backend is None:
        monkeypatch.delenv("MUJOCO_GL", raising=False)
    else:
        monkeypatch.setenv("MUJOCO_GL", backend)

    ended = trainer.run({**PENDULUM, "video_enabled": False, "max_iterations": 1})

    assert ended.code == 0, ended.stderr


def test_a_task_that_draws_nothing_is_one_warning(trainer, tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code/user_code.py").write_text(
        "import gymnasium\n"
        "from gymnasium.envs.classic_control.pendulum import PendulumEnv\n"
        "class Blind(PendulumEnv):\n"
        "    metadata = {'render_modes': []}\n"
        "gymnasium.register('Blind-v0', entry_point='user_code:Blind', max_episode_steps=50)\n"
    )
    config = {**PENDULUM, "task_name": "Blind-v0", "max_iterations": 1}

    ended = trainer.run(config, "--import", "user_code", path=tmp_path / "code")

    assert ended.code == 0, ended.stderr
    [warning] = ended.events("warning")
    assert "draws no picture" in warning["message"]
