"""The policy as files that need no trainer: TorchScript and ONNX, each checked against the model."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
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


def export(model: Any, observations: TensorDict, output: Path) -> list[tuple[str, str]]:
    """Write policy.pt and policy.onnx; returns (path relative to output, format) of each.

    Both take the concatenated observation groups of the actor, (n, obs_dim), and give its mean actions,
    (n, num_actions). The observation normaliser is inside.

    Raises:
        WrongExportError: an export gives other actions than the model on random observations.
    """
    folder = output / FOLDER
    inputs, wanted = _examples(model, observations)
    write_whole(folder / "policy.pt", lambda path: _save_script(model, path))
    _compare("policy.pt", _run_script(folder / "policy.pt", inputs), wanted)
    write_whole(folder / "policy.onnx", lambda path: _save_onnx(model, path))
    _compare("policy.onnx", _run_onnx(folder / "policy.onnx", inputs), wanted)
    return [(f"{FOLDER}/policy.pt", "torchscript"), (f"{FOLDER}/policy.onnx", "onnx")]


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
        script: Any = torch.jit.load(path)  # type: ignore[no-untyped-call]
    actions: torch.Tensor = script(inputs)
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
