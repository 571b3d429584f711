"""Every legal window over one worked stream, for the pages of kinds: what each definition means, and what it does.

python -m bench.kinds                 # prints the tables

The page kinds-played.md has them when the site is built (deploy/site/hooks.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import sluicegate as sg

SECOND, HOUR = 1_000_000, 3_600_000_000

# by arrival: (s, name, km); then time until 12 s
STREAM = [(0, "a", 0), (1, "b", 1), (4, "c", 3), (6, "d", 4), (7, "e", 8)]
UNTIL = 12
EVICTS = {
    "count(2)": sg.policies.count(2),
    'delta("km", 2)': sg.policies.delta("km", 2),
    'time("5s")': sg.policies.time("5s"),
}
TRIGGERS = {
    "count(2)": sg.triggers.count(2),
    'delta("km", 2)': sg.triggers.delta("km", 2),
    'time("5s")': sg.triggers.time("5s"),
}

# by event time: in order of arrival, (s, name); then event time until 40 s
TIMED = [(1, "a"), (6, "b"), (12, "c"), (4, "d"), (18, "e"), (3, "f"), (11, "g")]
TIMED_UNTIL = 40
LENGTHS: dict[str, tuple[str, Any, str]] = {  # what it is, its policy, the lateness that is played beside none
    "tumbling": ('time("10s")', sg.policies.time("10s"), "5s"),
    "hopping": ('time("10s", hop="5s")', sg.policies.time("10s", hop="5s"), "5s"),
    "session": ('time("6s")', sg.policies.time("6s"), "9s"),
}
EARLY = {"": None, ', trigger `time("4s")`': sg.triggers.time("4s"), ", trigger `count(2)`": sg.triggers.count(2)}
BY_EVENT_TIME: dict[str, dict[str, Any]] = {
    f"{kind} `{length}`, `lateness={json.dumps(lateness)}`{early}": {
        "kind": kind, "evict": evict, "lateness": lateness, "trigger": trigger,
    }
    for kind, (length, evict, late) in LENGTHS.items()
    for lateness in (0, late)
    for early, trigger in EARLY.items()
}  # fmt: skip

# with keys: (s, name, key)
KEYED = [(0, "a", "p"), (1, "b", "q"), (2, "c", "p"), (3, "d", "r"), (5, "e", "q"), (9, "f", "s")]
LIMITS: dict[str, sg.PartitionEviction | None] = {
    "": None,
    "count=2": sg.PartitionEviction(count=2),
    'count=2, select="lfu"': sg.PartitionEviction(count=2, select="lfu"),
    'count=2, select="oldest"': sg.PartitionEviction(count=2, select="oldest"),
    "readings=3": sg.PartitionEviction(readings=3),
    'age="4s"': sg.PartitionEviction(age="4s"),
}
ALIGNED: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    '`aligned="day"`': ({"kind": "tumbling", "aligned": "day"}, (2026, 3, 29, 12)),
    '`aligned="day"`, in autumn': ({"kind": "tumbling", "aligned": "day"}, (2026, 10, 25, 12)),
    '`time("6h")`, `aligned="clock"`': (
        {"kind": "tumbling", "evict": sg.policies.time("6h"), "aligned": "clock"}, (2026, 3, 29, 1),
    ),
    '`time("1h")`, `aligned="clock"`': (
        {"kind": "tumbling", "evict": sg.policies.time("1h"), "aligned": "clock"}, (2026, 10, 25, 1, 30),
    ),
    '`aligned="week"`': ({"kind": "tumbling", "aligned": "week"}, (2026, 3, 26)),
    '`aligned="month"`': ({"kind": "tumbling", "aligned": "month"}, (2026, 2, 14)),
    '`aligned="year"`': ({"kind": "tumbling", "aligned": "year"}, (2026, 2, 14)),
    'hopping `time("7d", hop="1d")`, `aligned="day"`': (
        {"kind": "hopping", "evict": sg.policies.time("7d", hop="1d"), "aligned": "day"}, (2026, 3, 29, 12),
    ),
}  # fmt: skip


class Tells(sg.WindowHandler):
    """Writes events as the tables show them."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.due = False

    def _say(self, window: sg.WindowOperator, words: str) -> None:
        self.told.append(f"at {(window.now or 0) / SECOND:g} s {words}" if self.due else words)

    def _inside(self, window: sg.WindowOperator, key: Any) -> str:
        return "".join(reading["name"] for reading in window.readings(key))

    def after_insert(self, window: Any, key: Any, reading: Any) -> None:
        self._say(window, f"insert {reading['name']}")

    def after_evict(self, window: Any, key: Any, reading: Any) -> None:
        self._say(window, f"evict {reading['name']}")

    def before_flush(self, window: Any, key: Any) -> None:
        self._say(window, f"**flush {self._inside(window, key)}**")

    def trigger(self, window: Any, key: Any) -> None:
        self._say(window, f"**trigger {self._inside(window, key) or '∅'}**")

    def initial_full(self, window: Any, key: Any) -> None:
        self._say(window, "full")

    def partition_eviction(self, window: Any, partitions: Any) -> None:
        for each in partitions:
            self._say(window, f"**{each.key} leaves: {''.join(reading['name'] for reading in each.readings)}**")


