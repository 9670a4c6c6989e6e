"""Hydra's switch is ours while Hydra runs; what is started meanwhile sees what the user set."""

import os

import pytest

from canard_hydra import full_error


@pytest.mark.parametrize("said", [None, "0", "1"])
def test_what_is_started_inherits_what_the_user_said(monkeypatch, said):
    if said is None:
        monkeypatch.delenv(full_error.VARIABLE, raising=False)
    else:
        monkeypatch.setenv(full_error.VARIABLE, said)

    with full_error.hydra_raises():
        seen_by_hydra = os.environ.get(full_error.VARIABLE)
        with full_error.as_the_user_said():
            inherited = os.environ.get(full_error.VARIABLE)

    assert (seen_by_hydra, inherited, os.environ.get(full_error.VARIABLE)) == ("1", said, said)
