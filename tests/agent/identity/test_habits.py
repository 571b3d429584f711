"""The habits of a broker's packet ids: one odd number must not make ids mean what they do not."""

from __future__ import annotations

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from sluicegate_agent.identity.habits import LAST_ID, Habits


def connections(habits: Habits, *firsts: int, last: int = 14) -> Habits:
    """Connections that begin with these ids, none of a message under way, and go on to `last`."""
    for first in firsts:
        habits.begin(first, dup=False, in_flight=False)
        habits.tip = last
    return habits


def test_ids_that_begin_anew_with_a_hole_at_the_beginning_are_not_kept() -> None:
    """RabbitMQ begins with the id of a SUBSCRIBE, 5 for example; its ids still say nothing over connections."""
    assert connections(Habits(), 1, 1, 1, 5, 1).kept is False
    assert connections(Habits(), 1, 5, 1, 1).kept is False


def test_a_first_id_that_follows_nothing_shows_nothing() -> None:
    """A broker whose connections begin with 2, 3, 4 … because our SUBSCRIBE had that id counts nothing over them."""
    assert connections(Habits(), 1, 2, 3, 4, 5).kept is None


def test_ids_that_go_on_are_kept() -> None:
    """The next one, or one that was under way; also over the last id there is."""
    assert connections(Habits(), 1, 15).kept is True
    assert connections(Habits(), 1, LAST_ID, last=LAST_ID - 1).kept is True
    habits = connections(Habits(), 1)
    habits.begin(12, dup=True, in_flight=True)
    assert habits.kept is True


def test_what_was_learned_wrongly_is_unlearned() -> None:
    """Ids that were taken to go on, of a broker that then begins at 1, twice in a row."""
    habits = Habits({"over": True, "tip": 14})
    assert connections(habits, 1).kept is True
    assert connections(habits, 1).kept is False
