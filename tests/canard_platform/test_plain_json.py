"""Free-form JSON: refused where a person can put it right, mended where a machine said it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import Stage

from canard.errors import InvalidRequestError
from canard_platform.plain_json import refuse_unstorable, storable_object

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=())), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=())), ANYTHING))
def test_what_was_mended_is_not_refused_and_is_strict_json(said):
    mended = storable_object(said)

    refuse_unstorable(mended, "x")
    json.dumps(mended, allow_nan=False).encode()


def test_what_is_fine_stays_as_it_is():
    said = {"a": [1, 2.5, None, True, "é机🚀"], "b": {"c": "\n"}}

    assert storable_object(said) == said


@pytest.mark.parametrize("depth", [100, 900])
def test_deep_nesting_is_refused_and_not_an_error_of_ours(stage: Stage, depth: int):
    nested = "[" * depth + "]" * depth
    text = '{"name": "x", "config": {"mode": "physics", "tasks": [{"a": ' + nested + "}]}}"

    answer = stage.http.post("/runs", content=text, headers={"Content-Type": "application/json"})

    assert answer.status_code in {400, 422}


def test_the_place_is_named():
    with pytest.raises(InvalidRequestError) as refused:
        refuse_unstorable({"a": [0, {"b": float("inf")}]}, "config")

    assert refused.value.field == "config.a.1.b"
