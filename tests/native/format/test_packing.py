"""Packed columns promise to come back bit for bit, in few bytes, and to refuse whatever is not a column."""

from __future__ import annotations

import math
import struct
from array import array
from itertools import pairwise
from typing import Any

import packing_twin
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sluicegate.format import packing, unpacking
from sluicegate.format.unpacking import PackingError, Reader

INT64 = st.integers(-(2**63), 2**63 - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
DECIMALS = st.integers(-(10**6), 10**6).map(lambda k: k / 100)


def bits(values: Any) -> bytes:
    """Float64 values as bytes: −0.0 is not 0.0."""
    return array("d", values).tobytes()


def ints_back(values: list[int]) -> list[int]:
    """The column after packing and unpacking."""
    reader = Reader(packing.pack_ints(values))
    back = unpacking.unpack_ints(reader, len(values))
    reader.finish()
    return list(back)


def floats_back(values: list[float]) -> Any:
    """The column after packing and unpacking."""
    reader = Reader(packing.pack_floats(values))
    back = unpacking.unpack_floats(reader, len(values))
    reader.finish()
    return back


@given(st.lists(INT64, min_size=1, max_size=60))
def test_any_integers_come_back(values: list[int]) -> None:
    """Every int64, whatever the differences between them."""
    assert ints_back(values) == values


@given(st.lists(st.integers(-300, 300), min_size=1, max_size=300), st.integers(1, 10**10), INT64)
def test_scaled_and_shifted_integers_come_back(values: list[int], scale: int, base: int) -> None:
    """Columns with a common divisor and offset, as times have."""
    shifted = [min(max(base // 2 + scale * x, -(2**63)), 2**63 - 1) for x in values]
    assert ints_back(shifted) == shifted


@given(st.lists(st.one_of(FINITE, DECIMALS, st.sampled_from([0.0, -0.0, 5e-324, 1.7e308])), min_size=1, max_size=80))
def test_any_finite_floats_come_back_bit_for_bit(values: list[float]) -> None:
    """Whatever layout is chosen."""
    assert bits(floats_back(values)) == bits(values)


#: Decimal places, and a spread of magnitudes up to where integers of a float64 end.
PLACED = st.tuples(st.integers(-(2**53), 2**53), st.integers(0, 18)).map(lambda of: of[0] / 10.0 ** of[1])
STEPS = st.lists(st.integers(-9, 9), min_size=1, max_size=60).map(lambda steps: [7 * sum(steps[:i]) for i in range(60)])


@given(
    integers=st.lists(INT64, min_size=1, max_size=60) | STEPS | st.lists(st.integers(-(2**20), 2**20), min_size=1),
    floats=st.lists(PLACED, min_size=1, max_size=9) | st.lists(FINITE | DECIMALS, min_size=1, max_size=60),
    up=st.booleans(),
)
def test_compiled_loops_pack_as_their_twins_do(integers: list[int], floats: list[float], up: bool) -> None:
    """The same bytes, whichever is used: a document is written once, and may be packed anywhere."""
    found = []
    for loops in (packing._packing, packing_twin):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(packing, "_packing", loops)
            found.append(
                (packing.pack_ints(integers), packing.pack_floats(floats), packing.pack_singles(floats, up=up))
            )
    assert found[0] == found[1]


@given(numbers=st.lists(INT64, min_size=1, max_size=60), first=INT64)
def test_totals_and_places_of_runs_are_exact(numbers: list[int], first: int) -> None:
    """The sum of any numbers of 64 bits; a run that would end beyond 64 bits is refused, never wrapped around."""
    column = array("q", numbers)
    assert packing._packing.extent(column) == packing_twin.extent(column)
    told = []
    for loops in (packing._packing, packing_twin):
        try:
            told.append(loops.begins(first, column))
        except OverflowError:
            told.append(None)
    assert told[0] == told[1]


@given(st.lists(DECIMALS, min_size=1, max_size=300))
def test_decimals_come_back_bit_for_bit(values: list[float]) -> None:
    """Readings with two places, with and without repetition."""
    assert bits(floats_back(values)) == bits(values)


def test_even_times_cost_a_few_bytes() -> None:
    """A thousand hours need no more than a start and a step."""
    assert len(packing.pack_ints([1_357_020_000_000_000 + i * 3_600_000_000 for i in range(1000)])) < 20


def test_decimal_readings_cost_little_more_than_their_digits() -> None:
    """Two-place readings that move slowly deflate to about a byte each."""
    values = [round(20 + 5 * math.sin(i / 50), 2) for i in range(1000)]
    assert packing.deflated(packing.pack_floats(values)) < 1_000


@given(st.lists(FINITE, min_size=1, max_size=40), st.booleans())
def test_bounds_are_rounded_outward(values: list[float], up: bool) -> None:
    """A rounded bound is still a bound, and within a float32's step of the value."""
    packed = packing.pack_singles(values, up=up)
    for x, bound in zip(values, unpacking.unpack_floats(Reader(packed), len(values)), strict=True):
        assert bound >= x if up else bound <= x
        assert abs(bound - x) <= max(abs(x) * 2.0**-22, 2.0**-148)


def test_outward_of_zero_and_of_exact_values_is_themselves() -> None:
    """What a float32 holds is not moved; zero least of all."""
    for x in (0.0, 1.5, -2.25, struct.unpack("<f", b"\x01\x00\x00\x00")[0]):
        assert packing_twin.outward(x, up=True) == packing_twin.outward(x, up=False) == x
    assert packing_twin.outward(1e-60, up=False) == 0.0
    assert packing_twin.outward(1e-60, up=True) > 0.0
    assert packing_twin.outward(1e60, up=True) == math.inf


def test_the_layout_is_little_endian_planes() -> None:
    """The bytes of one small column, written out: the format is frozen."""
    assert packing.pack_ints([7]) == bytes([0, 14, 2])
    assert packing.number(-1) == b"\x01"
    assert packing.number(300) == b"\xd8\x04"
    assert packing.pack_floats([1.0]) == bytes([3]) + struct.pack("<d", 1.0)


@pytest.mark.parametrize(
    "data",
    [b"", b"\x03\x00\x02", b"\x00", b"\x24\x00\x02", b"\x04\x00\x02", b"\x00" + b"\xff" * 11, b"\x01\x00\x00\x02"],
)
def test_what_is_no_integer_column_is_refused(data: bytes) -> None:
    """Cut short, of an unknown layout or width, with an endless number, or too short for its layout."""
    with pytest.raises(PackingError):
        unpacking.unpack_ints(Reader(data), 1)


@pytest.mark.parametrize(
    "data",
    [
        bytes([9]),
        bytes([0]) + b"1234",
        bytes([1, 99]),
        bytes([3]) + struct.pack("<d", math.nan),
        bytes([2]) + packing.number(5),
        bytes([2]) + packing.number(1) + bytes([3]) + struct.pack("<d", 1.0),
        bytes([2]) + packing.number(1) + bytes([0]) + struct.pack("<d", 1.0) + packing.pack_ints([1]),
    ],
)
def test_what_is_no_float_column_is_refused(data: bytes) -> None:
    """Unknown layouts, missing bytes, too many digits, NaN, and dictionaries that do not fit."""
    with pytest.raises(PackingError):
        unpacking.unpack_floats(Reader(data), 1)


@given(st.lists(st.integers(-(2**66), 2**66), min_size=1, max_size=40), st.integers(0, 2))
def test_integers_wrap_around_at_64_bits(values: list[int], mode: int) -> None:
    """Numbers and sums on the way are 64 bits of the whole ones, whatever a writer's base and scale are."""
    assume(len(values) > mode)
    rest = values
    for _ in range(mode):
        rest = [b - a for a, b in pairwise(rest)]
    base, start = min(rest), (values[0], values[1] - values[0])[:mode] if len(values) > 1 else ()
    scale = math.gcd(*[x - base for x in rest]) or 1
    steps = [(x - base) // scale for x in rest]
    assume(max(steps) < 2**64)
    planes = b"".join(bytes(step >> 8 * i & 0xFF for step in steps) for i in range(8))
    column = bytes([mode | 8 << 2]) + b"".join(map(packing.number, (*start, base, scale))) + planes
    found = unpacking.unpack_ints(Reader(column), len(values))
    assert list(found) == [(x + 2**63) % 2**64 - 2**63 for x in values]
