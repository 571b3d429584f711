"""The readable twin of sluicegate.joining.staging and .room: how room is made, and the tail that decides late."""

from __future__ import annotations

from collections.abc import Sequence

from sluicegate.constants import BY_COUNT, KEPT_LEVELS
from sluicegate.errors import BusyError
from sluicegate.monoids.layout import COUNT, O_FIRST, T_FIRST, T_LAST
from sluicegate.reference.engines.staged import Staged, Verdict
from sluicegate.reference.event_time import EventTime
from sluicegate.reference.program import Partial


class Staging(EventTime):
    """A window that makes room among its buckets."""

    def limit_to(self, limit: int) -> None:
        """From now on at most `limit` buckets; neighbours are merged until no more are there."""
        if self._evicting:
            raise BusyError("window: busy with an eviction; a policy may not limit its own window")
        self.limit = limit
        while self._constrained() > limit:
            self._make_room()

    def _constrained(self) -> int:
        """How many buckets the limit counts: all but what is staged."""
        return self._engine.tail - self._engine.head if self._staged is None else self._staged.kept

    def _make_room(self) -> None:
        """One bucket less at least: by the pair that adds least, or by a level."""
        if self._pairs is None:
            self._evict_level()
            return
        leaf = self._engine.leaf(self._engine.head)
        out = int(leaf[O_FIRST] + leaf[COUNT]) - 1 - self.cut(leaf).most
        merged = self._pairs.merge() if self._staged is None else self._staged.merge_stored()
        if merged.oldest:
            self.edge = max(self.edge, out)
        if merged.newest and self._rules is not None:
            self._rules.coarsened()

    def _evict_level(self) -> None:
        engine, leaf = self._engine, self._engine.leaf(self._engine.head)
        self.edge = max(self.edge, int(leaf[O_FIRST] + leaf[COUNT]) - 1 - self.cut(leaf).most)
        self.heads.append(engine.head)
        engine.coarsen()
        if self._rules is not None:
            self._rules.coarsened()
        self.level += 1
        self.mark >>= 1
        if self.level % KEPT_LEVELS == 0:  # every leaf is given out again: rows of lower levels can be forgotten
            self.mark, self.heads = 0, []

    # with a staging tail

    def _place_staged(self, staged: Staged, values: Sequence[float], reading: Partial) -> None:
        """The newest bucket takes the reading that hides it; else the reading is staged, after room was made."""
        joined = staged.takes(reading)
        if joined:
            staged.join(reading)
            self._collapse(staged)
        else:
            if len(staged.staged) == staged.most:
                self._spill(staged)
            staged.push(reading)
        if self._rules is not None:
            self._rules.took(values, self.accepted, joined)

    def _collapse(self, staged: Staged) -> None:
        """The newest bucket and those that it hides become one."""
        while staged.tail - staged.head > 1 and staged.hides(staged.staged[-1], staged.leaf(staged.tail - 2)):
            if staged.tail - staged.head == 2:
                self._note_oldest()
            if len(staged.staged) > 1:
                staged.collapse()
            else:
                staged.take_back()

    def _spill(self, staged: Staged) -> None:
        """The oldest staged bucket leaves the tail: into the next, into the newest stored, or as a stored one."""
        verdict = self._verdict(staged)
        while verdict == Verdict.OPEN and self.limit and staged.kept >= self.limit:
            self._make_room()
            verdict = self._verdict(staged)
        if verdict != Verdict.OPEN and staged.kept < 2:
            self._note_oldest()
        staged.spill(verdict)
        self.created += verdict == Verdict.OPEN

    def _verdict(self, staged: Staged) -> Verdict:
        if staged.irrelevant():
            return Verdict.FORWARD
        old, stored = staged.staged[0], staged.stored
        if not staged.kept or stored.leaf(stored.tail - 1)[T_LAST] > old[T_FIRST]:
            return Verdict.OPEN
        newest = stored.leaf(stored.tail - 1)
        if staged.hides(old, newest) or not staged.candidate(old):
            return Verdict.JOIN
        full = self.limit and staged.kept >= self.limit
        return Verdict.JOIN if full and stored.wants(old, staged.staged[1:]) else Verdict.OPEN

    @property
    def _fewest_cut(self) -> int:
        """The readings that a window up to an extreme holds at least when its edge cuts a bucket, 0: not known.

        Before, what leaves is irrelevant: buckets need not be finer than they will be then.
        """
        return self._value if self._up_to and self._policy == BY_COUNT else 0

    def _note_oldest(self) -> None:
        """The oldest bucket takes over another: what has left of it stays known."""
        leaf = self._engine.leaf(self._engine.head)
        self.edge = max(self.edge, int(leaf[O_FIRST] + leaf[COUNT]) - 1 - self.cut(leaf).most)
