"""Where a window begins after each of many readings: every way a processor may go about it, and one search each."""

from __future__ import annotations

import bisect
import ctypes
import functools
import itertools
import random
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from compiled_code import compiled

ENGINES = Path(__file__).parents[2] / "native/sluicegate/engines"
SOURCE = """
#include "merging.h"

int64_t chosen_times(const int64_t *kept, int64_t end, const int64_t *comes, int64_t less, int64_t *heads, int64_t n)
{
    return sluicegate_merge_times(kept, 0, end, comes, less, heads, n);
}
int64_t chosen_offsets(const int32_t *kept, int64_t end, const int32_t *comes, int32_t less, int64_t *heads, int64_t n)
{
    return sluicegate_merge_offsets(kept, 0, end, comes, less, heads, n);
}
#define SIDE_BY_SIDE(NAME, KIND, TYPE, ANY, LONG) \\
int64_t NAME##_##KIND(const TYPE *kept, int64_t end, const TYPE *comes, TYPE less, int64_t *heads, int64_t n) \\
{ \\
    int64_t first[SLUICEGATE_STRETCHES], part = n / SLUICEGATE_STRETCHES, some = part * SLUICEGATE_STRETCHES; \\
    if (some) { \\
        sluicegate_begin_##KIND(kept, 0, end, comes, less, part, first); \\
        if (part == SLUICEGATE_LONG) LONG(kept, comes, less, first, heads); \\
        else ANY(kept, comes, less, part, first, heads); \\
    } \\
    sluicegate_follow_##KIND(kept, some ? heads[some - 1] : 0, comes + some, less, heads + some, n - some); \\
    return sluicegate_most_leaving(heads, 0, n); \\
}
SIDE_BY_SIDE(four, times, int64_t, sluicegate_any_times, sluicegate_long_times)
SIDE_BY_SIDE(four, offsets, int32_t, sluicegate_any_offsets, sluicegate_long_offsets)
#ifdef SLUICEGATE_CHOSEN_LANES
int has_eight(void) { return __builtin_cpu_supports("avx2"); }
SIDE_BY_SIDE(eight, times, int64_t, sluicegate_any_times_by_eight, sluicegate_long_times_by_eight)
SIDE_BY_SIDE(eight, offsets, int32_t, sluicegate_any_offsets_by_eight, sluicegate_long_offsets_by_eight)
#else
int has_eight(void) { return 0; }
#endif
"""
KINDS = {"times": ("q", ctypes.c_int64), "offsets": ("i", ctypes.c_int32)}
LENGTHS = (1, 7, 8, 15, 16, 17, 31, 33, 48, 127, 128, 200, 511, 512, 513, 1_500)


@functools.cache
def library() -> Any:
    """The header, compiled."""
    return compiled(SOURCE, "-fwrapv", f"-I{ENGINES}")


def ways() -> list[str]:
    """What this processor can do."""
    return ["chosen", "four"] + ["eight"] * bool(library().has_eight())


def address(column: array[int]) -> ctypes.c_void_p:
    """Where it lies."""
    return ctypes.c_void_p(column.buffer_info()[0])


def merged(way: str, kind: str, kept: Iterable[int], comes: Iterable[int], less: int) -> tuple[list[int], int]:
    """The heads, and the most at a time; eight leaves lie behind the last that may leave, and nothing behind them."""
    code, integer = KINDS[kind]
    leaves, readings = array(code, kept), array(code, comes)
    heads = array("q", bytes(8 * len(readings)))
    count, end = ctypes.c_int64(len(readings)), ctypes.c_int64(len(leaves) - 8)
    find = getattr(library(), f"{way}_{kind}")
    find.restype = ctypes.c_int64
    most = find(address(leaves), end, address(readings), integer(less), address(heads), count)
    return heads.tolist(), most


def expected(kept: list[int], comes: list[int], less: int) -> tuple[list[int], int]:
    """By one search after the other."""
    heads = [bisect.bisect_right(kept, come - less) for come in comes]
    return heads, max((b - a for a, b in itertools.pairwise([0, *heads])), default=0)


def leaves_for(rng: random.Random, last: int, gap: Any) -> list[int]:
    """Some before `last`, the greatest that leaves, and at least eight after it."""
    kept = [last]
    while len(kept) < rng.choice((1, 20, 600, 2_000)):
        kept.append(kept[-1] - gap())
    kept.reverse()
    for _ in range(8 + rng.randrange(40)):
        kept.append(max(kept[-1] + gap(), last + 1))
    return kept


GAPS = {
    "independent": lambda rng: int(rng.expovariate(0.001)),
    "regular": lambda rng: 1_000,
    "crowded": lambda rng: rng.choice((0, 0, 0, 1)),
    "bursts": lambda rng: rng.choice((0,) * 60 + (40_000,)),
    "pauses": lambda rng: rng.choice((900, 1_000, 1_100) * 20 + (3_000_000,)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gaps", GAPS)
def test_every_way_finds_the_same(gaps: str, kind: str) -> None:
    """Whatever leaves with each, none or all of them, and however many come."""
    rng = random.Random(f"{gaps} {kind}")
    for n in LENGTHS:
        comes = [rng.randrange(-1_000_000, 1_000_000)]
        for _ in range(n - 1):
            comes.append(comes[-1] + GAPS[gaps](rng))
        less = rng.choice((0, 1, 5_000, 10_000_000, -3_000_000))
        kept = leaves_for(rng, comes[-1] - less, functools.partial(GAPS[rng.choice((gaps, "independent"))], rng))
        for way in ways():
            assert merged(way, kind, kept, comes[:n], less) == expected(kept, comes[:n], less), (way, n)


@pytest.mark.parametrize("gap", [2**26, 2**27 - 1, 2**27, 2**28, 2**31, 2**40, 2**55])
def test_times_too_far_apart_for_offsets(gap: int) -> None:
    """Of thirty-two leaves, or of sixteen readings, and up to the ends of what times may be."""
    rng = random.Random(gap)
    for n in (16, 40, 300 if gap < 2**50 else 60):
        comes = [-(2**61)]
        for _ in range(n - 1):
            comes.append(comes[-1] + (rng.randrange(2 * gap) if rng.random() < 0.7 else rng.randrange(1_000)))
        less = rng.choice((1, gap, 3 * gap))
        kept = [comes[0] - less - rng.randrange(gap)]
        while kept[-1] <= comes[-1] - less:
            kept.append(kept[-1] + (rng.randrange(2 * gap) if rng.random() < 0.7 else rng.randrange(1_000)))
        kept += [kept[-1] + i for i in range(rng.choice((7, 8, 40)))]
        for way in ways():
            assert merged(way, "times", kept, comes, less) == expected(kept, comes, less), (way, n)


@pytest.mark.parametrize("kind", KINDS)
def test_the_ends_of_the_numbers(kind: str) -> None:
    """Offsets wrap where `less` is taken from them; no cut is the greatest."""
    bits = 31 if kind == "offsets" else 61
    kept = [-(2**bits)] * 3 + [-1, 0, 1] * 1 + [2**bits - 2] * 40 + [2**bits - 1] * 40
    for less in (1, 0):
        comes = sorted([-(2**bits) + less, -1 + less, less, 2**bits - 3, 2**bits - 2] * 8)
        for way in ways():
            assert merged(way, kind, kept, comes, less) == expected(kept, comes, less), (way, less)
