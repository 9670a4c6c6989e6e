"""Ranks that each saw a part have the statistics of the whole."""

import pytest
import torch
from rsl_rl.modules import EmpiricalNormalization

from trainer.normalisers import Totals, together


def normaliser(*batches: torch.Tensor) -> EmpiricalNormalization:
    made = EmpiricalNormalization(3).train()
    for batch in batches:
        made.update(batch)
    return made


@pytest.mark.parametrize("seen_before", [0, 2])
def test_what_two_ranks_saw_is_together_what_one_would_have_seen(seen_before):
    batches = [torch.randn(16, 3) * 5 + 40 for _ in range(seen_before + 4)]
    common, first, second = batches[:seen_before], batches[seen_before::2], batches[seen_before + 1 :: 2]
    before = Totals.of(normaliser(*common))
    ranks = [normaliser(*common, *first), normaliser(*common, *second)]

    together(before, [Totals.of(rank) for rank in ranks]).put_into(ranks[0])

    whole = normaliser(*batches)
    assert ranks[0].count == whole.count
    for name in ("_mean", "_var", "_std"):
        torch.testing.assert_close(getattr(ranks[0], name), getattr(whole, name), rtol=1e-4, atol=1e-4)


def test_what_the_ranks_have_together_already_is_not_counted_twice():
    before = Totals.of(normaliser())
    same = [Totals.of(normaliser(torch.ones(4, 3)))] * 2

    assert together(before, same) is None
