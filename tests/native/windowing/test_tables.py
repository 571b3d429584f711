"""Tables I and II row by row, figure 2, and what the paper says of each policy: each by a stream that shows it."""

from __future__ import annotations

from typing import Any

import pytest
from listening import Hears, policy, trigger

import sluicegate as sg


class Played:
    """A window over readings {"x": …} that are written as their number; events as words: "insert 1", "evict 1"."""

    def __init__(self, kind: str, evict: tuple[Any, ...], at: tuple[Any, ...] = (), **spec: Any) -> None:
        self.now = 0
        self.heard = Hears()
        given = sg.WindowSpec(kind=kind, evict=policy(evict), trigger=trigger(at), **spec)
        self.window = sg.WindowOperator(given, self.heard, lambda: self.now)

    def insert(self, *xs: int, now: int | None = None) -> Played:
        self.now = self.now if now is None else now
        for x in xs:
            self.window.insert({"x": x})
        return self

    def until(self, now: int) -> Played:
        self.now = now
        self.window.advance()
        return self

    @property
    def events(self) -> list[str]:
        """What was done, with what a window held when it was processed."""
        words = []
        for event, _, reading, held in self.heard.events:
            inside = "".join(str(each["x"]) for each in held)
            if event in ("trigger", "before_flush"):
                words.append(f"{event.removeprefix('before_')} [{inside}]")
            elif event in ("after_insert", "after_evict"):
                words.append(f"{event.removeprefix('after_')} {reading['x']}")
            elif event == "initial_full":
                words.append(event)
        self.heard.events.clear()
        return words


# Table I


def test_table_1_count_eviction() -> None:
    """First insert the tuple into the window, then perform eviction."""
    assert Played("tumbling", ("count", 2)).insert(1, 2, 3).events == ["insert 1", "insert 2", "flush [12]", "insert 3"]


def test_table_1_delta_eviction() -> None:
    """First perform eviction, then insert the tuple: what breaks the invariant is no part of the closed window."""
    played = Played("tumbling", ("delta", 2)).insert(1, 3, 4)
    assert played.events == ["insert 1", "insert 3", "flush [13]", "insert 4"]


def test_table_1_time_eviction() -> None:
    """Perform evictions independently of tuple insertions."""
    played = Played("tumbling", ("time", 10)).insert(1).insert(2, now=10).until(11)
    assert played.events == ["insert 1", "insert 2", "flush [12]"]
    assert played.insert(3, now=15).until(20).events == ["insert 3"], "10 have passed since the last flush, not more"
    assert played.until(21).events == ["flush [3]"]


def test_table_1_punctuation_eviction() -> None:
    """Perform eviction when a punctuation is received."""
    played = Played("tumbling", ("punctuation",)).insert(1, 2)
    assert played.events == ["insert 1", "insert 2"]
    played.window.punctuate()
    assert played.events == ["flush [12]"]


# Table II: eviction \ trigger


def test_table_2_count_trigger_count_eviction() -> None:
    """Evict → insert → trigger."""
    played = Played("sliding", ("count", 2), ("count", 1)).insert(1, 2)
    assert played.events == ["insert 1", "trigger [1]", "insert 2", "initial_full", "trigger [12]"]
    assert played.insert(3).events == ["evict 1", "insert 3", "trigger [23]"]


def test_table_2_delta_trigger_count_eviction() -> None:
    """Trigger → evict → insert."""
    played = Played("sliding", ("count", 2), ("delta", 0)).insert(1, 2)
    assert played.events == ["insert 1", "trigger [1]", "insert 2", "initial_full"]
    assert played.insert(3).events == ["trigger [12]", "evict 1", "insert 3"]


def test_table_2_time_trigger_count_eviction() -> None:
    """Evict → insert | trigger."""
    played = Played("sliding", ("count", 2), ("time", 10)).insert(1, 2, 3)
    assert played.events == ["insert 1", "insert 2", "initial_full", "evict 1", "insert 3"]
    assert played.until(10).events == ["trigger [23]"]


def test_table_2_count_trigger_delta_eviction() -> None:
    """Evict → insert → trigger."""
    played = Played("sliding", ("delta", 1), ("count", 1)).insert(1, 2)
    assert played.events == ["insert 1", "trigger [1]", "insert 2", "trigger [12]"]
    assert played.insert(3).events == ["initial_full", "evict 1", "insert 3", "trigger [23]"]


def test_table_2_delta_trigger_delta_eviction() -> None:
    """Trigger → evict → insert."""
    played = Played("sliding", ("delta", 1), ("delta", 0)).insert(1, 2)
    assert played.events == ["insert 1", "trigger [1]", "insert 2"]
    assert played.insert(3).events == ["initial_full", "trigger [12]", "evict 1", "insert 3"]