class Results(sg.WindowHandler):
    """Writes results by event time."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def result(self, window: Any, key: Any) -> None:
        pane = window.pane
        inside = "".join(reading["name"] for reading in window.readings())
        extent = f"{pane.start / SECOND:g}–{pane.end / SECOND:g}"
        stage = f"**{pane.stage}**" if pane.stage == "final" else pane.stage
        self.told.append(f"{stage} {extent}: {inside}")


def table(head: list[str], rows: list[list[str]]) -> str:
    """Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def played(spec: sg.WindowSpec, punctuated: bool = False, stream: Any = None) -> list[str]:
    """What each reading of the stream does, and time after it: a cell for each."""
    now, heard, cells = [0], Tells(), []
    window = sg.WindowOperator(spec, heard, lambda: now[0])

    def cell(act: Callable[[], None], due: int) -> None:
        heard.due = True
        window.advance(due)  # what was due before it, with its time
        heard.due = False
        act()
        cells.append(", ".join(heard.told))
        heard.told.clear()

    for at, name, x in stream or STREAM:
        now[0] = at * SECOND
        reading = {"name": name, "km": x, "key": x}
        cell(lambda reading=reading: window.insert(reading), at * SECOND)  # type: ignore[misc]
        if punctuated and name in "be":
            window.punctuate()
            cells[-1] += ", punctuation, " + ", ".join(heard.told)
            heard.told.clear()
    now[0] = UNTIL * SECOND
    cell(lambda: None, UNTIL * SECOND)
    return [each or " " for each in cells]


def by_arrival() -> Iterator[str]:
    """Tables I and II, played; then in words."""
    head = [f"{name} at {at} s, km {km}" for at, name, km in STREAM]
    rows, words = [], []
    for name, evict in [*EVICTS.items(), ("punctuation()", sg.policies.punctuation())]:
        spec = sg.WindowSpec(kind="tumbling", evict=evict)
        rows.append([f"`{name}`", *played(spec, name == "punctuation()")])
        words.append(["tumbling", f"`{name}`", "", spec.explain("the mean")])
    yield table(["tumbling, evict", *head, f"until {UNTIL} s"], rows)
    rows = []
    for name, evict in EVICTS.items():
        for at, trigger in TRIGGERS.items():
            spec = sg.WindowSpec(kind="sliding", evict=evict, trigger=trigger)
            rows.append([f"`{name}`", f"`{at}`", *played(spec)])
            words.append(["sliding", f"`{name}`", f"`{at}`", spec.explain("the mean")])
    yield table(["sliding, evict", "trigger", *head, f"until {UNTIL} s"], rows)
    whole = [
        [f"`{name}`", f"`{at}`", *played(sg.WindowSpec(kind="sliding", evict=evict, trigger=trigger, partial=False))]
        for name, evict in EVICTS.items() for at, trigger in TRIGGERS.items()
    ]  # fmt: skip
    others = [row for row in whole if row not in rows]
    yield table(["sliding, `partial=False`, evict", "trigger", *head, f"until {UNTIL} s"], others)
    yield table(["kind", "evict", "trigger", "in words"], words)


def by_event_time() -> Iterator[str]:
    """Results as readings come, late ones among them."""
    rows = []
    for name, given in BY_EVENT_TIME.items():
        heard = Results()
        window, cells = sg.WindowOperator(sg.WindowSpec(**given), heard), []
        for at, letter in TIMED:
            late = window.late
            window.insert({"name": letter}, at * SECOND)
            cells.append("<br>".join(heard.told) + (" late" if window.late > late else ""))
            heard.told.clear()
        window.advance(TIMED_UNTIL * SECOND)
        rows.append([name, *(cell.strip() or " " for cell in cells), "<br>".join(heard.told)])
    yield table(["window", *(f"{letter}: {at} s" for at, letter in TIMED), f"until {TIMED_UNTIL} s"], rows)


def by_key() -> Iterator[str]:
    """Windows of two readings for each key, and what makes partitions leave."""
    head, rows = [f"{name} at {at} s, key {key}" for at, name, key in KEYED], []
    for kind, trigger in (("tumbling", None), ("sliding", sg.triggers.count(2))):
        for name, limits in LIMITS.items():
            spec = sg.WindowSpec(
                kind=kind, evict=sg.policies.count(2), trigger=trigger, key="key", partitions=limits
            )  # fmt: skip
            rows.append([kind, f"`{name}`" if name else "none", *played(spec, stream=KEYED)])
    yield table(["`count(2)`", "partitions", *head, f"until {UNTIL} s"], rows)


def aligned() -> Iterator[str]:
    """Where windows begin and end in Vienna."""
    from zoneinfo import ZoneInfo

    vienna, rows = ZoneInfo("Europe/Vienna"), []
    for name, (given, wall) in ALIGNED.items():
        moment = datetime(*wall, tzinfo=vienna)  # type: ignore[misc, arg-type]
        time = round(moment.timestamp()) * SECOND
        start, end = sg.WindowSpec(timezone="Europe/Vienna", **given).covering()(time)[-1]
        shown = [datetime.fromtimestamp(each // SECOND, UTC).astimezone(vienna) for each in (start, end)]
        edges = [f"{each:%Y-%m-%d %H:%M} {each.tzname()}" for each in shown]
        rows.append([name, f"{moment:%Y-%m-%d %H:%M}", *edges, f"{(end - start) / HOUR:g} h"])
    yield table(["window in Europe/Vienna", "that holds", "begins", "ends", "is long"], rows)


PARTS = {"by arrival": by_arrival, "by event time": by_event_time, "aligned": aligned, "by key": by_key}


def put(page: str) -> str:
    """A page with those tables that it has a place for made anew: between `<!-- NAME -->` and `<!-- end -->`."""
    for name, make in PARTS.items():
        mark, end = f"<!-- {name} -->\n", "<!-- end -->"
        before, found, after = page.partition(mark)
        if not found:
            continue
        if end not in after:
            raise SystemExit(f"no {end} behind {mark.strip()}")
        page = before + mark + "\n".join(make()) + after[after.index(end) :]
    return page


if __name__ == "__main__":
    print("\n".join(part for make in PARTS.values() for part in make()))
