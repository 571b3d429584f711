"""Columns of a frame bring back every bit, and anything else is refused."""

from __future__ import annotations

import contextlib
import math
import struct
from array import array

from hypothesis import example, given
from hypothesis import strategies as st

from sluicegate.format.steps import packed_times, packed_values, unpacked_times, unpacked_values

INT64 = st.integers(-(2**63), 2**63 - 1)
DECIMALS = st.builds(lambda whole, places: whole / 10**places, st.integers(-(10**9), 10**9), st.integers(0, 6))


@given(times=st.lists(INT64))
@example(times=[-(2**63), 2**63 - 1, 0])
def test_times_are_read_back(times: list[int]) -> None:
    """Whatever is behind them stays."""
    data = packed_times(array("q", times))
    assert unpacked_times(data + b"more", len(times)) == (array("q", times), len(data))


@given(values=st.lists(st.floats(allow_nan=False)) | st.lists(DECIMALS))
@example(values=[0.5, -0.0])
@example(values=[1e300, 0.1, -math.inf])
def test_values_are_read_back_to_the_bit(values: list[float]) -> None:
    """Decimal ones and any others, zeros with their signs."""
    data = packed_values(array("d", values))
    found, size = unpacked_values(data + b"more", len(values))
    assert (found.tobytes(), size) == (array("d", values).tobytes(), len(data))


def by_definition(places: int, numbers: list[int]) -> bytes:
    """First number, least step, then what each step is beyond it: all lowest bytes, then all second ones."""
    steps = [number - before for number, before in zip(numbers, [*numbers[:1], *numbers], strict=False)]
    beyond = [(step - min(steps)).to_bytes(8, "little") for step in steps]
    head = places.to_bytes(1, "little") + struct.pack("<qq", numbers[0], min(steps))
    return head + bytes(each[byte] for byte in range(8) for each in beyond)


@given(numbers=st.lists(st.integers(-(2**62), 2**62 - 1), min_size=1) | st.lists(st.integers(-9, 9), min_size=1))
def test_columns_are_as_defined(numbers: list[int]) -> None:
    """The bytes that records hold which were written before: times, and values of two decimal places."""
    assert packed_times(array("q", numbers)) == by_definition(0, numbers)
    hundredths = [4 * (number % 1000) + 1 for number in numbers]
    assert packed_values(array("d", [each / 100 for each in hundredths])) == by_definition(2, hundredths)


def test_decimal_values_in_order_are_small() -> None:
    """Of 500 that change by hundredths all planes but one are zero throughout."""
    values = array("d", (round(20 + math.sin(i / 9), 2) for i in range(500)))
    assert packed_values(values).count(0) >= 7 * 500


@given(data=st.binary(max_size=80), count=st.integers(0, 12))
def test_anything_else_is_refused(data: bytes, count: int) -> None:
    """So many numbers are read, or a ValueError is raised."""
    for unpacked in (unpacked_times, unpacked_values):
        with contextlib.suppress(ValueError):
            found, size = unpacked(data, count)
            assert (len(found), size <= len(data)) == (count, True)
