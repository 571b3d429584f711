"""Gedik's windows (SPL's windowing library, 2014) as the paper tells them, in lists: what all windows are held against.

Time goes on by whole ticks. `events` is what a handler that listens to everything hears: (event, key, tuple, contents).
Where the paper leaves something open the choice is marked "open:"; docs/kinds.md lists the choices.
"""

from __future__ import annotations

from typing import Any

NEVER = float("inf")


class Subwindow:
    """W^(a=v), the oldest tuple first: pairs of (arrival, tuple)."""

    def __init__(self, key: Any, born: int, now: int) -> None:
        self.key, self.born, self.created, self.updated, self.updates = key, born, now, now, 0
        self.tuples: list[tuple[int, Any]] = []
        self.flushed = now  # open: a subwindow that was never flushed counts from its first tuple
        self.triggered: Any = None  # the tuple that triggered last (3.3.2)
        self.periods, self.counter, self.full = 1, 0, False


class Model:
    """`evict` and `trigger`: ("count", n), ("delta", d), ("time", p) or ("punctuation",); t[1] is the attribute."""

    def __init__(
        self, kind: str, evict: Any, trigger: Any = (), *, partial: bool = True,
        count: float = NEVER, readings: float = NEVER, age: float = NEVER, select: str = "lru",
    ) -> None:  # fmt: skip
        self.kind, self.evict, self.trigger, self.partial = kind, evict, trigger or ("none",), partial
        self.count, self.readings, self.age, self.select = count, readings, age, select
        self.windows: dict[Any, Subwindow] = {}
        self.events: list[tuple[Any, ...]] = []
        self.now: int | None = None
        self.born = 0

    # 3.3: what a tuple's arrival does

    def arrive(self, now: int, key: Any, t: Any) -> None:
        """A tuple comes."""
        self.until(now)
        if key not in self.windows:  # 3.5.1: "one is evicted to make space"
            while len(self.windows) + 1 > self.count:
                self.evict_partition()
            self.born += 1
            self.windows[key] = Subwindow(key, self.born, now)
        w = self.windows[key]
        self.tumble(w, t) if self.kind == "tumbling" else self.slide(w, t)
        while sum(len(each.tuples) for each in self.windows.values()) > self.readings:
            self.evict_partition()

    def tumble(self, w: Subwindow, t: Any) -> None:
        """Table I."""
        by = self.evict[0]
        if by == "delta" and w.tuples and t[1] - w.tuples[0][1][1] > self.evict[1]:
            self.flush(w)
        self.insert(w, t)
        if by == "count" and len(w.tuples) == self.evict[1]:
            self.flush(w)
            del self.windows[w.key]  # 3.2.2: "it can be discarded after it is processed"

    def slide(self, w: Subwindow, t: Any) -> None:
        """Table II: a time-based policy does its part in `until`."""
        by, at = self.evict[0], self.trigger[0]
        if by == "delta" and w.tuples and t[1] - w.tuples[0][1][1] > self.evict[1]:
            self.first_full(w)  # 3.3.2: "considered full when the next tuple would break the delta invariant"
        if at == "delta":
            if w.triggered is None:
                w.triggered = t  # open: the first tuple is what the next are compared with (figure 2)
            elif t[1] - w.triggered[1] > self.trigger[1]:
                w.triggered = t
                self.process(w)
        if by == "count" and len(w.tuples) == self.evict[1]:
            self.evict_oldest(w)
        while by == "delta" and w.tuples and t[1] - w.tuples[0][1][1] > self.evict[1]:
            self.evict_oldest(w)
        self.insert(w, t)
        if by == "count" and len(w.tuples) == self.evict[1]:
            self.first_full(w)
        if at == "count":
            w.counter += 1
            if w.counter == self.trigger[1]:
                w.counter = 0
                self.process(w)

    # 3.3.3: what time does; 3.5.1: age

    def until(self, now: int) -> None:
        """One tick after the other. At a tick, first what has now been exceeded, then the periods that end."""
        self.now = now if self.now is None else self.now
        while self.now < now:
            self.now += 1
            for w in self.oldest_first():
                while self.kind == "sliding" and self.aged(w):
                    self.evict_oldest(w)
            for w in self.oldest_first():
                if self.kind == "tumbling" and self.evict[0] == "time" and self.now - w.flushed > self.evict[1]:
                    w.flushed += self.evict[1]
                    if w.tuples:
                        self.flush(w)
                    else:  # open: where nothing came for a whole period it is discarded
                        del self.windows[w.key]
            for w in self.oldest_first():
                if self.now - w.updated > self.age:
                    self.leave([w])
            for w in self.oldest_first():
                if self.kind == "sliding" and self.evict[0] == "time" and self.now - w.created >= self.evict[1]:
                    self.first_full(w)
            for w in self.oldest_first():
                if self.trigger[0] == "time" and self.now - w.created >= w.periods * self.trigger[1]:
                    w.periods += 1
                    self.process(w)

    def aged(self, w: Subwindow) -> bool:
        """The age invariant is broken."""
        return bool(self.evict[0] == "time" and w.tuples and self.now - w.tuples[0][0] > self.evict[1])

    def punctuate(self, now: int) -> None:
        """3.3.4."""
        self.until(now)
        for w in self.oldest_first():
            self.flush(w)
            del self.windows[w.key]

    # the operations, and the events that they fire (4.1.3)

    def insert(self, w: Subwindow, t: Any) -> None:
        self.tell("before_insert", w, t)
        w.tuples.append((self.now, t))
        w.updated, w.updates = self.now, w.updates + 1
        self.tell("after_insert", w, t)

    def evict_oldest(self, w: Subwindow) -> None:
        t = w.tuples[0][1]
        self.tell("before_evict", w, t)
        w.tuples.pop(0)
        self.tell("after_evict", w, t)

    def flush(self, w: Subwindow) -> None:
        self.tell("before_flush", w)
        w.tuples.clear()
        self.tell("after_flush", w)

    def process(self, w: Subwindow) -> None:
        if w.full or self.partial:
            self.tell("trigger", w)

    def first_full(self, w: Subwindow) -> None:
        if not w.full:
            w.full = True
            self.tell("initial_full", w)

    def evict_partition(self) -> None:
        rank = {"lru": lambda w: w.touch, "lfu": lambda w: (w.updates, w.born), "oldest": lambda w: w.born}
        for order, event in enumerate(self.events):  # the last event that inserted into it
            if event[0] == "after_insert" and event[1] in self.windows:
                self.windows[event[1]].touch = order
        self.leave([min(self.windows.values(), key=rank[self.select])])

    def leave(self, windows: list[Subwindow]) -> None:
        self.events.append(("partition_eviction", [(w.key, [t for _, t in w.tuples]) for w in windows]))
        for w in windows:
            del self.windows[w.key]

    def oldest_first(self) -> list[Subwindow]:
        return sorted(self.windows.values(), key=lambda w: w.born)

    def tell(self, event: str, w: Subwindow, t: Any = None) -> None:
        self.events.append((event, w.key, t, [each for _, each in w.tuples]))
