"""Which requests a Modbus device gets: each value is in one, none asks for what nobody wants, none is too long."""

from __future__ import annotations

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from hypothesis import given
from hypothesis import strategies as st

from sluicegate_agent.polling.config import WORDS, RegisterConfig
from sluicegate_agent.polling.modbus import blocks

KINDS = st.sampled_from(["holding", "input", "coil", "discrete"])
VALUES = st.lists(st.tuples(st.integers(0, 300), KINDS, st.sampled_from(sorted(WORDS))), min_size=1, max_size=60)


@given(VALUES)
def test_every_register_that_is_wanted_is_asked_for_once_and_no_other(wanted: list[tuple[int, str, str]]) -> None:
    """By the definition: the set of (kind, address) of all values is the set of all requests."""
    values = {
        str(i): RegisterConfig(address=at, kind=kind, type=type_)  # type: ignore[arg-type]
        for i, (at, kind, type_) in enumerate(wanted)
    }
    found = [*blocks(values)]
    asked = {(each.kind, each.address + i) for each in found for i in range(each.count)}
    needed = {(value.kind, value.address + i) for value in values.values() for i in range(value.words)}
    assert asked == needed
    assert sorted(name for each in found for name, _ in each.values) == sorted(values)
    for each in found:
        assert each.count <= (2000 if each.kind in ("coil", "discrete") else 125)
        for _, value in each.values:
            assert each.address <= value.address
            assert value.address + value.words <= each.address + each.count


def test_neighbours_share_a_request() -> None:
    """Two floats beside each other are one request; a hole between makes two."""
    beside = {name: RegisterConfig(address=at, type="float32") for name, at in (("a", 10), ("b", 12), ("c", 20))}
    assert [(each.address, each.count) for each in blocks(beside)] == [(10, 4), (20, 2)]
