"""Gedik's windows (SPL's windowing library, 2014) as the paper tells them, in lists: what all windows are held against.

Time goes on by whole ticks. `events` is what a handler that listens to everything hears: (event, key, tuple, contents).
Where the paper leaves something open the choice is marked "open:"; docs/reference/kinds.md lists the choices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

NEVER = float("inf")


class Subwindow:
    """W^(a=v), the oldest tuple first: pairs of (arrival, tuple); `rank`: by which order partitions leave."""

    def __init__(self, key: Any, born: int, now: int) -> None:
        self.key, self.tuples = key, list[tuple[int, Any]]()
        self.created = self.updated = now
        self.flushed = now  # open: a subwindow that was never flushed counts from its first tuple
        self.triggered: Any = None  # the tuple that triggered last (3.3.2)
        self.periods, self.counter, self.full = 1, 0, False
        self.rank = {"oldest": (born,), "lru": (0,), "lfu": (0, born)}


class Model:
    """`evict` and `trigger`: ("count", n), ("delta", d), ("time", p) or ("punctuation",); t[1] is the attribute."""

    def __init__(
        self, kind: str, evict: Any, trigger: Any = (), *, partial: bool = True,
        count: float = NEVER, readings: float = NEVER, age: float = NEVER, select: str = "lru",
    ) -> None:  # fmt: skip
        self.tumbling, (self.by, *self.size), (self.at, *self.every) = kind == "tumbling", evict, trigger or ("",)
        self.partial, self.count, self.readings, self.age, self.select = partial, count, readings, age, select
        self.windows: dict[Any, Subwindow] = {}  # in the order in which they were born
        self.events: list[tuple[Any, ...]] = []
        self.now: int | None = None
        self.inserted = 0

    # 3.3: what a tuple's arrival does

    def arrive(self, now: int, key: Any, t: Any) -> None:
        """A tuple comes."""
        self.until(now)
        while key not in self.windows and len(self.windows) + 1 > self.count:
            self.evict_partition()  # 3.5.1: "one is evicted to make space"
        w = self.windows.setdefault(key, Subwindow(key, self.inserted, now))
        self.tumble(w, t) if self.tumbling else self.slide(w, t)
        while sum(len(each.tuples) for each in self.windows.values()) > self.readings:
            self.evict_partition()

    def tumble(self, w: Subwindow, t: Any) -> None:
        """Table I."""
        if self.breaks_delta(w, t):
            self.flush(w)
        self.insert(w, t)
        if self.by == "count" and len(w.tuples) == self.size[0]:
            self.flush(w)
            del self.windows[w.key]  # 3.2.2: "it can be discarded after it is processed"

    def slide(self, w: Subwindow, t: Any) -> None:
        """Table II: a time-based policy does its part in `until`."""
        if self.breaks_delta(w, t):  # 3.3.2: "considered full when the next tuple would break the delta invariant"
            self.first_full(w)
        if self.at == "delta":  # open: the first tuple is what the next are compared with (figure 2)
            fires = w.triggered is not None and t[1] - w.triggered[1] > self.every[0]
            if fires or w.triggered is None:
                w.triggered = t
            self.process(w, fires)
        while self.breaks_delta(w, t) or (self.by == "count" and len(w.tuples) == self.size[0]):
            self.evict_oldest(w)
        self.insert(w, t)
        if self.by == "count" and len(w.tuples) == self.size[0]:
            self.first_full(w)
        if self.at == "count":
            w.counter += 1
            self.process(w, w.counter % self.every[0] == 0)

    def breaks_delta(self, w: Subwindow, t: Any) -> bool:
        """The oldest tuple is too far from this one."""
        return bool(self.by == "delta" and w.tuples and t[1] - w.tuples[0][1][1] > self.size[0])

    # 3.3.3: what time does; 3.5.1: age

    def until(self, now: int) -> None:
        """One tick after the other. At a tick, first what has now been exceeded, then the periods that end."""
        self.now = now if self.now is None else self.now
        while self.now < now:
            self.now += 1
            for step in (self.exceed, self.grow_old, self.fill, self.end_period):
                for w in [*self.windows.values()]:
                    step(w, self.now)

    def exceed(self, w: Subwindow, now: int) -> None:
        """The age invariant, or the time since the last flush."""
        while self.by == "time" and not self.tumbling and w.tuples and now - w.tuples[0][0] > self.size[0]:
            self.evict_oldest(w)
        if self.by == "time" and self.tumbling and now - w.flushed > self.size[0]:
            w.flushed += self.size[0]
            if w.tuples:
                self.flush(w)
            else:  # open: where nothing came for a whole period it is discarded
                del self.windows[w.key]

    def grow_old(self, w: Subwindow, now: int) -> None:
        """3.5.1."""
        if now - w.updated > self.age:
            self.leave(w)

    def fill(self, w: Subwindow, now: int) -> None:
        """A whole window's time has passed."""
        if not self.tumbling and self.by == "time" and now - w.created >= self.size[0]:
            self.first_full(w)

    def end_period(self, w: Subwindow, now: int) -> None:
        """A trigger by time."""
        if self.at == "time" and now - w.created >= w.periods * self.every[0]:
            w.periods += 1
            self.process(w, True)

    def punctuate(self, now: int) -> None:
        """3.3.4."""
        self.until(now)
        for w in [*self.windows.values()]:
            self.flush(w)
            del self.windows[w.key]

    # the operations, and the events that they fire (4.1.3)

    def insert(self, w: Subwindow, t: Any) -> None:
        self.inserted += 1
        w.updated = self.now or 0
        w.rank |= {"lru": (self.inserted,), "lfu": (w.rank["lfu"][0] + 1, w.rank["lfu"][1])}
        self.do("insert", w, lambda: w.tuples.append((w.updated, t)), t)

    def evict_oldest(self, w: Subwindow) -> None:
        self.do("evict", w, lambda: w.tuples.pop(0), w.tuples[0][1])

    def flush(self, w: Subwindow) -> None:
        self.do("flush", w, w.tuples.clear)

    def process(self, w: Subwindow, fires: bool) -> None:
        if fires and (w.full or self.partial):
            self.tell("trigger", w)

    def first_full(self, w: Subwindow) -> None:
        if not w.full:
            w.full = True
            self.tell("initial_full", w)

    def evict_partition(self) -> None:
        self.leave(min(self.windows.values(), key=lambda w: w.rank[self.select]))

    def leave(self, w: Subwindow) -> None:
        self.events.append(("partition_eviction", [(w.key, [t for _, t in w.tuples])]))
        del self.windows[w.key]

    def do(self, what: str, w: Subwindow, act: Callable[[], Any], t: Any = None) -> None:
        self.tell(f"before_{what}", w, t)
        act()
        self.tell(f"after_{what}", w, t)

    def tell(self, event: str, w: Subwindow, t: Any = None) -> None:
        self.events.append((event, w.key, t, [each for _, each in w.tuples]))
