"""A frame's body says what a commit did, and anything else is no body."""

from __future__ import annotations

import zlib

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from hypothesis import given
from hypothesis import strategies as st

from sluicegate_agent.record.frame import FEED, Body, Step, Steps, unpack

INT64 = st.integers(-(2**63), 2**63 - 1)
STEPS = st.lists(
    st.builds(Step, st.integers(0, 2**32 - 1), st.integers(0, FEED), INT64, st.floats(allow_nan=False), INT64)
)


def packed(steps: list[Step]) -> Steps:
    """Steps as a frame has them."""
    made = Steps()
    for step in steps:
        made.add(*step)
    return made


@given(steps=STEPS, counters=st.dictionaries(st.text(), INT64), rows=st.binary())
def test_a_body_is_read_back(steps: list[Step], counters: dict[str, int], rows: bytes) -> None:
    """Steps, counts, letters and rows, each as it was."""
    letters = [(1, -5, "topic", "reason", 3, b"\x00\xff")]
    body = Body(16, 86_400_000_000, packed(steps).pack(), counters, letters, rows)
    found = unpack(body.pack())
    assert found == body
    assert [*Steps.unpack(found.steps)] == steps


@pytest.mark.parametrize("data", [b"", b"x", zlib.compress(b"x"), zlib.compress(b"\x96\x01")])
def test_anything_else_is_refused(data: bytes) -> None:
    """By a ValueError that the recovery waits for."""
    with pytest.raises(ValueError, match="not the body"):
        unpack(data)


@given(data=st.binary(max_size=200).filter(lambda data: len(data) % 29))
def test_a_length_that_no_steps_have_is_refused(data: bytes) -> None:
    """Each has 29 bytes."""
    with pytest.raises(ValueError, match="not steps"):
        Steps.unpack(data)