def test_table_2_time_trigger_delta_eviction() -> None:
    """Evict → insert | trigger."""
    played = Played("sliding", ("delta", 1), ("time", 10)).insert(1, 3)
    assert played.events == ["insert 1", "initial_full", "evict 1", "insert 3"]
    assert played.until(10).events == ["trigger [3]"]


def test_table_2_count_trigger_time_eviction() -> None:
    """Insert → trigger | evict."""
    played = Played("sliding", ("time", 10), ("count", 2)).insert(1).insert(2, now=5)
    assert played.events == ["insert 1", "insert 2", "trigger [12]"]
    assert played.until(10).events == ["initial_full"], "an age of 10 is allowed"
    assert played.until(11).events == ["evict 1"]


def test_table_2_delta_trigger_time_eviction() -> None:
    """Trigger → insert | evict."""
    played = Played("sliding", ("time", 10), ("delta", 1)).insert(1).insert(3, now=5)
    assert played.events == ["insert 1", "trigger [1]", "insert 3"]
    assert played.until(20).events == ["initial_full", "evict 1", "evict 3"]


def test_table_2_time_trigger_time_eviction() -> None:
    """Insert | evict | trigger."""
    played = Played("sliding", ("time", 10), ("time", 4)).insert(1).insert(2, now=8)
    assert played.events == ["insert 1", "trigger [1]", "trigger [1]", "insert 2"]
    assert played.until(19).events == ["initial_full", "evict 1", "trigger [2]", "trigger [2]", "evict 2"]


# what the text says beside the tables


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("partial", [True, False])
def test_figure_2_count_and_delta_process_the_same_windows(n: int, m: int, partial: bool) -> None:
    """sliding, count(n), count(m) is sliding, delta(id, n − 1), delta(id, m − 1) where id grows by one."""

    def processed(*policies: tuple[Any, ...]) -> list[str]:
        played = Played("sliding", *policies, partial=partial).insert(*range(30))
        return [event for event in played.events if event.startswith("trigger")]

    by_count, by_delta = processed(("count", n), ("count", m)), processed(("delta", n - 1), ("delta", m - 1))
    assert by_count[: len(by_delta)] == by_delta, "delta sees a window when the next reading comes"
    assert len(by_count) - len(by_delta) in (0, 1)
    assert len(by_delta) >= (25 if m == 1 else 8)


def test_figure_2_itself() -> None:
    """The second tuple triggers the one, the third the other; both process the first two tuples."""
    one = Played("sliding", ("count", 2), ("count", 1), partial=False)
    other = Played("sliding", ("delta", 1), ("delta", 0), partial=False)
    assert one.insert(1, 2).events == ["insert 1", "insert 2", "initial_full", "trigger [12]"]
    assert other.insert(1, 2, 3).events[2:4] == ["initial_full", "trigger [12]"]


def test_delta_trigger_remembers_a_tuple_that_has_left() -> None:
    """3.3.2: the last tuple that triggered is kept "even if that tuple is already evicted"."""
    played = Played("sliding", ("count", 1), ("delta", 2)).insert(1, 2, 3)
    assert played.events == ["insert 1", "initial_full", "evict 1", "insert 2", "evict 2", "insert 3"]
    assert played.insert(4).events == ["trigger [3]", "evict 3", "insert 4"]


def test_a_trigger_that_fell_behind_catches_up() -> None:
    """4.2: it fires in succession, also where the handler itself took the time."""

    class Slow(sg.WindowHandler):
        def __init__(self) -> None:
            self.now, self.fired = 0, []

        def trigger(self, window: Any, key: Any) -> None:
            self.fired.append((window.now, self.now))
            self.now += 12 if len(self.fired) == 1 else 1

    slow = Slow()
    spec = sg.WindowSpec(kind="sliding", evict=sg.policies.time(100), trigger=sg.triggers.time(5))
    window = sg.WindowOperator(spec, slow, lambda: slow.now)
    window.insert(1)
    slow.now = 5
    window.advance()
    assert slow.fired == [(5, 5), (10, 17), (15, 18)]


def test_a_punctuation_flushes_every_partition() -> None:
    """3.3.4: the boundary is the stream's."""
    heard = Hears()
    window = sg.WindowOperator(sg.WindowSpec(kind="tumbling", evict=sg.policies.punctuation(), key="k"), heard)
    for k in "aba":
        window.insert({"k": k})
    window.punctuate()
    assert [(e, k, len(held)) for e, k, _, held in heard.events if e == "before_flush"] == [
        ("before_flush", "a", 2),
        ("before_flush", "b", 1),
    ]
    assert len(window) == 0
    assert list(window.partitions()) == []
    window.punctuate()


def test_only_a_window_by_punctuation_takes_one() -> None:
    """Elsewhere it would mean nothing."""
    with pytest.raises(sg.errors.InputError, match=r"punctuate: .* not sg.policies.punctuation\(\)"):
        Played("tumbling", ("count", 2)).window.punctuate()
