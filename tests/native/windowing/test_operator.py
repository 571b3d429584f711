"""Using a window: what a handler registers, what it may do and raise, the clock, summarizers, and wrong calls."""

from __future__ import annotations

from typing import Any

import pytest
from listening import Hears

import sluicegate as sg
from sluicegate.errors import BusyError, ConfigurationError, InputError

COUNT = sg.WindowSpec(kind="tumbling", evict=sg.policies.count(2))
SLIDING = sg.WindowSpec(kind="sliding", evict=sg.policies.count(2), trigger=sg.triggers.count(1))


def test_a_handler_registers_only_what_it_overrides() -> None:
    """What it inherits from `WindowHandler` is not called; neither is what an object of another class lacks."""

    class One(sg.WindowHandler):
        def after_flush(self, window: Any, key: Any) -> None:
            pass

    class Other:
        def trigger(self, window: Any, key: Any) -> None:
            pass

    def registered(handler: Any) -> list[str]:
        return [name for name, method in sg.WindowOperator(COUNT, handler)._fire.items() if method is not None]

    assert registered(One()) == ["after_flush"]
    assert registered(Other()) == ["trigger"]
    assert registered(None) == []


def test_a_window_without_handler_keeps_its_readings() -> None:
    """For who asks from outside."""
    window = sg.WindowOperator(SLIDING)
    for x in (1, 2, 3):
        window.insert(x)
    assert window.readings() == [2, 3]
    assert len(window) == 2
    assert window.readings("no such key") == []
    assert window.summarizer() is None


def test_a_handler_without_readings() -> None:
    """The window keeps what its policies go by, and nothing else; events have no reading to tell of that left."""
    heard: list[Any] = []

    class Bare(sg.WindowHandler):
        keeps_readings = False

        def before_evict(self, window: Any, key: Any, reading: Any) -> None:
            heard.append((reading, window.readings()))

    window = sg.WindowOperator(SLIDING, Bare())
    for x in (1, 2, 3):
        window.insert(x)
    assert heard == [(None, [None, None])]


@pytest.mark.parametrize("event", ["before_insert", "after_insert", "before_flush", "after_flush"])
def test_what_a_handler_raises_reaches_the_caller(event: str) -> None:
    """What had happened stays; the window goes on."""

    class Fails(Hears):
        def __getattribute__(self, name: str) -> Any:
            if name != event:
                return super().__getattribute__(name)

            def fail(*told: Any) -> None:
                raise RuntimeError(name)

            return fail

    window = sg.WindowOperator(COUNT, Fails())
    failed = 0
    for x in range(6):
        try:
            window.insert(x)
        except RuntimeError:
            failed += 1
    assert failed == (6 if "insert" in event else 3)
    assert len(window) == (2 if event == "after_insert" else 0)


def test_an_eviction_that_fails_is_made_up_for() -> None:
    """The reading is still there, and leaves with the next one that is due."""
    fails = [True]

    class Fails(sg.WindowHandler):
        def before_evict(self, window: Any, key: Any, reading: Any) -> None:
            if fails.pop() if fails else False:
                raise RuntimeError

    now = [0]
    spec = sg.WindowSpec(kind="sliding", evict=sg.policies.time(10), trigger=sg.triggers.count(1))
    window = sg.WindowOperator(spec, Fails(), lambda: now[0])
    window.insert(1)
    now[0] = 20
    with pytest.raises(RuntimeError):
        window.advance()
    assert window.readings() == [1]
    window.advance()
    assert window.readings() == []


def test_a_window_is_not_changed_from_inside_its_events() -> None:
    """But it may be asked."""

    class Meddles(sg.WindowHandler):
        def after_insert(self, window: Any, key: Any, reading: Any) -> None:
            assert window.readings() == [reading]
            for change in (lambda: window.insert(2), window.advance):
                with pytest.raises(BusyError, match="called from inside one of its own events"):
                    change()

    window = sg.WindowOperator(COUNT, Meddles())
    window.insert(1)
    assert len(window) == 1


def test_a_clock_that_is_set_back_stands_still() -> None:
    """Time never goes back; neither does `advance`."""
    now = [100]
    spec = sg.WindowSpec(kind="tumbling", evict=sg.policies.time(10))
    heard = Hears()
    window = sg.WindowOperator(spec, heard, lambda: now[0])
    window.insert(1)
    now[0] = 50
    window.insert(2)
    window.advance(20)
    assert window.now == 100
    window.advance(111)
    assert heard.events[-2][3] == [1, 2]


def test_the_machines_clock_unless_another_is_given() -> None:
    """µs since 1970."""
    window = sg.WindowOperator(COUNT)
    window.insert(1)
    assert window.now is not None
    assert window.now > 1_700_000_000_000_000


