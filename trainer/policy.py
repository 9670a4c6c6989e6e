"""The policy as files that need no trainer: TorchScript and ONNX, each checked against the model."""

import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDict

from trainer.files import write_whole

FOLDER = "policy"
CHECKED_OBSERVATIONS = 64
TOLERANCE = 1e-4
OPSET = 18


class WrongExportError(Exception):
    """An exported policy does not act as the model does."""


def export(model: Any, observations: TensorDict, output: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """Write policy.pt and policy.onnx; returns (path relative to output, format) of each, and what failed.

    Both take the concatenated observation groups of the actor, (n, obs_dim), and give its mean actions,
    (n, num_actions). The observation normaliser is inside. A file is there only if it was seen to give the
    model's own actions on random observations. A failure does not end the training: it is done, and its
    checkpoint holds the policy.
    """
    written, problems = [], []
    for file_format in FORMATS:
        path = output / FOLDER / file_format.filename
        try:
            write_whole(path, partial(_save_checked, file_format, model, observations))
            written.append((f"{FOLDER}/{path.name}", file_format.name))
        except Exception as error:
            traceback.print_exc()
            path.with_name(f"{path.name}.tmp").unlink(missing_ok=True)
            problems.append(f"{path.name} was not exported: {type(error).__name__}: {error}")
    return written, problems


def _save_checked(file_format: "Format", model: Any, observations: TensorDict, path: Path) -> None:
    inputs, wanted = _examples(model, observations)
    file_format.save(model, path)
    with torch.inference_mode():
        got = file_format.run(path, inputs)
    _compare(file_format.filename, got, wanted)


def _examples(model: Any, observations: TensorDict) -> tuple[torch.Tensor, torch.Tensor]:
    groups = {name: observations[name].shape[-1] for name in model.obs_groups}
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(CHECKED_OBSERVATIONS, sum(groups.values()), generator=generator)
    parts = torch.split(inputs, list(groups.values()), dim=1)
    device = next(model.parameters()).device
    grouped = TensorDict(
        {name: part.to(device) for name, part in zip(groups, parts, strict=True)}, batch_size=[len(inputs)]
    )
    with torch.inference_mode():
        return inputs, model(grouped).cpu()


def _save_script(model: Any, path: Path) -> None:
    with _no_word_of_deprecation():
        torch.jit.script(model.as_jit().to("cpu").eval()).save(str(path))


def _run_script(path: Path, inputs: torch.Tensor) -> torch.Tensor:
    with _no_word_of_deprecation():
        scripted = torch.jit.load(path)  # type: ignore[no-untyped-call]
    actions: torch.Tensor = scripted(inputs)
    return actions


@contextmanager
def _no_word_of_deprecation() -> Iterator[None]:
    """torch announces the end of TorchScript, and of its ONNX tracer; robots' runtimes still read both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _save_onnx(model: Any, path: Path) -> None:
    exported = model.as_onnx(verbose=False).to("cpu").eval()
    with _no_word_of_deprecation():
        torch.onnx.export(
            exported,
            exported.get_dummy_inputs(),
            str(path),
            opset_version=OPSET,
            input_names=exported.input_names,
            output_names=exported.output_names,
            dynamic_axes={name: {0: "batch"} for name in (*exported.input_names, *exported.output_names)},
            dynamo=False,
        )


def _run_onnx(path: Path, inputs: torch.Tensor) -> torch.Tensor:
    """By ONNX's own reference evaluator: slow, but there wherever onnx is."""
    from onnx.reference import ReferenceEvaluator

    return torch.from_numpy(ReferenceEvaluator(str(path)).run(None, {"obs": inputs.numpy()})[0])


def _compare(name: str, got: torch.Tensor, wanted: torch.Tensor) -> None:
    difference = (got - wanted).detach().abs().max().item()
    if not difference <= TOLERANCE * max(1.0, float(wanted.abs().max())):
        raise WrongExportError(f"{name} differs from the model by {difference:g} on random observations")


@dataclass(frozen=True, kw_only=True)
class Format:
    """One kind of file: how it is written, and how it is run to be checked."""

    filename: str
    name: str
    save: Callable[[Any, Path], None]
    run: Callable[[Path, torch.Tensor], torch.Tensor]


FORMATS = (
    Format(filename="policy.pt", name="torchscript", save=_save_script, run=_run_script),
    Format(filename="policy.onnx", name="onnx", save=_save_onnx, run=_run_onnx),
)
