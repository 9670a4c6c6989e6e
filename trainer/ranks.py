"""The processes that train one task together, one per GPU, and what they tell each other.

Each rank steps environments of its own and rsl-rl averages the gradients; only the first rank writes. The
variables are torchrun's, so that torchrun may start the trainer too.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from trainer.errors import ConfigurationError, DivergenceError

ValueT = TypeVar("ValueT")

STORE_VARIABLE = "CANARD_RANKS_STORE"
"""Path of the file in which the ranks of one machine find each other."""


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """This process among them; a process by itself is the first of one."""

    rank: int = 0
    """Over all machines."""
    local_rank: int = 0
    """On this machine: the number of its GPU."""
    size: int = 1

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> "Ranks":
        """From the environment variables that torchrun sets."""
        return cls(
            rank=int(variables.get("RANK", "0")),
            local_rank=int(variables.get("LOCAL_RANK", "0")),
            size=int(variables.get("WORLD_SIZE", "1")),
        )

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def device(self, asked: str) -> str:
        """The device of this rank for `auto`, `cpu` or `cuda`.

        Raises:
            ConfigurationError: there is no GPU for this rank.
        """
        import torch

        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if asked == "cpu" or (asked == "auto" and not gpus):
            return "cpu"
        if not gpus:
            raise ConfigurationError("--device cuda: torch sees no GPU in this environment")
        if self.local_rank >= gpus:
            raise ConfigurationError(
                f"gpu_count: {self.size}, and torch sees {gpus} GPUs in this environment"
            )
        return f"cuda:{self.local_rank}"

    def join(self, device: str) -> None:
        """Meet the others; returns when all are there. NCCL carries what is on a GPU, gloo the rest."""
        if self.size == 1:
            return
        import torch
        from torch import distributed

        if device != "cpu":
            torch.cuda.set_device(device)
        store = os.environ.get(STORE_VARIABLE)
        distributed.init_process_group(
            backend="gloo" if device == "cpu" else "cpu:gloo,cuda:nccl",
            init_method=f"file://{store}" if store else "env://",
            rank=self.rank,
            world_size=self.size,
        )

    def rsl_rl_cfg(self) -> dict[str, int] | None:
        """rsl-rl's `multi_gpu` configuration."""
        if self.size == 1:
            return None
        return {"global_rank": self.rank, "local_rank": self.local_rank, "world_size": self.size}

    def all_gathered(self, value: ValueT) -> list[ValueT]:
        """What every rank said, by rank. All have to call it; tensors must be on the CPU."""
        if self.size == 1:
            return [value]
        from torch import distributed

        values: list[Any] = [None] * self.size
        distributed.all_gather_object(values, value)
        return values

    def any(self, flag: bool) -> bool:
        """Whether it is so for one of them at least. All have to ask."""
        return any(self.all_gathered(flag))

    def wait(self) -> None:
        """Until all ranks are here."""
        self.all_gathered(None)

    @contextmanager
    def diverging_together(self) -> Iterator[None]:
        """A divergence that one rank finds is raised in all: else they would wait for its gradients."""
        mine: tuple[int, str] | None = None
        try:
            yield
        except DivergenceError as error:
            mine = error.iteration, error.term
        for rank, found in enumerate(self.all_gathered(mine)):
            if found is not None:
                iteration, term = found
                where = f" (rank {rank})" if self.size > 1 else ""
                raise DivergenceError(iteration=iteration, term=f"{term}{where}")
