"""Files of a training stay readable whatever ended it."""

import json
from pathlib import Path

import pytest
import torch
from tensordict import TensorDict

from trainer import policy
from trainer.events import EventLog
from trainer.files import write_whole


def test_an_event_after_a_torn_line_starts_a_line_of_its_own(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"event": "started"}\n{"event": "iter')

    log = EventLog(path)
    log.emit("finished")
    log.close()

    assert json.loads(path.read_text().splitlines()[-1])["event"] == "finished"


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path):
    path = tmp_path / "model_1.pt"
    path.write_text("whole")

    def full_disk(temporary: Path) -> None:
        temporary.write_text("ha")
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        write_whole(path, full_disk)

    assert path.read_text() == "whole"


class Forgetful(torch.nn.Module):
    """A model whose TorchScript export leaves the observation normaliser out, and that has no ONNX form."""

    obs_groups = ("policy",)

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def forward(self, observations: TensorDict) -> torch.Tensor:
        return self.layer(observations["policy"] * 100.0)

    def as_jit(self) -> torch.nn.Module:
        return self.layer

    def as_onnx(self, *, verbose: bool) -> torch.nn.Module:
        raise NotImplementedError("recurrent models")


def test_an_export_that_acts_otherwise_is_not_left_and_said(tmp_path: Path):
    observations = TensorDict({"policy": torch.zeros(2, 3)}, batch_size=[2])

    written, problems = policy.export(Forgetful(), observations, tmp_path)

    assert written == []
    assert list((tmp_path / "policy").iterdir()) == []
    assert "policy.pt" in problems[0]
    assert "differs from the model" in problems[0]
    assert "policy.onnx" in problems[1]
