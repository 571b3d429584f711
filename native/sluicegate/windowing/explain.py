"""A definition in plain words, such as `check --explain` prints.

"every minute, the mean of the last hour for each sensor; a sensor silent for a day is dropped after its last result".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluicegate.policies import Count, Delta, Time
from sluicegate.windowing.calendar import UNITS
from sluicegate.windowing.partitions import PartitionEviction
from sluicegate.windowing.triggers import CountTrigger, DeltaTrigger, TimeTrigger

if TYPE_CHECKING:
    from sluicegate.windowing.spec import WindowSpec

_UNITS = (
    ("week", 604_800_000_000),
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
    ("millisecond", 1_000),
    ("microsecond", 1),
)


def explain(spec: WindowSpec, of: str, when: str) -> str:
    """One sentence: when, what, of which readings, for which keys; then what else holds."""
    words = {"tumbling": _tumbling, "sliding": _sliding, "hopping": _hopping, "session": _session}[spec.kind]
    said = f"{when}, {of} of {_asked(spec.evict)}" if spec.asked else words(spec, of)
    clauses = [said + _each(spec.key) + _clock(spec), *_early(spec), *_late(spec), *_partitions(spec)]
    return "; ".join(clauses)


def _asked(evict: Any) -> str:
    """What a window holds that is answered when it is asked."""
    if isinstance(evict, Delta):
        return f"the readings {_attribute(evict.dimension)} is within {evict.width:g} of the newest's"
    if isinstance(evict, Time):
        said, step = f"the last {_bare(evict.span)} by event time", length(evict.hop)
    else:
        said = "the newest reading" if evict.limit == 1 else f"the newest {evict.limit:,} readings"
        step = f"{evict.hop:,} readings"
    moved = f", moved on by {step} at once" if evict.hop > 1 else ""
    left = f", without what stands before the {'maximum' if evict.up_to == 'max' else 'minimum'}"
    return said + moved + (left if evict.up_to else "")


def length(span: int) -> str:
    """A length of time: "an hour", "90 seconds"."""
    unit, size = _unit(span)
    if span == size:
        return f"an {unit}" if unit == "hour" else f"a {unit}"
    return f"{span // size:,} {unit}s"


def _unit(span: int) -> tuple[str, int]:
    return next((unit, size) for unit, size in _UNITS if span % size == 0)


def _bare(span: int) -> str:
    """The length after "every" or "the last": without its article."""
    unit, size = _unit(span)
    return unit if span == size else f"{span // size:,} {unit}s"


def _readings(n: int) -> str:
    return "reading" if n == 1 else f"{n:,} readings"


def _attribute(name: str | None) -> str:
    return "whose value" if name is None else f"whose {name}"


def _tumbling(spec: WindowSpec, of: str) -> str:
    evict = spec.evict
    if isinstance(evict, Count):
        return f"after every {_readings(evict.limit)}, {of} of {'it' if evict.limit == 1 else 'those'}"
    if isinstance(evict, Delta):
        first = f"before a reading {_attribute(evict.dimension)} is more than {evict.width:g} past the window's first"
        return f"{first}, {of} of the window"
    if not isinstance(evict, Time) and not spec.aligned:
        return f"at each punctuation, {of} of what came since the one before"
    if not spec.by_event_time:
        return f"every {_bare(_span(evict))}, {of} of what arrived since the last time"
    return f"for each {_extent(spec)}{_place(spec)}, {of}"


def _span(evict: Any) -> int:
    return int(evict.span)


def _extent(spec: WindowSpec) -> str:
    """What a tumbling window by event time is as long as."""
    return spec.aligned if spec.aligned in UNITS else _bare(_span(spec.evict))


def _place(spec: WindowSpec) -> str:
    if not spec.aligned:
        return ""
    by = "the clock" if spec.aligned == "clock" else "the calendar"
    return f" by {by} of {spec.timezone or 'UTC'}"


def _sliding(spec: WindowSpec, of: str) -> str:
    trigger, evict = spec.trigger, spec.evict
    if isinstance(trigger, CountTrigger):
        when = "after each reading" if trigger.count == 1 else f"after every {_readings(trigger.count)}"
    elif isinstance(trigger, TimeTrigger):
        when = f"every {_bare(trigger.period)}"
    elif isinstance(trigger, DeltaTrigger):
        past = f"is more than {trigger.width:g} past that of the last such reading"
        when = f"before each reading {_attribute(trigger.attribute)} {past}"
    if isinstance(evict, Count):
        held = f"the last {_readings(evict.limit)}"
    elif isinstance(evict, Delta):
        held = f"the readings {_attribute(evict.dimension)} is within {evict.width:g} of the newest's"
    else:
        held = f"the last {_bare(_span(evict))}"
    return f"{when}{'' if spec.partial else ', once the window has been full'}, {of} of {held}"


def _hopping(spec: WindowSpec, of: str) -> str:
    evict: Any = spec.evict
    return f"every {_bare(evict.hop)}{_place(spec)}, {of} of the {_bare(evict.span)} before"


def _session(spec: WindowSpec, of: str) -> str:
    return f"after each pause of {length(_span(spec.evict))}, {of} of what came since the one before"


def _each(key: Any) -> str:
    if key is None:
        return ""
    return f" for each {_named(key)}"


def _clock(spec: WindowSpec) -> str:
    return ", by event time" if spec.by_event_time else ""


def _named(key: Any) -> str:
    if callable(key):
        return "key"
    return key if isinstance(key, str) else " and ".join(key)


def _early(spec: WindowSpec) -> list[str]:
    trigger = spec.trigger
    if spec.kind == "sliding" or trigger is None:
        return []
    if isinstance(trigger, CountTrigger):
        return [f"an early result after every {_readings(trigger.count)}"]
    return [f"an early result every {_bare(trigger.period)}"] if isinstance(trigger, TimeTrigger) else []


def _late(spec: WindowSpec) -> list[str]:
    if not spec.by_event_time:
        return []
    if not spec.lateness:
        return ["a result is final at the window's end; what comes later is counted and changes nothing"]
    late = length(spec.lateness)
    revised = f"a late reading gives a revised result until {late} after the end, when it is final"
    return [revised, "later ones are counted and change nothing"]


def _partitions(spec: WindowSpec) -> list[str]:
    limits = spec.partitions
    if limits is None:
        return []
    name, said = _named(spec.key), []
    if limits.age is not None:
        said.append(f"a {name} silent for {length(limits.age)} is dropped after its last result")
    if limits.count is not None:
        said.append(f"of more than {limits.count:,} {name} values {_leaves(limits)} is dropped")
    if limits.readings is not None:
        said.append(f"while more than {limits.readings:,} readings are held {_leaves(limits)} {name} is dropped")
    return said


def _leaves(limits: PartitionEviction) -> str:
    known = {"lru": "the least recently updated", "lfu": "the least frequently updated", "oldest": "the oldest"}
    return known.get(str(limits.select), "what the user selects")
