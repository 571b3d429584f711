"""A frame's body says what a commit did, and anything else is no body."""

from __future__ import annotations

import contextlib
import struct
import zlib
from array import array
from collections.abc import Iterable
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from hypothesis import given
from hypothesis import strategies as st

from sluicegate_agent.record.frame import ADD, ADD_IN_DOUBT, ADVANCE, CLOSE, FEED, Body, Step, Steps, unpack

INT64 = st.integers(-(2**63), 2**63 - 1)
STREAMS = st.integers(0, 2**32 - 1)
READINGS = st.lists(st.tuples(st.floats(allow_nan=False), INT64), min_size=1, max_size=9)
TAKEN = st.tuples(STREAMS, st.sampled_from((ADD, ADD_IN_DOUBT)), INT64, READINGS)
STEPS = st.lists(TAKEN | st.tuples(STREAMS, st.sampled_from((CLOSE, ADVANCE, FEED)), INT64, st.just([])))


def packed(steps: list[tuple[int, int, int, list[tuple[float, int]]]]) -> Steps:
    """Steps as a frame has them."""
    made = Steps()
    for stream, kind, number, readings in steps:
        if readings:
            values, times = zip(*readings, strict=True)
            made.run(stream, kind, number, array("d", values), array("q", times))
        else:
            made.add(stream, kind, number)
    return made


def each(steps: Iterable[Step]) -> list[tuple[int, int, int, float | None, int | None]]:
    """Reading by reading, whatever stands together in one step."""
    return [
        (step.stream, step.kind, step.number, value, time)
        for step in steps
        for value, time in (zip(step.values, step.times, strict=True) if step.times else ((None, None),))
    ]


@given(steps=STEPS, counters=st.dictionaries(st.text(), INT64), rows=st.binary())
def test_a_body_is_read_back(steps: list[Any], counters: dict[str, int], rows: bytes) -> None:
    """Steps, counts, letters and rows, each as it was."""
    letters = [(1, -5, "topic", "reason", 3, b"\x00\xff")]
    body = Body(16, 86_400_000_000, packed(steps).pack(), counters, letters, rows)
    found = unpack(body.pack())
    assert found == body
    expected = [(*step[:3], *reading) for step in steps for reading in (step[3] or ((None, None),))]
    assert each(Steps.unpack(found.steps)) == expected
    assert Steps.unpack(found.steps).readings == sum(len(step[3]) for step in steps)
    assert len(found.steps) % 29, "who knows one reading a step only must not take it for such"


@pytest.mark.parametrize("data", [b"", b"x", zlib.compress(b"x"), zlib.compress(b"\x96\x01")])
def test_anything_else_is_refused(data: bytes) -> None:
    """By a ValueError that the recovery waits for."""
    with pytest.raises(ValueError, match="not the body"):
        unpack(data)


@given(steps=STEPS)
def test_a_frame_of_one_reading_a_step_is_read(steps: list[Any]) -> None:
    """As Sluicegate wrote them first: kinds, streams, times, values, missing, each column by its bytes."""
    rows = []
    for stream, kind, number, readings in steps:
        rows += [(kind, stream, time, value, number) for value, time in readings]
        if not readings:
            rows.append((kind, stream, number, 0.0, 0))
    columns = [*zip(*rows, strict=True)] or [()] * 5
    data = bytes(columns[0])
    for code, column in zip("Iqdq", columns[1:], strict=True):
        plain = struct.pack(f"<{len(column)}{code}", *column)
        width = struct.calcsize(f"<{code}")
        data += b"".join(plain[byte::width] for byte in range(width))
    assert each(Steps.unpack(data)) == each(packed(steps))


@given(steps=STEPS)
def test_a_frame_of_whole_columns_is_read(steps: list[Any]) -> None:
    """As Sluicegate wrote them next: steps of several readings, times and values by their bytes."""
    made = packed(steps)
    data = struct.pack("<4sII", b"\xd2SG2", len(made), made.readings) + bytes(made.kinds)
    for column in (made.streams, made.counts, made.numbers, made.times, made.values):
        plain, width = column.tobytes(), column.itemsize
        data += b"".join(plain[byte::width] for byte in range(width))
    assert each(Steps.unpack(data)) == each(made)


@given(data=st.binary(max_size=200), damage=st.integers(0, 255), at=st.integers(0, 10**6))
def test_anything_else_is_no_steps(data: bytes, damage: int, at: int) -> None:
    """Whatever is changed: steps are read, or a ValueError is raised."""
    good = bytearray(packed([(1, ADD, 0, [(1.0, 2), (3.0, 4)]), (1, CLOSE, 0, [])]).pack())
    good[at % len(good)] = damage
    for each in (bytes(good), bytes(good[: at % len(good)]), data, bytes(good[:4]) + data):
        with contextlib.suppress(ValueError):
            for step in Steps.unpack(each):
                assert len(step.times) == len(step.values)
