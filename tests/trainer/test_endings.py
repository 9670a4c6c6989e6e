"""However a simulator or the machine ends a trainer, what is on disk is whole and says the truth."""

import signal
import time

import torch

CONFIG = {"task_name": "Canard-Cartpole-v0", "num_envs": 8, "max_iterations": 20, "seed": 1}

SAVES_SLOWLY = """
import time
import torch

save = torch.save

def slowly(contents, path):
    save(contents, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    if "model_6" in str(path):
        path.with_suffix(".half").touch()
        time.sleep(600)
    path.write_bytes(whole)

torch.save = slowly
"""

ENDS_WITH_0 = """
import atexit
import os
from trainer.simulators.cartpole import CartpoleEnv

atexit.register(os._exit, 0)  # as a simulator's app does

def broken(self, actions):
    raise RuntimeError("the physics exploded")

CartpoleEnv.step = broken
"""

HANGS = """
import time
import trainer.command
from trainer.simulators.cartpole import Cartpole

trainer.command.CLOSE_TIMEOUT_S = 1.0
Cartpole.close = lambda self: time.sleep(600)
"""


def code(tmp_path, text):
    (tmp_path / "code").mkdir()
    (tmp_path / "code/user_code.py").write_text(text)
    return {"path": tmp_path / "code"}


def test_killed_in_the_middle_of_a_save_the_newest_checkpoint_is_whole(trainer, tmp_path):
    how = code(tmp_path, SAVES_SLOWLY)
    process, output = trainer.start(CONFIG, "--import", "user_code", **how)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not list(output.glob("checkpoints/*.half")):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)

    there = sorted(path.name for path in (output / "checkpoints").glob("*.pt"))
    assert there == ["model_2.pt", "model_4.pt"]
    for name in there:
        torch.load(output / "checkpoints" / name, weights_only=True)
    resumed = trainer.run(CONFIG, "--resume", str(output / "checkpoints/model_4.pt"))
    assert resumed.code == 0, resumed.stderr
    assert resumed.events("iteration")[0]["iteration"] == 5


def test_an_exit_hook_makes_no_success_of_a_crash(trainer, tmp_path):
    ended = trainer.run(CONFIG, "--import", "user_code", **code(tmp_path, ENDS_WITH_0))

    assert ended.code == 1
    assert ended.events("failed")[0]["message"] == "the physics exploded"
    assert not (ended.output / "summary.json").exists()


def test_a_close_that_hangs_is_no_failure_of_what_is_done(trainer, tmp_path):
    ended = trainer.run(CONFIG, "--import", "user_code", **code(tmp_path, HANGS))

    assert ended.code == 0, ended.stderr
    assert ended.summary["iteration"] == 20
