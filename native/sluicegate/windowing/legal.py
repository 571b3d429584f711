"""Which definitions make a window, and why the others do not: each refusal names the place and the reason.

Source: SPL's windowing library, 3.1 to 3.3 (tumbling and sliding). Hopping and session windows, and all windows that go
by event time, are not in it: they go by time alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sluicegate.errors import ConfigurationError
from sluicegate.policies import Count, Delta, Punctuation, Time
from sluicegate.windowing import calendar
from sluicegate.windowing.triggers import CountTrigger, DeltaTrigger, TimeTrigger

if TYPE_CHECKING:
    from sluicegate.windowing.spec import WindowSpec

KINDS = ("tumbling", "sliding", "hopping", "session")
Refusal = tuple[str, str]


def check(spec: WindowSpec) -> None:
    """Raise ConfigurationError for the first thing that makes no window."""
    for place, reason in _refusals(spec):
        raise ConfigurationError(f"{place}: {reason}")


def _refusals(spec: WindowSpec) -> Iterator[Refusal]:
    if spec.kind not in KINDS:
        yield "kind", f"{spec.kind!r}, expected one of {', '.join(KINDS)}"
    yield from _eviction(spec)
    yield from _trigger(spec)
    yield from _keys(spec)
    yield from _aligned(spec)
    if spec.lateness is not None and spec.kind == "sliding":
        yield "lateness", _NO_LATENESS[spec.asked]
    if spec.lateness is not None and not spec.by_event_time:
        yield "lateness", f"a tumbling window by {_name(spec.evict)} goes by arrival: no reading comes late into it"
    if not isinstance(spec.partial, bool):
        yield "partial", f"{spec.partial!r}, expected True or False"
    if not spec.partial and spec.kind != "sliding":
        yield "partial", f"a {spec.kind} window is not processed before it is full; only a sliding one has a choice"
    if not spec.partial and spec.asked:
        yield "partial", "a window without trigger answers whenever it is asked; give a trigger, or leave it out"


def _eviction(spec: WindowSpec) -> Iterator[Refusal]:
    evict = spec.evict
    if evict is None and not (spec.kind == "tumbling" and spec.aligned in calendar.UNITS):
        yield "evict", "missing, expected sg.policies.count(n), .time('1h'), .delta(attribute, width) or .punctuation()"
    if evict is not None and not isinstance(evict, Count | Time | Delta | Punctuation):
        yield "evict", f"{evict!r}, expected count, time, delta or punctuation of sg.policies; sg.Window takes the rest"
    if isinstance(evict, Punctuation) and spec.kind != "tumbling":
        yield "evict", f"punctuation ends tumbling windows only: nothing says what leaves a {spec.kind} one"
    if isinstance(evict, Count | Time) and evict.up_to is not None and not spec.asked:
        yield "evict.up_to", "what may still become an extreme is kept by sg.Window, not by a window of readings"
    if isinstance(evict, Count | Time) and evict.hop > 1 and spec.kind in _NO_HOP and not spec.asked:
        yield "evict.hop", _NO_HOP[spec.kind]
    if spec.kind == "session" and not isinstance(evict, Time):
        yield "evict", "a session ends with a pause, expected its length: sg.policies.time('30min')"
    if spec.kind == "hopping" and not isinstance(evict, Time):
        yield "evict", "a hopping window goes by time, expected sg.policies.time('1h', hop='10min'); else take sliding"
    if spec.kind == "hopping" and isinstance(evict, Time) and evict.hop <= 1:
        yield "evict.hop", "missing: how far the window moves on, as in sg.policies.time('1h', hop='10min')"
    if spec.kind == "hopping" and isinstance(evict, Time) and evict.hop > evict.span:
        yield "evict.hop", "longer than the window: readings between two windows would be in none"


_NO_LATENESS = {
    True: "a window that is answered when it is asked takes each reading that belongs, however late it comes",
    False: "a sliding window keeps readings in order of arrival; by event time take kind 'hopping'",
}
_NO_HOP = {
    "tumbling": "a tumbling window empties at once; take kind 'hopping' for windows that overlap",
    "sliding": "a sliding window's trigger says when it is processed; take kind 'hopping' for windows that overlap",
    "session": "a session moves on with its readings",
}


def _trigger(spec: WindowSpec) -> Iterator[Refusal]:
    trigger = spec.trigger
    if trigger is not None and not isinstance(trigger, CountTrigger | DeltaTrigger | TimeTrigger):
        yield "trigger", f"{trigger!r}, expected sg.triggers.count(n), .delta(attribute, width) or .time('1m')"
    if spec.kind == "tumbling" and trigger is not None and not spec.by_event_time:
        yield "trigger", "a tumbling window is processed when it is full, which its eviction policy says"
    if isinstance(trigger, DeltaTrigger) and spec.by_event_time:
        yield "trigger", "early results of a window by event time go by count or time"


def _keys(spec: WindowSpec) -> Iterator[Refusal]:
    key = spec.key
    names = [key] if isinstance(key, str) else key
    if key is not None and not callable(key) and not _all_names(names):
        yield "key", f"{key!r}, expected the name of an attribute, several of them, or a callable"
    if key is None and spec.partitions is not None:
        yield "partitions", "a window without key is one partition, which never leaves; give a key, or leave it out"


def _all_names(names: object) -> bool:
    return isinstance(names, list | tuple) and bool(names) and all(isinstance(each, str) and each for each in names)


def _aligned(spec: WindowSpec) -> Iterator[Refusal]:
    aligned, evict = spec.aligned, spec.evict
    if aligned is None:
        if spec.timezone is not None:
            yield "timezone", "nothing is aligned to it; say aligned='clock', 'day', 'week', 'month' or 'year'"
        return
    if aligned != "clock" and aligned not in calendar.UNITS:
        yield "aligned", f"{aligned!r}, expected 'clock', {', '.join(map(repr, calendar.UNITS))} or None"
    if spec.kind not in ("tumbling", "hopping") or (evict is not None and not isinstance(evict, Time)):
        yield "aligned", f"only tumbling and hopping windows by time begin by the clock, not {_whole_name(spec)}"
    if not isinstance(evict, Time):
        return
    hop = evict.hop if spec.kind == "hopping" else evict.span
    if aligned == "clock" and (calendar.DAY % hop or hop < calendar.MINUTE):
        yield "evict", "to begin by the clock, what a window moves on by must divide a day, and be a minute or more"
    if aligned in ("month", "year"):
        yield "evict", f"a {aligned} has no length in time; leave evict out of a tumbling window of one {aligned}"
    unit = {"day": calendar.DAY, "week": 7 * calendar.DAY}.get(aligned, hop)
    if hop != unit:
        yield "evict", f"to begin with each {aligned} a window must move on by one {aligned}"
    if evict.span % hop:
        yield "evict", "the length must be a whole number of hops to end where the clock says"


def _name(evict: object) -> str:
    return {Count: "count", Delta: "delta", Punctuation: "punctuation", Time: "time"}.get(type(evict), repr(evict))


def _whole_name(spec: WindowSpec) -> str:
    return f"{spec.kind} ones by {_name(spec.evict)}"
