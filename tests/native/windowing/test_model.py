"""Any legal definition over any stream gives the events of a literal model of the paper, whatever keys there are."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from listening import Step, both

import sluicegate as sg

SIZES = {"count": (1, 4), "delta": (0, 4), "time": (1, 6)}
KINDS = [("tumbling", by, "") for by in (*SIZES, "punctuation")]
KINDS += [("sliding", by, at) for by in SIZES for at in SIZES]

limits = st.fixed_dictionaries(
    {}, optional={"count": st.integers(1, 3), "readings": st.integers(1, 8), "age": st.integers(1, 9)}
)
selections = st.sampled_from(["lru", "lfu", "oldest"])
rows = st.lists(st.tuples(st.integers(0, 2), st.sampled_from("aaabcd-"), st.integers(0, 2)), min_size=10, max_size=30)


def stream(drawn: list[tuple[int, str, int]], nothing: str | None) -> list[Step]:
    """Times and attributes that never fall; where there is no reading, only time goes on, or a punctuation comes."""
    times, xs = accumulate(row[0] for row in drawn), accumulate(row[2] for row in drawn)
    return [(t, nothing if row[1] == "-" else row[1], x) for t, row, x in zip(times, drawn, xs, strict=True)]


@pytest.mark.parametrize(("kind", "by", "at"), KINDS)
@given(data=st.data(), drawn=rows)
@settings(max_examples=25)
def test_any_definition_over_any_stream(
    kind: str, by: str, at: str, data: st.DataObject, drawn: list[tuple[int, str, int]]
) -> None:
    """Events, their order, and what the window holds at each."""

    def size(policy: str) -> tuple[Any, ...]:
        return (policy, data.draw(st.integers(*SIZES[policy]))) if policy in SIZES else (policy,)

    spec: dict[str, Any] = {}
    model: dict[str, Any] = {"kind": kind, "evict": size(by), "trigger": size(at) if at else ()}
    if kind == "sliding":
        model["partial"] = spec["partial"] = data.draw(st.booleans())
    limited = data.draw(limits)
    if limited:
        select = data.draw(selections) if {"count", "readings"} & set(limited) else "lru"
        spec["partitions"] = sg.PartitionEviction(**limited, select=select)
        model |= {**limited, "select": select}
    told, expected = both(spec, model, stream(drawn, "!" if by == "punctuation" else None))
    assert told == expected
