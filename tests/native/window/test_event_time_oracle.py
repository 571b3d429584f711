"""The oracle of event time itself: small cases whose answers were worked out by hand."""

from __future__ import annotations

from event_time_oracle import EventTime, agrees


def test_a_late_reading_joins_where_it_belongs_in_time() -> None:
    """First and last go by time; the newest time stays."""
    window = EventTime(10)
    for value, time in [(1.0, 100), (2.0, 105), (9.0, 103)]:
        window.insert(value, time)
    assert [reading.value for reading in window.inside()] == [1.0, 9.0, 2.0]
    assert (window.now, window.answers()["last"], window.answers()["argmax"]) == (105, 2.0, 103)
    assert window.longest_run() == 2


def test_what_belongs_no_more_changes_nothing_but_a_counter() -> None:
    """A reading at the edge is out: the window is open at its beginning."""
    window = EventTime(10)
    window.insert(1.0, 100)
    window.insert(5.0, 90)
    assert (window.answers()["count"], window.late) == (1, 1)
    window.insert(5.0, 91)
    assert (window.answers()["count"], window.late) == (2, 1)


def test_time_goes_on_without_readings() -> None:
    """`advance` empties the window, and never goes back."""
    window = EventTime(10)
    window.insert(1.0, 100)
    window.advance(109)
    assert window.answers()["count"] == 1
    window.advance(110)
    window.advance(50)
    assert window.answers()["count"] == 0
    assert window.answers()["mean"] is None


def test_equal_times_go_by_arrival() -> None:
    """The last of a time is the one that came last."""
    window = EventTime(10)
    for value, time in [(1.0, 100), (2.0, 101), (3.0, 100), (4.0, 101)]:
        window.insert(value, time)
    assert [reading.value for reading in window.inside()] == [1.0, 3.0, 2.0, 4.0]


def test_a_hop_moves_the_edge_by_whole_steps() -> None:
    """At 119 the edge of a hop of 10 is still at 110 − 10."""
    window = EventTime(10, hop=10)
    for time in (101, 108, 119):
        window.insert(1.0, time)
    assert window.answers()["count"] == 3
    window.insert(1.0, 120)
    assert window.answers()["count"] == 2


def test_agreement_knows_rounding_from_another_answer() -> None:
    """Sums may round; counts may not."""
    assert agrees(0.1 + 0.2, 0.3, 1.0)
    assert not agrees(0.31, 0.3, 1.0)
    assert not agrees(2, 3, 1e30)