def test_a_summarizer_for_each_tumbling_window() -> None:
    """4.1.6: opened with the window, told each reading, closed after the processing; no reading is kept."""
    told: list[Any] = []

    class Sum(sg.WindowSummarizer):
        def open(self, key: Any) -> None:
            self.total = 0
            told.append(("open", key))

        def insert(self, reading: Any, time: int) -> None:
            self.total += reading
            told.append(("insert", reading, time))

        def close(self) -> None:
            told.append("close")

    class Asks(sg.WindowHandler):
        def before_flush(self, window: Any, key: Any) -> None:
            told.append(("flush", window.summarizer().total, window.readings()))

        def after_flush(self, window: Any, key: Any) -> None:
            told.append(("flushed", window.summarizer()))

    window = sg.WindowOperator(COUNT, Asks(), lambda: 7, summarizer=Sum)
    for x in (1, 2, 3):
        window.insert(x)
    assert told == [
        ("open", None), ("insert", 1, 7), ("insert", 2, 7), ("flush", 3, []), "close", ("flushed", None),
        ("open", None), ("insert", 3, 7),
    ]  # fmt: skip


@pytest.mark.parametrize("evict", [sg.policies.delta(None, 1), sg.policies.time(1), sg.policies.punctuation()])
def test_summarized_windows_are_the_same_windows(evict: Any) -> None:
    """Events of a window that keeps nothing are those of one that keeps all."""
    streams = []
    for summarizer in (None, sg.WindowSummarizer):
        heard, now = Hears(), [0]
        spec = sg.WindowSpec(kind="tumbling", evict=evict)
        window = sg.WindowOperator(spec, heard, lambda now=now: now[0], summarizer=summarizer)  # type: ignore[misc]
        for x in (1, 2, 4, 5, 5, 9):
            now[0] = x
            window.insert(x)
        streams.append([event[:3] for event in heard.events])
    assert streams[0] == streams[1]


def test_a_partition_that_leaves_closes_its_summarizer() -> None:
    """After the handler has seen it."""
    told: list[str] = []

    class Notes(sg.WindowSummarizer):
        def close(self) -> None:
            told.append("close")

    class Sees(sg.WindowHandler):
        def partition_eviction(self, window: Any, partitions: Any) -> None:
            told.append(f"sees {len(partitions[0].summarizers)}")

    spec = sg.WindowSpec(kind="tumbling", evict=sg.policies.count(9), key="k", partitions=sg.PartitionEviction(count=1))
    window = sg.WindowOperator(spec, Sees(), summarizer=Notes)
    for k in "ab":
        window.insert({"k": k})
    assert told == ["sees 1", "close"]


@pytest.mark.parametrize(
    ("spec", "given", "message"),
    [
        (SLIDING, {"summarizer": sg.WindowSummarizer}, "summarizer: a sliding window has to keep its readings"),
        (
            sg.WindowSpec(kind="session", evict=sg.policies.time(1)),
            {"summarizer": sg.WindowSummarizer},
            "summarizer: a session window may join another",
        ),
        (
            sg.WindowSpec(kind="session", evict=sg.policies.time(1)),
            {"clock": lambda: 0},
            "clock: the window goes by event time",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(spec: sg.WindowSpec, given: dict[str, Any], message: str) -> None:
    """With the reason."""
    with pytest.raises(ConfigurationError, match=message):
        sg.WindowOperator(spec, **given)


DELTA = sg.WindowSpec(kind="sliding", evict=sg.policies.delta("x", 1, growing=True), trigger=sg.triggers.delta("y", 1))


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        ({"y": 1}, "'x' missing"),
        ({"x": 3}, "'y' missing"),
        ({"x": "1", "y": 1}, r"reading\['x'\]: '1', expected a finite number"),
        ({"x": 3, "y": float("nan")}, r"reading\['y'\]: nan, expected a finite number"),
        ({"x": True, "y": 1}, r"reading\['x'\]: True"),
        ({"x": 2, "y": 5}, r"reading\['x'\]: 2 after 3, but it is declared growing"),
        (object(), "'x' missing"),
    ],
)
def test_a_reading_that_policies_cannot_read_is_refused(reading: Any, message: str) -> None:
    """Before anything changes."""
    window = sg.WindowOperator(DELTA)
    window.insert({"x": 3, "y": 1})
    with pytest.raises(InputError, match=message):
        window.insert(reading)
    assert len(window) == 1


def test_wrong_times_and_keys_are_refused() -> None:
    """A window by arrival takes no time, one by event time needs it; a key can be looked up."""
    with pytest.raises(InputError, match="time: given, but the window goes by arrival"):
        sg.WindowOperator(COUNT).insert(1, time=3)
    window = sg.WindowOperator(sg.WindowSpec(kind="session", evict=sg.policies.time(1), key="k"))
    for wrong in (None, 1.5, 2**62):
        with pytest.raises(InputError, match="time: "):
            window.insert({"k": 1}, time=wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="advance: missing"):
        window.advance()
    with pytest.raises(InputError, match="reading: 'k' missing"):
        window.insert({}, time=1)
    with pytest.raises(InputError, match=r"key: .* cannot be a key"):
        window.insert({"k": []}, time=1)
    assert len(window) == 0


def test_an_attribute_that_falls() -> None:
    """As in `sg.policies.delta`: what is too far away on either side leaves, the oldest first."""
    spec = sg.WindowSpec(kind="sliding", evict=sg.policies.delta(None, 5), trigger=sg.triggers.delta(None, 5))
    heard = Hears()
    window = sg.WindowOperator(spec, heard)
    for x in (100, 103, 2):
        window.insert(x)
    assert window.readings() == [2]
    assert [event[0] for event in heard.events if event[0] == "trigger"] == ["trigger"]
