"""Observation statistics of ranks that train together, kept as if one process had seen it all.

rsl-rl 5.5 shares them itself. With the rsl-rl before, each rank has those of its own environments, and so the
same weights act differently on each.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from rsl_rl.modules import EmpiricalNormalization

from trainer.ranks import Ranks


@dataclass(frozen=True)
class Totals:
    """What a normaliser has seen: how many, their sum and the sum of their squares."""

    count: int
    sums: torch.Tensor
    squares: torch.Tensor

    @classmethod
    def of(cls, normaliser: Any) -> "Totals":
        count = int(normaliser.count)
        mean, variance = normaliser._mean.double().cpu(), normaliser._var.double().cpu()
        return cls(count, count * mean, count * (variance + mean.square()))

    def put_into(self, normaliser: Any) -> None:
        mean = self.sums / self.count
        variance = (self.squares / self.count - mean.square()).clamp(min=0)
        normaliser.count.fill_(self.count)
        normaliser._mean.copy_(mean)
        normaliser._var.copy_(variance)
        normaliser._std = torch.sqrt(normaliser._var)  # a new tensor, as rsl-rl itself does


class SharedNormalisers:
    """The normalisers of one algorithm."""

    def __init__(self, algorithm: Any, ranks: Ranks) -> None:
        self._ranks = ranks
        models = (algorithm._raw_actor, algorithm._raw_critic) if ranks.size > 1 else ()
        self._normalisers = [
            module
            for model in models
            for module in model.modules()
            if isinstance(module, EmpiricalNormalization)
        ]

    @contextmanager
    def shared(self) -> Iterator[None]:
        """What the ranks see inside is, at its end, seen by all. All have to come there."""
        before = self._totals()
        yield
        if not self._normalisers:
            return
        of_ranks = self._ranks.all_gathered(self._totals())
        with torch.inference_mode():
            for number, normaliser in enumerate(self._normalisers):
                seen = together(before[number], [totals[number] for totals in of_ranks])
                if seen is not None:
                    seen.put_into(normaliser)

    def _totals(self) -> list[Totals]:
        return [Totals.of(normaliser) for normaliser in self._normalisers]


def together(before: Totals, of_ranks: Sequence[Totals]) -> Totals | None:
    """All that was seen, once each; None if the ranks have it already, or there is nothing new."""
    first = of_ranks[0]
    if all(torch.equal(first.sums, other.sums) for other in of_ranks[1:]):
        return None
    return Totals(
        before.count + sum(rank.count - before.count for rank in of_ranks),
        before.sums + sum(rank.sums - before.sums for rank in of_ranks),
        before.squares + sum(rank.squares - before.squares for rank in of_ranks),
    )
