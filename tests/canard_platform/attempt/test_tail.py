"""events.jsonl read while it is written."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from canard_platform.attempt.tail import MOST_LINE_BYTES, EventTail

EVENTS = st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3), max_size=20)


@given(events=EVENTS, cuts=st.lists(st.integers(0, 400), max_size=12), chunk_bytes=st.integers(1, 64))
def test_every_whole_line_comes_once_and_in_order_however_it_was_written(events, cuts, chunk_bytes):
    content = "".join(json.dumps(event) + "\n" for event in events).encode()
    ends = sorted({min(cut, len(content)) for cut in cuts} | {len(content)})
    with TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        tail = EventTail(path, chunk_bytes=chunk_bytes)
        read = tail.read()
        for start, end in zip([0, *ends], ends, strict=False):
            with path.open("ab") as file:
                file.write(content[start:end])
            while not tail.at_end():
                read += tail.read()

            assert read == events[: content[:end].count(b"\n")]


def test_a_partial_last_line_is_held_back(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"event": "started"}\n{"event": "iter')
    tail = EventTail(path)

    assert tail.read() == [{"event": "started"}]
    assert tail.read() == []


def test_lines_that_are_no_events_are_passed_over(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'nonsense\n[1]\n\n\xff\xfe\n{"event": "finished"}\n')

    assert EventTail(path).read() == [{"event": "finished"}]


def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"a": "' + b"x" * (2 * MOST_LINE_BYTES) + b'"}\n{"event": "finished"}\n')
    tail = EventTail(path)
    read = []
    while not tail.at_end():
        read += tail.read()

    assert read == [{"event": "finished"}]


def test_numbers_that_json_does_not_have_become_null(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"a": NaN, "b": -Infinity, "c": 1e999, "d": 1e-05}\n')

    assert EventTail(path).read() == [{"a": None, "b": None, "c": None, "d": 1e-05}]
