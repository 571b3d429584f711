"""The agent's one loop: messages in, folded, committed, then acknowledged; answers out; chunks on to the target.

One thread. Nothing is acknowledged or answered before the commit that counts it; where a commit fails (a full disk) the
link is let go, so that the broker keeps what it has not delivered, and the commit is tried again until it succeeds.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import sqlite3
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sluicegate_agent import health
from sluicegate_agent.changes import asked, retired
from sluicegate_agent.config import Config
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.handover import hand_over
from sluicegate_agent.identity.kinds import asked_before
from sluicegate_agent.integrations.home_assistant import Discovery
from sluicegate_agent.link.availability import Availability, steps_of
from sluicegate_agent.logs.notices import Notices
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder, is_recorded
from sluicegate_agent.results import Results
from sluicegate_agent.state import State
from sluicegate_agent.sync import Sync
from sluicegate_agent.sync.backpressure import Backpressure
from sluicegate_agent.sync.fresh import Fresh
from sluicegate_agent.web.commits import CommitTimes

if TYPE_CHECKING:
    from sluicegate_agent.alerts.delivery import Alerting
    from sluicegate_agent.inputs.inputs import Inputs
    from sluicegate_agent.inputs.no_broker import NoLink
    from sluicegate_agent.link import Link
    from sluicegate_agent.web.listener import Listener

log = logging.getLogger("sluicegate.agent")

_IDLE = 0.5  # seconds a turn waits at most, so that timers are never later than that
_BUSY = 0.05  # the same while the target's answer is pending
_HELD = 0.01  # between two looks for that answer while nothing is read
_HEALTH_EVERY, _HEALTH_SOON = 60.0, 1.0  # soon: where what it says has changed
_RETRY_COMMIT = 5.0


class Agent:
    """A configured agent on an open state; `turn` after `turn`, then `finish` leaves everything durable."""

    def __init__(self, config: Config, state: State, wake: socket.socket | None = None, planned: int = 0) -> None:
        """`planned`: bytes of memory at most, for who asks the listener. Raises EnvironmentRefused."""
        self.config, self.state = config, state
        recorder = Recorder(config, state) if is_recorded(config) else None
        self.pipeline = Pipeline(config, state, recorder=recorder)
        self.sync = Sync(config, state)
        steps = steps_of(self.pipeline.squeezed, config.availability.floor)
        self.availability = Availability(config.availability, steps)
        self.fresh = Fresh(self.pipeline, self.sync)
        retired_topics = self._remember()
        self.link = self._link(wake, retired_topics)
        self.results = Results(config, self.link, self.pipeline.note, self.pipeline.each)
        self.discovery = (
            Discovery(config, self.link) if config.results.home_assistant and config.results.topic else None
        )
        self.backpressure = Backpressure(self.sync)
        self.notices = Notices(self.sync, self.pipeline)
        self.commits = CommitTimes()
        self.alerting = self._alerting() if config.alert else None
        self.listener = self._listener(planned) if config.metrics.listen is not None else None
        self.inputs = self._inputs()
        self._connection = self._confirmed = 0
        self._commit_after = 0.0
        self._refusal = ""
        self.reload_outcome: Callable[[], dict[str, Any]] | None = None
        self._refused_since_us = 0
        self._shown = ("", 0.0)
        self._last_message = time.monotonic()
        # The process before may have ended between a commit and what it would have published.
        self.pipeline.answer_again()

    def _link(self, wake: socket.socket | None, retired_topics: list[str]) -> Link | NoLink:
        """The broker's; none where there is none."""
        if not self.config.uses_broker:
            from sluicegate_agent.inputs.no_broker import NoLink

            return NoLink(wake)
        from sluicegate_agent.link import Link

        return Link(self.config, self.state.counters, wake, retired_topics, self._asked["subscribed_us"])

    def _inputs(self) -> Inputs | None:
        """Those beside MQTT, imported where there are any."""
        if len(self.config.subscribed) == len(self.config.sources):
            return None
        from sluicegate_agent.inputs.inputs import Inputs

        return Inputs(self.config, self.pipeline, self.link)

    def _alerting(self) -> Alerting:
        """Judged beside each commit from now on, in its transaction."""
        from sluicegate_agent.alerts.alerts import Alerts
        from sluicegate_agent.alerts.delivery import Alerting

        alerts = self.pipeline.beside = Alerts(self.config, self.state, self.pipeline)
        return Alerting(self.config, alerts, self.link)

    def _listener(self, planned: int) -> Listener:
        """Imported where it is configured, since a board that nobody asks needs none of it."""
        from sluicegate_agent.web.listener import Listener

        listener = Listener(self.config, self.pipeline, self.sync, self.link, self.commits, planned)
        if self.alerting:
            alerts = self.alerting.alerts
            listener.view.alerts = lambda: alerts.raised
        return listener

    def _remember(self) -> list[str]:
        """Keep what this configuration asks for; the topics of earlier ones that the broker may still keep for us."""
        connection = self.state.store.connection
        before = asked_before(connection)
        unsubscribed_from = retired(self.config, before)
        now = asked(self.config) | {"retired": unsubscribed_from}
        is_same = all(now[each] == before.get(each) for each in ("topics", "broker", "device"))
        self._asked = now | {"subscribed_us": before.get("subscribed_us", 0) if is_same else 0}
        if self._asked != before:
            self.state.remember(self._asked)
        return unsubscribed_from

    def _note_subscriptions(self) -> None:
        """Keep since when the broker holds our subscriptions, and that it holds no others of ours any more."""
        now = self._asked | {"retired": [*self.link.retired], "subscribed_us": self.link.subscribed_us}
        if now != self._asked:
            self._asked = now
            self.state.remember(now)

    @property
    def idle(self) -> float:
        """Seconds since the last message."""
        return time.monotonic() - self._last_message

    @property
    def is_over(self) -> bool:
        """Whether nothing more can come."""
        return self.inputs is not None and self.inputs.is_over

    def turn(self) -> None:
        """Wait for messages for a moment, take them, and do whatever is due."""
        holds = self.backpressure.holds(time.monotonic())
        self._accept(self._polled(holds=holds))
        self._confirm()
        if self.inputs and not self._refusal and not holds and self.inputs.step():
            self._last_message = time.monotonic()
        self._commit_if_due(is_awaited=self.link.is_window_full or bool(self.inputs and self.inputs.wants_commit))
        now = time.monotonic()
        self._answer(now)
        if self.alerting:
            self.alerting.step(now)
        self.pipeline.entry.command(self.link.command)
        if self.discovery:
            self.discovery.step(self.link.connection)
        self.sync.step(now)
        self.fresh.look()
        self.notices.look()
        if self.listener:
            self.listener.desk.serve()
        self.heed_availability(now)
        self._show_health(now)

    def heed_availability(self, now: float) -> None:
        """Squeeze windows a step while target or store is away, free them a step after; at monotonic second `now`."""
        before, outbox = self.availability.steps, self.state.outbox
        if not self.availability.step(now, self._reached(), outbox.fullness):
            return
        squeezed = self.availability.steps > before
        self.state.counters.add("windows.squeezed" if squeezed else "windows.freed")
        self.pipeline.squeeze_windows(self.availability.limit)
        why = "the target or the store is away" if squeezed else "it is back"
        log.info("%s: windows at step %d", why, self.availability.steps)

    def _reached(self) -> str:
        """How what buckets go to is reached: a store that refuses is away, as the target may be; none is never away."""
        if self._refusal:
            return "down"
        return "up" if self.sync.link.state == "unused" else self.sync.link.state

    def finish(self, *, drain: bool = False) -> None:
        """Commit what was accepted, acknowledge it, leave the broker politely; `drain`: hand everything on first.

        Raises EnvironmentRefused where the target does not take it, or where the store refuses the last commit.
        """
        self.pipeline.fold_next()
        self._commit(time.monotonic())
        self._answer(time.monotonic(), last=True)
        self.link.close()
        self._write_health()
        try:
            self.state.check()
            if self._refusal:
                raise EnvironmentRefused(
                    f"the last commit failed ({self._refusal}): {self.pipeline.pending} messages not acknowledged; "
                    "the broker delivers them again"
                )
            if drain:
                hand_over(self.pipeline, self.sync, self.notices)
        finally:
            self.sync.close()
            if self.inputs:
                self.inputs.close()
            if self.listener:
                self.listener.close()

    def _polled(self, *, holds: bool) -> list[Message]:
        """What has come; nothing is read where the outbox `holds` the inputs back."""
        room = 0 if holds else self.config.mqtt.receive_maximum - self.pipeline.pending
        if holds and self.sync.is_busy:
            time.sleep(_HELD)  # the target has to answer first
        messages = self.link.poll(self._patience(), min(room, self.config.commit_messages))
        if self.link.connection != self._connection:
            self._connection = self.link.connection
            self.pipeline.connected(session_present=self.link.session_present)
        self.pipeline.identities.bare.copies.expect(self.link.former)
        if messages:
            self._last_message = time.monotonic()
        return messages

    def _accept(self, messages: list[Message]) -> None:
        while messages:
            taken = self.pipeline.accept_all(messages)
            if not taken:
                self.link.pause("commits fail, and no more is taken until one succeeds", _RETRY_COMMIT)
                break
            messages = messages[taken:]
            if self.pipeline.has_enough:
                self._commit_if_due()

    def _patience(self) -> float:
        if self.inputs and self.inputs.is_busy and not self._refusal:
            return 0.0
        idle = _BUSY if self.sync.is_busy else _IDLE
        return idle if self._refusal else min(idle, self.pipeline.left(time.monotonic()))

    def _commit_if_due(self, *, is_awaited: bool = False) -> None:
        """`is_awaited`: the broker waits for our acknowledgements, or who posted for an answer, and they for it."""
        now = time.monotonic()
        if (self.pipeline.due(now) or is_awaited) and now >= self._commit_after:
            self._commit(now)

    def commit_now(self) -> bool:
        """Make all that was taken durable; whether that could be."""
        self._commit(time.monotonic())
        return not self._refusal

    def show_health(self) -> None:
        """Write it at the next turn."""
        self._shown = ("", float("-inf"))

    def _commit(self, now: float) -> None:
        try:
            begun = time.perf_counter()
            self._acknowledge(self.pipeline.commit())
            self.commits.took(time.perf_counter() - begun)
            self._refusal = ""
            if self.inputs:
                self.inputs.committed()
            self._answer(now)
        except sqlite3.OperationalError as error:
            self._refused_since_us = self._refused_since_us if self._refusal else time.time_ns() // 1000
            self._refusal = str(error)
            self._commit_after = now + _RETRY_COMMIT
            self.state.counters.add("commits.failed")
            log.error("the commit failed (%s): nothing is acknowledged; trying again in %.0f s", error, _RETRY_COMMIT)
            if self.inputs:
                self.inputs.failed(str(error))
            self.link.pause(f"the state cannot be written ({error})", _RETRY_COMMIT)

    def _answer(self, now: float, *, last: bool = False) -> None:
        """Publish answers when it is time: only while all that is in memory is durable, so that none is taken back."""
        if (last or self.results.due(now)) and not self.pipeline.pending:
            if self.alerting:
                self.alerting.alerts.note()
            answers = self.pipeline.results()
            self.results.offer(answers, now)
            if self.listener:
                self.listener.view.note(answers)

    def _acknowledge(self, packet_ids: list[int]) -> None:
        self.link.ack(packet_ids)
        if packet_ids:
            self.link.confirm(self.pipeline.generation)

    def _confirm(self) -> None:
        """Pass on which acknowledgements the broker has taken, once all that it sent before that is accepted."""
        if self._confirmed < self.link.confirmed:
            self._confirmed = self.link.confirmed
            self.pipeline.confirmed(self._confirmed)

    def _show_health(self, now: float) -> None:
        shown, then = self._shown
        self._note_subscriptions()
        state = f"{self.link.state}{self._refusal}{len(self.state.streams)}"
        if now - then >= (_HEALTH_EVERY if state == shown else _HEALTH_SOON):
            self._shown = (state, now)
            self.state.check()
            self._write_health()

    def _write_health(self) -> None:
        store = {"refuses": self._refusal, "since_us": self._refused_since_us} if self._refusal else {"refuses": ""}
        if self.listener:
            self.listener.view.refusal = self._refusal
        reload = {"reload": self.reload_outcome()} if self.reload_outcome else {}
        shown = {"mqtt": self.link.status(), "store": store, "keys": self.pipeline.entry.members.status()}
        with contextlib.suppress(OSError):
            health.write(self.config.state.path, health.process() | shown | reload)
