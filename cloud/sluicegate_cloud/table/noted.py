"""Notes at a place without transactions which version of a table is there as a whole, and which was begun."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sluicegate_cloud.errors import SinkError
from sluicegate_cloud.table.versions import Store, Version, is_same


class Noted(NamedTuple):
    """Which version of which table is there as a whole, made when, and of which others some windows may be."""

    identity: str = ""
    revision: int = 0
    begun: tuple[int, ...] = ()
    made_us: int = 0

    @classmethod
    def of(cls, told: Mapping[str, Any] | None, store: Store, where: str, remedy: str) -> Noted:
        """What a note says, None where there is none. Raises SinkError for another table's."""
        if told is None:
            return cls()
        if told.get("place") != str(store.root):
            raise SinkError(f"{where} has the windows of {told.get('place')}{remedy}")
        begun = tuple(told.get("begun", ()))
        return cls(told.get("identity", ""), int(told["revision"]), begun, int(told.get("made_us", 0)))

    def note(self, store: Store) -> dict[str, Any]:
        """What `of` reads."""
        return {"place": str(store.root), **self._asdict(), "begun": [*self.begun]}

    def since(self, store: Store, version: Version) -> Noted:
        """The same, or nothing at all where the table was made anew since, or restored from before."""
        same = is_same(store, version, self.revision, self.identity, self.made_us)
        return self if same and all(is_same(store, version, one, self.identity) for one in self.begun) else Noted()

    def is_at(self, version: Version) -> bool:
        """Whether there is nothing to do for `version`."""
        return self.revision > version.number or (self.revision == version.number and not self.begun)

    def beginning(self, version: Version) -> Noted:
        """To be noted before the first window of `version` is written."""
        return Noted(version.identity, self.revision, (*self.begun, version.number), self.made_us)

    def ended(self, version: Version, now: Noted) -> Noted:
        """To be noted after the last one, where `now` is what is noted by then.

        If another wrote at the same time, whose windows are there, the next one finds out.
        """
        if now == self:
            return Noted(version.identity, version.number, (), version.made_us)
        newest = max((now.revision, now.made_us), (version.number, version.made_us))
        ended = () if now.revision == self.revision else (now.revision,)  # it began and ended while this one wrote
        return Noted(now.identity, newest[0], tuple({*now.begun, *self.begun, *ended}), newest[1])
