"""Topic filters whose levels may have names: what the broker is asked for, what a topic says, which filters overlap."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

_NAMED = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
ONE, REST = "+", "#"


class Filter:
    """`plant/{site}/+/#` as levels: a text stands for itself, "+" and "{name}" for one level, "#" for all that follow.

    `$share/group/…` is kept for the subscription; its topics are those of what stands behind the group.
    """

    def __init__(self, written: str) -> None:
        self.written = written
        self.group, self.path = _parted(written)
        self.levels = tuple(self.path.split("/"))

    @cached_property
    def subscription(self) -> str:
        """As the broker is asked."""
        return self.group + "/".join(ONE if is_named(level) else level for level in self.levels)

    @cached_property
    def names(self) -> tuple[str | None, ...]:
        """Of each wildcard in its order: its name, or None."""
        return tuple(name_of(level) for level in self.levels if is_wild(level))

    @property
    def is_wild(self) -> bool:
        """Whether more than one topic can match."""
        return bool(self.names)

    def match(self, topic: str) -> tuple[str, ...] | None:
        """What stands for each wildcard, in their order; None for a topic that does not match."""
        if topic.startswith("$") and is_wild(self.levels[0]):
            return None  # MQTT 5, 4.7.2
        found: list[str] = []
        parts = topic.split("/")
        for place, level in enumerate(self.levels):
            if level == REST:
                return (*found, "/".join(parts[place:])) if len(parts) >= place else None
            if place >= len(parts):
                return None
            if is_wild(level):
                found.append(parts[place])
            elif level != parts[place]:
                return None
        return tuple(found) if len(parts) == len(self.levels) else None

    def overlaps(self, other: Filter) -> bool:
        """Whether some topic matches both."""
        return _overlap(self.levels, other.levels)


def is_named(level: str) -> bool:
    """Whether a level is a name in braces."""
    return _NAMED.fullmatch(level) is not None


def is_wild(level: str) -> bool:
    """Whether other texts than itself match a level."""
    return level in (ONE, REST) or is_named(level)


def name_of(level: str) -> str | None:
    """The name in its braces, if it has any."""
    found = _NAMED.fullmatch(level)
    return found[1] if found else None


def _parted(written: str) -> tuple[str, str]:
    """The part that names a group, with its slash, and the rest."""
    if written.startswith("$share/") and written.count("/") >= 2:
        share, group, rest = written.split("/", 2)
        return f"{share}/{group}/", rest
    return "", written


def _overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    if not one or not other:
        return (not one and not other) or [*one, *other] == [REST]
    if REST in (one[0], other[0]):
        return True
    if not (is_wild(one[0]) or is_wild(other[0]) or one[0] == other[0]):
        return False
    return _overlap(one[1:], other[1:])
