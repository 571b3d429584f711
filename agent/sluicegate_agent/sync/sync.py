"""From the outbox to the target: seal, put, delete what is acknowledged; one bounded step at a time.

A chunk is durable in the store before it is first sent, and deleted only after the target has it durably. A process
that ends anywhere in between sends the same bytes under the same id again, which is success.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from sluicegate_agent import faults
from sluicegate_agent.budget.keeping import keeping_of
from sluicegate_agent.state import State
from sluicegate_agent.state.parting import note_overtaken
from sluicegate_agent.sync.apart import Apart
from sluicegate_agent.sync.aside import Aside
from sluicegate_agent.sync.contract import Document, Outcome, Target
from sluicegate_agent.sync.files import OTHER_BYTES, UNUSED
from sluicegate_agent.sync.link import Link
from sluicegate_agent.sync.sealing import DOCUMENTS_MOST, Sealer

if TYPE_CHECKING:
    from sluicegate_agent.config import Config

log = logging.getLogger("sluicegate.sync")
STEP_SECONDS = 0.25


class Sync:
    """Moves chunks from a state's outbox to a target; call `step` again and again from the thread that commits."""

    def __init__(self, config: Config, state: State, target: Target | None = None) -> None:
        """Without `target`, the one of the configuration."""
        self.state = state
        self.every_seconds = config.sync.every.seconds
        self.target = target if target is not None else target_of(config, _known(state))
        self.link = Link(config.sync.target if target is None else type(target).__name__)
        self.sealer = Sealer(state, self.target.pace if isinstance(self.target, Aside) else None)
        self.keeping = keeping_of(config, state)
        self.sealer.keeping = self.keeping
        self._pending: dict[str, int] | None = None
        self._is_short = False  # the link's budget lacks what the oldest document takes
        #: Whether who turns this begins anew where the target has other documents under our names; whether it has.
        self.parts = self.is_overtaken = False

    @property
    def is_busy(self) -> bool:
        """Whether an answer of the target is pending: it is worth asking again soon."""
        return self._pending is not None

    def is_taking(self, now: float) -> bool:
        """Whether the target takes documents, as far as is known, and there are some that may be sent now."""
        is_reached = self.target is not None and self.link.state != "down" and not self.is_done()
        return is_reached and not self._is_short and (self.keeping is None or self.keeping.left(now) > 0)

    @property
    def is_hung(self) -> bool:
        """Whether the target's file system does not answer: waiting for it may take for ever."""
        return isinstance(self.target, Apart) and self.target.hangs

    def step(self, now: float, *, flush: bool = False) -> None:
        """Send what is due, for about STEP_SECONDS at most; `now` in monotonic seconds. `flush` sends short chunks too.

        A target that fails is tried again later, twice as long each time, and so is a store that refuses.

        Raises StoreDamaged.
        """
        if self.target is not None and (flush or self.link.is_due(now) or self._is_urgent(now)):
            try:
                if self.keeping:
                    self.keeping.limit_outbox()
                self._rounds(self.target, now, flush)
            except sqlite3.Error as error:
                self.state.counters.add("sync.store_refused")
                self.link.failed(now, f"store: {error}", 0.0)
        self._note_link()

    def _is_urgent(self, now: float) -> bool:
        """Whether the outbox fills while the link rests."""
        return self.sealer.is_crowded and self.is_taking(now)

    def is_done(self) -> bool:
        """Whether nothing is left that a target could take."""
        return self.target is None or (self.state.outbox.rows == 0 and self.state.outbox.sealed == 0)

    def close(self) -> None:
        """Let the target go."""
        if self.target is not None:
            self.target.close()

    def _rounds(self, target: Target, now: float, flush: bool) -> None:
        end = time.monotonic() + STEP_SECONDS
        while self._seal_if_due(now, flush):
            if not self._send(target, now) or time.monotonic() >= end:
                return
        self._rest(target, now)

    def _rest(self, target: Target, now: float) -> None:
        """Nothing is to be sent: let the target rest; before the first document it says which one it is."""
        outcome = target.put(())
        if outcome.mark and outcome.mark != self.state.known_target():
            with self.state.transaction() as connection:
                self.state.keep_target(connection, outcome.mark)
        if outcome.retry_after is not None:
            self.link.failed(now, outcome.error, outcome.retry_after)
        elif not outcome.pending:
            self.link.rest(now, self.every_seconds)

    def _seal_if_due(self, now: float, flush: bool) -> bool:
        """Whether there is something to send; nothing new is sealed while older chunks wait."""
        if self.state.outbox.sealed or self._pending is not None:
            return True
        if self.keeping and not self.keeping.left(now):
            return False
        ahead = self.is_taking(now)  # what is sealed cannot shrink while the target is away
        due = self.sealer.due(now, flush=flush, ahead=ahead)
        return bool(due) and self.sealer.seal(due, now, flush=flush, ahead=ahead) > 0

    def _send(self, target: Target, now: float) -> bool:
        """Put what is sealed and delete what the target has; whether to go on."""
        outcome, sizes = self._put(target, now)
        if outcome.pending:
            return False
        if self.parts and self._is_ours(outcome.rejected):
            return self._overtaken(outcome, now)
        if inherited := self._inherited(outcome.rejected):
            self._regroup(inherited)
            outcome = replace(outcome, rejected={k: v for k, v in outcome.rejected.items() if k not in inherited})
        aside, crowded = self.state.outbox.room_for(outcome.rejected)
        if outcome.accepted or aside:
            self._settle(replace(outcome, rejected=aside), sizes)
        if crowded:
            outcome = replace(outcome, retry_after=outcome.retry_after or 0.0, error=crowded)
        if outcome.retry_after is not None:
            self.state.counters.add("sync.retries")
            self.link.failed(now, outcome.error, outcome.retry_after)
            return False
        self.link.succeeded(now)
        return True

    def _put(self, target: Target, now: float) -> tuple[Outcome, dict[str, int]]:
        """The target's answer to what is sealed, or to what it was given before; and the bytes of each document."""
        sizes, documents = self._pending, list[Document]()
        if sizes is None:
            waiting = self.state.outbox.waiting(self.state.store.connection, DOCUMENTS_MOST)
            documents = [Document(chunk.id, chunk.document) for chunk in waiting]
            if self.keeping:
                documents = self.keeping.charged(documents, now)
            sizes, self._is_short = {each.id: len(each.data) for each in documents}, not documents
            if not documents:
                self.link.rest(now, self.every_seconds)
                return Outcome(pending=True), sizes
        faults.step("put: before")
        outcome = target.put(documents)
        faults.step("put: after")
        self._pending = sizes if outcome.pending else None
        return outcome, sizes

    def _is_ours(self, rejected: dict[str, str]) -> bool:
        """Whether another has used a name that only this state can give: it went back, or a copy of it runs."""
        names = {stream.incarnation for stream in self.state.streams.values()}
        return any(why == OTHER_BYTES and name.split("::")[2] in names for name, why in rejected.items())

    def _overtaken(self, outcome: Outcome, now: float) -> bool:
        """The state has to part, which a start does; nothing more is sent before that."""
        with self.state.transaction() as connection:
            self.state.outbox.acknowledge(connection, outcome.accepted)
            note_overtaken(connection)
        self.is_overtaken = True
        self.link.failed(now, "the target has other documents under our names: the agent begins anew", 0.0)
        return False

    def _inherited(self, rejected: dict[str, str]) -> list[str]:
        """Documents of what a copied state had when it was copied, whose ids the original has used in another cut."""
        incarnations = {stream.incarnation for stream in self.state.retired if not stream.has_left}
        return [name for name, why in rejected.items() if why == OTHER_BYTES and name.split("::")[2] in incarnations]

    def _regroup(self, names: list[str]) -> None:
        """Their first bucket is at the target, under that id; the others go on under an id of their own."""
        with self.state.transaction() as connection:
            there = sum(self.state.outbox.regroup(connection, name) for name in names)
            self.state.count(connection, {"sync.readings_there_already": there})
        for name in names:
            log.warning(
                "%s: the agent that this state was copied from has sent it in another cut: the rest goes on", name
            )

    def _settle(self, outcome: Outcome, sizes: dict[str, int]) -> None:
        """Forget what the target has, set aside what it refuses, and count both, in one transaction."""
        counts = {
            "sync.chunks": len(outcome.accepted),
            "sync.bytes": sum(sizes.get(name, 0) for name in outcome.accepted),
            "sync.rejected": len(outcome.rejected),
        }
        with self.state.transaction() as connection:
            if outcome.mark:
                self.state.keep_target(connection, outcome.mark)
            self.state.outbox.acknowledge(connection, outcome.accepted)
            faults.step("settle: deleted")
            counts["sync.readings_dropped"] = self.state.outbox.reject(connection, outcome.rejected)
            self.state.count(connection, counts)
        for name, reason in outcome.rejected.items():
            log.error("%s: refused for good by the target: %s; kept in the state directory", name, reason)

    def _note_link(self) -> None:
        """Keep a change of the link for `status`; a store that refuses has said so elsewhere."""
        if not self.link.changed:
            return
        try:
            with self.state.transaction() as connection:
                self.state.write_link(connection, self.link.as_dict())
            self.link.changed = False
        except sqlite3.Error:
            self.state.counters.add("sync.store_refused")


def _known(state: State) -> str:
    """The mark of the directory that was used before; whether anything was sent to it is said with it."""
    mark = state.known_target()
    return mark + UNUSED if mark and not state.counters["sync.chunks"] else mark


def target_of(config: Config, known: str = "") -> Target | None:
    """The target that the configuration names; what a target needs is imported with it, not before.

    `known`: the mark of the directory that was used before.

    Raises EnvironmentRefused for a missing secret, certificate or package.
    """
    if config.sync.target == "directory" and config.sync.path is not None:
        return Apart(config.sync.path, config.state.path, known, config.sync.timeout.seconds)
    if config.sync.target == "sync-gateway":
        from sluicegate_agent.sync.rest import rest_target

        return Aside(rest_target(config))
    if config.sync.target == "couchbase-lite":
        from sluicegate_agent.sync import couchbase_lite

        return Aside(couchbase_lite.from_config(config))
    if config.sync.target == "couchbase":
        from sluicegate_agent.sync import couchbase_server

        return Aside(couchbase_server.from_config(config))
    return None
