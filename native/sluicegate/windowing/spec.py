"""`WindowSpec`: the one definition of a window that the library, the agent's TOML and the cloud read.

Source: SPL's windowing library, 3.1 to 3.5 (kinds, policies, partitions, partial windows); event time, alignment and
lateness are beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from sluicegate import policies
from sluicegate.checks import MAX_SPAN, is_whole
from sluicegate.errors import ConfigurationError
from sluicegate.policies import Count, Delta, Punctuation, Time
from sluicegate.spans import micros, written
from sluicegate.windowing import calendar, legal, triggers
from sluicegate.windowing.partitions import PartitionEviction
from sluicegate.windowing.regular import Regular
from sluicegate.windowing.triggers import CountTrigger, TimeTrigger, Trigger

Evict = Count | Time | Delta | Punctuation
Key = str | tuple[str, ...] | Callable[[Any], Hashable]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSpec:
    """What a window holds, when it is processed, and for which keys. Raises ConfigurationError for what is no window.

    `kind`: "tumbling", "sliding", "hopping" or "session". `evict`: `sg.policies.count(n)`, `.delta(attribute, width)`,
    `.time("1h")` or, of a tumbling window, `.punctuation()`; of a hopping one `.time("1h", hop="10min")`; of a session
    the pause that ends it. `trigger`: when a sliding window is processed (`sg.triggers`), or when one by event time
    gives early results. A sliding window without one is answered whenever it is asked, as `sg.Window` is: by event time
    where it goes by time, and with `hop` and `up_to` as `sg.policies` have them. `key`: an attribute, several, or a
    callable: a window for each of its values; `partitions`: which of them leave. `partial`: whether a sliding window is
    processed before it has been full.

    Hopping and session windows, and tumbling ones with `lateness` or `aligned`, go by event time. `lateness`: how late
    a reading may be and still correct a result (0 unless said). `aligned`: "clock" for windows that begin at multiples
    of their length since midnight, or "day", "week", "month", "year", in `timezone` (UTC unless said).
    """

    kind: str
    evict: Evict | None = None
    trigger: Trigger | None = None
    key: Key | None = None
    partitions: PartitionEviction | None = None
    partial: bool = True
    lateness: int | None = None
    aligned: str | None = None
    timezone: str | None = None

    def __post_init__(self) -> None:
        """Bring lengths and keys into one form, then refuse what is no window."""
        if isinstance(self.key, list):
            object.__setattr__(self, "key", tuple(self.key))
        if isinstance(self.partitions, Mapping):
            object.__setattr__(self, "partitions", _partitions(self.partitions))
        if self.partitions is not None and not isinstance(self.partitions, PartitionEviction):
            raise ConfigurationError(f"partitions: {self.partitions!r}, expected sg.PartitionEviction(count=…)")
        if self.lateness is not None:
            object.__setattr__(self, "lateness", length_of("lateness", self.lateness))
        legal.check(self)
        if self.timezone is not None:
            calendar.zone(self.timezone)

    @property
    def asked(self) -> bool:
        """Whether it is a sliding window that nothing triggers: it is answered when somebody asks."""
        return self.kind == "sliding" and self.trigger is None

    @property
    def by_event_time(self) -> bool:
        """Whether readings count where their own time puts them, in whatever order they arrive."""
        by_time = self.evict is None or isinstance(self.evict, Time)
        told = self.lateness is not None or self.aligned is not None
        return self.kind in ("hopping", "session") or (self.kind == "tumbling" and by_time and told)

    @property
    def pause(self) -> int:
        """The pause in µs that ends a session; 0 of other windows."""
        return self.evict.span if self.kind == "session" and isinstance(self.evict, Time) else 0

    def covering(self) -> calendar.Covering:
        """Which windows (start, end) hold a time: of tumbling and hopping windows by event time."""
        evict, place = self.evict, calendar.zone(self.timezone or "UTC") if self.aligned else None
        if self.aligned in calendar.UNITS and place is not None:
            units = 1 if not isinstance(evict, Time) or self.kind == "tumbling" else evict.span // evict.hop
            return calendar.by_calendar(self.aligned, units, place)
        if not isinstance(evict, Time):
            raise ConfigurationError("covering: only windows by event time hold times")
        hop = evict.hop if self.kind == "hopping" else evict.span
        return Regular(evict.span, hop).covering if place is None else calendar.on_the_clock(evict.span, hop, place)

    def explain(self, of: str = "the readings", when: str = "whenever it is asked") -> str:
        """The definition in plain words; `of` is what is asked, such as "the mean"; `when`: when one is asked."""
        from sluicegate.windowing.explain import explain

        return explain(self, of, when)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Self:
        """The window that a table says, as `to_dict` writes it. Raises ConfigurationError naming the key.

        `policy = X` is short for `kind = "sliding"` and `evict = X`: a window that is answered when it is asked.
        """
        known = [each.name for each in fields(cls)]
        _only("window", table, [*known, "policy"])
        table = _spelled_out(table)
        if "kind" not in table:
            raise ConfigurationError(f"kind: missing, expected one of {', '.join(legal.KINDS)}")
        read = {"evict": _evict, "trigger": _trigger, "key": _key, "partitions": _partitions}
        return cls(**{name: read[name](value) if name in read else value for name, value in table.items()})

    def to_dict(self) -> dict[str, Any]:
        """Tables, texts and numbers, as TOML and JSON have them; what is not said is left out.

        Raises ConfigurationError where the key or the selection is a callable, which no table can hold.
        """
        table: dict[str, Any] = {"kind": self.kind}
        if self.evict is not None:
            table["evict"] = _evict_table(self.evict)
        if self.trigger is not None:
            table["trigger"] = _trigger_table(self.trigger)
        if callable(self.key):
            raise ConfigurationError("key: a callable cannot be written down; name the attributes")
        if self.key is not None:
            table["key"] = self.key if isinstance(self.key, str) else list(self.key)
        if self.partitions is not None:
            table["partitions"] = _partitions_table(self.partitions)
        if not self.partial:
            table["partial"] = False
        if self.lateness is not None:
            table["lateness"] = written(self.lateness)
        return table | {name: getattr(self, name) for name in ("aligned", "timezone") if getattr(self, name)}


def length_of(place: str, given: object) -> int:
    """A length of time in µs, 0 or more. Raises ConfigurationError that names the place."""
    length = micros(given)
    if not is_whole(length, 0, MAX_SPAN):
        raise ConfigurationError(
            f"{place}: {given!r}, expected a length, 0 or more: µs as an int, or a text like '5min'"
        )
    return length


def _spelled_out(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """The table without the short form."""
    if "policy" not in table:
        return table
    if twice := [name for name in ("kind", "evict") if name in table]:
        raise ConfigurationError(f"policy: is short for kind = 'sliding' and evict; leave out it or {twice[0]}")
    rest = {name: value for name, value in table.items() if name != "policy"}
    return {"kind": "sliding", "evict": table["policy"]} | rest


def _only(place: str, table: Any, known: list[str]) -> None:
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{place}: {table!r}, expected a table of {', '.join(known)}")
    for name in table:
        if name not in known:
            raise ConfigurationError(f"{place}.{name}: unknown, expected {', '.join(known)}")


def _one_of(place: str, table: Any, kinds: dict[str, list[str]]) -> str:
    """Which of the kinds a table is of, with no more settings than that kind has."""
    found = [name for name in kinds if isinstance(table, Mapping) and name in table]
    if len(found) != 1:
        raise ConfigurationError(f"{place}: {table!r}, expected a table with one of {', '.join(kinds)}")
    _only(place, table, [found[0], *kinds[found[0]]])
    return found[0]


def _evict(table: Any) -> Evict:
    kinds = {"count": ["hop", "up_to"], "time": ["hop", "up_to"], "delta": ["width", "growing"], "punctuation": []}
    kind = _one_of("evict", table, kinds)
    if kind in ("count", "time"):
        made = policies.count if kind == "count" else policies.time
        return made(table[kind], hop=table.get("hop", 1), up_to=table.get("up_to"))
    if kind == "delta":
        growing = table.get("growing", False)
        if not isinstance(growing, bool):
            raise ConfigurationError(f"evict.growing: {growing!r}, expected true or false")
        return policies.delta(_attribute(table["delta"]), _needed("evict", table), growing=growing)
    if table["punctuation"] is not True:
        raise ConfigurationError(f"evict.punctuation: {table['punctuation']!r}, expected true")
    return policies.punctuation()


def _trigger(table: Any) -> Trigger:
    kind = _one_of("trigger", table, {"count": [], "time": [], "delta": ["width"]})
    if kind == "delta":
        return triggers.delta(_attribute(table["delta"]), _needed("trigger", table))
    return triggers.count(table["count"]) if kind == "count" else triggers.time(table["time"])


def _attribute(name: Any) -> str | None:
    return None if name == "" else name


def _needed(place: str, table: Any) -> Any:
    if "width" not in table:
        raise ConfigurationError(f"{place}.width: missing: how far the attribute may be")
    return table["width"]


def _key(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key


def _partitions(table: Any) -> PartitionEviction:
    _only("partitions", table, ["count", "readings", "age", "select"])
    return PartitionEviction(**table)


def _evict_table(evict: Evict) -> dict[str, Any]:
    if isinstance(evict, Count | Time):
        up_to = {"up_to": evict.up_to} if evict.up_to else {}
        if isinstance(evict, Time):
            return {"time": written(evict.span)} | ({"hop": written(evict.hop)} if evict.hop > 1 else {}) | up_to
        return {"count": evict.limit} | ({"hop": evict.hop} if evict.hop > 1 else {}) | up_to
    if isinstance(evict, Delta):
        table = {"delta": evict.dimension or "", "width": evict.width}
        return table | ({"growing": True} if evict.growing else {})
    return {"punctuation": True}


def _trigger_table(trigger: Trigger) -> dict[str, Any]:
    if isinstance(trigger, CountTrigger):
        return {"count": trigger.count}
    if isinstance(trigger, TimeTrigger):
        return {"time": written(trigger.period)}
    return {"delta": trigger.attribute or "", "width": trigger.width}


def _partitions_table(partitions: PartitionEviction) -> dict[str, Any]:
    if callable(partitions.select):
        raise ConfigurationError("partitions.select: a callable cannot be written down; take 'user' and a handler")
    table: dict[str, Any] = {"count": partitions.count, "readings": partitions.readings}
    table["age"] = None if partitions.age is None else written(partitions.age)
    table["select"] = None if partitions.select == "lru" else partitions.select
    return {name: value for name, value in table.items() if value is not None}
