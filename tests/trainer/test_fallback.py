"""Of several checkpoints to go on from, newest first, the first that is sound is taken."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer import checkpoints
from trainer.errors import ConfigurationError

CARTPOLE = {"task_name": "Canard-Cartpole-v0", "num_envs": 4, "max_iterations": 3, "seed": 0}
OLD = (Path(__file__).parent / "old_checkpoints" / "4.0.1_plain.pt").read_bytes()


def resumes(*paths: Path) -> list[str]:
    return [argument for path in paths for argument in ("--resume", str(path))]


@pytest.fixture
def sound(trainer) -> Path:
    """A checkpoint of two iterations."""
    ended = trainer.run({**CARTPOLE, "max_iterations": 2})
    assert ended.code == 0, ended.stderr
    return ended.output / "checkpoints/model_2.pt"


def unsound(folder: Path, sound: Path) -> dict[str, tuple[Path, str]]:
    """Each kind of damage: a file with it, and a word of the reason."""
    poisoned = torch.load(sound, weights_only=True)
    poisoned["optimizer_state_dict"]["state"][3]["exp_avg"][0] = float("inf")
    newer = torch.load(sound, weights_only=True)
    newer["canard"]["version"] = 99
    kinds = {
        "missing": None,
        "empty": b"",
        "truncated": sound.read_bytes()[:3000],
        "foreign": {"state_dict": {"weight": torch.zeros(3)}},
        "poisoned": poisoned,
        "newer": newer,
    }
    words = {
        "missing": "no such file",
        "empty": "cannot be read",
        "truncated": "cannot be read",
        "foreign": "not made by rsl-rl",
        "poisoned": "exp_avg is not finite",
        "newer": "layout 99",
    }
    files = {}
    for number, (kind, content) in enumerate(kinds.items()):
        path = folder / kind / f"model_{20 - number}.pt"
        path.parent.mkdir()
        if isinstance(content, bytes):
            path.write_bytes(content)
        if isinstance(content, dict):
            torch.save(content, path)
        files[kind] = (path, words[kind])
    return files


def test_each_one_that_is_not_sound_is_told_with_its_reason_and_the_next_is_taken(
    trainer, sound: Path, tmp_path: Path
):
    bad = unsound(tmp_path, sound)

    ended = trainer.run(CARTPOLE, *resumes(*(path for path, _ in bad.values()), sound))

    assert ended.code == 0, ended.stderr
    warnings = [event["message"] for event in ended.events("warning")]
    assert len(warnings) == len(bad)
    for warning, (path, word) in zip(warnings, bad.values(), strict=True):
        assert str(path) in warning
        assert word in warning
    [started] = ended.events("started")
    assert started["resumed_from"] == str(sound)
    assert [event["iteration"] for event in ended.events("iteration")] == [3]


def test_when_none_is_sound_all_are_named_and_nothing_starts_from_scratch(
    trainer, sound: Path, tmp_path: Path
):
    bad = unsound(tmp_path, sound)
    paths = [bad[kind][0] for kind in ("truncated", "missing")]

    ended = trainer.run(CARTPOLE, *resumes(*paths))

    assert ended.code == 2
    [failed] = ended.events("failed")
    assert all(str(path) in failed["message"] for path in paths)
    assert ended.events("started") == []


def test_a_sound_one_of_another_network_is_an_error_not_a_reason_to_take_an_older(trainer, sound: Path):
    other = trainer.run({**CARTPOLE, "max_iterations": 1, "critic_hidden_dims": [16]})
    [newest] = (other.output / "checkpoints").glob("model_*.pt")

    ended = trainer.run({**CARTPOLE, "critic_hidden_dims": [64, 64]}, *resumes(newest, sound))
    other_task = trainer.run({**CARTPOLE, "task_name": "Pendulum-v1", "num_envs": 2}, *resumes(sound))

    assert ended.code == other_task.code == 2
    message = ended.events("failed")[0]["message"]
    assert "critic_hidden_dims: checkpoint has [16], config has [64, 64]" in message
    assert ended.events("warning") == []
    assert (
        "actor: checkpoint has [4, 64, 64, 1], config has [3, 128, 128, 1]"
        in (other_task.events("failed")[0]["message"])
    )


@given(
    kept=st.integers(0, len(OLD) - 1),
    changes=st.dictionaries(st.integers(0, len(OLD) - 1), st.binary(min_size=1, max_size=1)),
)
@settings(max_examples=150, deadline=None)
def test_a_damaged_file_is_refused_as_such_or_is_a_whole_checkpoint(tmp_path_factory, kept: int, changes):
    content = bytearray(OLD)
    for position, byte in changes.items():
        content[position : position + 1] = byte
    path = tmp_path_factory.getbasetemp() / "model_7.pt"

    for damaged in (bytes(content[:kept]), bytes(content)):
        path.write_bytes(damaged)
        refusal = refusal_of(path)
        assert refusal is None or refusal.startswith(f"checkpoint {path}: ")


def refusal_of(path: Path) -> str | None:
    """None where the file is taken; any other error is a failure of the test."""
    try:
        checkpoints.load(path)
    except ConfigurationError as error:
        return str(error)
    return None
