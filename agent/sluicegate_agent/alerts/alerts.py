"""The alerts of one agent: judged inside each commit, durable with it, handed to broker and webhook after it.

A change of state and its message are rows of the same transaction as the readings that caused them. So after `kill -9`
either both are there or neither is, and then the readings come again. A message stays until the broker and the webhook
have taken it; one that was sent and not yet known as taken is sent again under its id.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol
from zlib import crc32

from msgspec.structs import replace

from sluicegate_agent import faults
from sluicegate_agent.alerts.kept import (
    Key,
    Waiting,
    load_messages,
    load_number,
    load_states,
    save_message,
    save_number,
    save_state,
)
from sluicegate_agent.alerts.messages import Told, of_answer, of_silence
from sluicegate_agent.alerts.rules import Changes, Kept, Seen, judged
from sluicegate_agent.config.outward import AlertConfig

if TYPE_CHECKING:
    from sluicegate_agent.config import Config
    from sluicegate_agent.messages import Result
    from sluicegate_agent.state import State

log = logging.getLogger("sluicegate.alerts")
#: What an alert of a stream is now, and what is told of that.
Change = tuple[AlertConfig, str, Kept, Told | None]
#: Seconds between two looks for streams that say nothing.
_LOOKED_FOR_SILENCE = 1.0


def now_us() -> int:
    """The board's clock, µs since 1970 UTC."""
    return time.time_ns() // 1000


class Answering(Protocol):
    """What alerts ask of the pipeline."""

    @property
    def touched(self) -> dict[tuple[str, str], None]:
        """The (stream, window) whose answers may have changed."""

    @property
    def pending(self) -> int:
        """Messages that wait for a commit."""

    def answers(self, stream: str, name: str) -> list[Result]:
        """One window's answers."""


class Alerts:
    """Judges, keeps and queues; `delivery` of the messages is another's (delivery.py)."""

    def __init__(
        self,
        config: Config,
        state: State,
        pipeline: Answering,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self.config, self.state, self._pipeline, self._clock = config, state, pipeline, clock
        self._of_window: dict[str, list[AlertConfig]] = {}
        for alert in config.alert:
            if alert.window is not None:
                self._of_window.setdefault(alert.window, []).append(alert)
        self._of_silence = [alert for alert in config.alert if alert.absent is not None]
        connection = state.store.connection
        self._states = load_states(connection)
        self.waiting = load_messages(connection)
        self._number = load_number(connection)
        self._forget_removed()
        self._changes: dict[Key, Changes] = {}
        self._noted: dict[tuple[str, str], None] = {}
        self._judged: dict[tuple[str, str], None] = {}
        self._judging: dict[tuple[str, str], None] = {}
        self._staged: tuple[dict[Key, Kept], list[Waiting], list[int]] = {}, [], []
        #: Messages that somebody took since the last commit; what silence changed; what the open commit counted.
        self._taken: dict[int, Waiting] = {}
        self._silent: list[Change] = []
        self._counted: dict[str, int] = {}
        self._look_for_silence = 0.0
        now = time.monotonic()
        self._heard = {name: (state.streams[name].accepted, now) for name in config.streams}
        self._spoke: set[str] = set()

    @property
    def raised(self) -> list[dict[str, Any]]:
        """Those that are pending or raised, for who looks."""
        kept = self._states.items()
        return [
            {"alert": alert, "stream": stream, "state": each.state, "since_us": each.since_us, "certain": each.certain}
            for (alert, stream), each in kept
            if each.state != "ok"
        ]

    def note(self) -> None:
        """What was touched is about to be forgotten: what was not judged yet is, at the next commit."""
        touched = (key for key in self._pipeline.touched if key[1] in self._of_window and key not in self._judged)
        self._noted |= dict.fromkeys(touched)
        self._judged = {}

    def save(self, connection: sqlite3.Connection) -> None:
        """Judge what changed and write what came of it, inside the transaction that makes the readings durable."""
        self._judging = self._noted | {key: None for key in self._pipeline.touched if key[1] in self._of_window}
        silent = self._silent or [*self._silences(time.monotonic())]
        self._write(connection, [*self._of_answers(self._judging), *silent])
        for number, waiting in self._taken.items():
            if number not in self._staged[2]:  # what gave way stays gone
                save_message(connection, waiting)

    @property
    def changed(self) -> bool:
        """Whether a stream fell silent, or somebody took a message, since the last commit."""
        return bool(self._silent or self._taken)

    def saved(self) -> None:
        """What `save` wrote is durable."""
        states, messages, dropped = self._staged
        for number in dropped:
            log.error("more than alerts.queue messages wait: %s is dropped", self.waiting.pop(number).told.id)
        self._states |= states
        self._number += len(messages)
        self.waiting |= {each.told.number: each for each in messages}
        for each in messages:
            log.warning("%s (%s)", each.told.text, each.told.state)
        self._judged |= self._judging
        self._noted, self._staged = {}, ({}, [], [])
        self._taken, self._silent, self._counted = {}, [], {}

    def step(self, now: float) -> None:
        """Look for silence where no message brings a commit, at monotonic second `now`: the next commit keeps it."""
        if self._of_silence and not self._silent and not self._pipeline.pending and now >= self._look_for_silence:
            self._silent = [*self._silences(now)]

    def taken(self, number: int, *, mqtt: bool = False, webhook: bool = False) -> None:
        """Broker or webhook have taken a message; until a commit keeps that, a restart sends it again."""
        waiting = self.waiting.get(number)
        if waiting is None:
            return
        waiting.mqtt, waiting.webhook = waiting.mqtt and not mqtt, waiting.webhook and not webhook
        if not waiting.mqtt and not waiting.webhook:
            del self.waiting[number]
        faults.step("alert: taken, not kept")
        self._taken[number] = waiting

    # judging

    def _of_answers(self, keys: Iterable[tuple[str, str]]) -> Iterator[Change]:
        for stream, window in keys:
            alerts = [alert for alert in self._of_window[window] if alert.covers(stream)]
            answers = self._pipeline.answers(stream, window) if alerts else []
            for alert in alerts:
                answer = next((each for each in answers if alert.aggregate in (None, each.aggregate)), None)
                if answer is not None:
                    yield from self._of_answer(alert, stream, answer)

    def _of_answer(self, alert: AlertConfig, stream: str, answer: Result) -> Iterator[Change]:
        key = alert.name, stream
        seen = Seen(answer.time_us, _number(answer.value), _number(answer.low), _number(answer.high))
        if alert.per is not None:
            seen = self._changes.setdefault(key, Changes(alert.per)).after(seen)
        was = self._states.get(key, Kept())
        now = judged(alert, was, seen)
        if now == was:
            return
        told = None
        if (was.state, was.certain) != (now.state, now.certain) and "raised" in (was.state, now.state):
            since = now.since_us if now.state == "raised" else was.since_us
            raised = now.state == "raised"
            told = of_answer(
                "", 0, self.config.device.id, stream, alert, answer.aggregate, seen, since,
                raised=raised, certain=now.certain,
            )  # fmt: skip
        yield alert, stream, now, told

    def _silences(self, now: float) -> Iterator[Change]:
        if not self._of_silence or now < self._look_for_silence:
            return
        self._look_for_silence = now + _LOOKED_FOR_SILENCE
        for stream, (accepted, _) in self._heard.items():
            if self.state.streams[stream].accepted != accepted:
                self._heard[stream] = self.state.streams[stream].accepted, now
                self._spoke.add(stream)
        for alert in self._of_silence:
            for stream, (_, heard) in self._heard.items():
                if alert.covers(stream):
                    yield from self._of_one_silence(alert, stream, now - heard)

    def _of_one_silence(self, alert: AlertConfig, stream: str, seconds: float) -> Iterator[Change]:
        was = self._states.get((alert.name, stream), Kept())
        is_silent = alert.absent is not None and seconds >= alert.absent.seconds
        # After a restart nothing is known of what a silent stream does: only a reading ends its alert.
        if is_silent == (was.state == "raised") or (was.state == "raised" and stream not in self._spoke):
            return
        now_us = self._clock()
        since = now_us - round(seconds * 1_000_000) if is_silent else was.since_us
        kept = Kept("raised", since, certain=True) if is_silent else Kept("ok", now_us)
        told = of_silence("", 0, self.config.device.id, stream, alert, now_us, since, raised=is_silent)
        yield alert, stream, kept, told

    # writing

    def _write(self, connection: sqlite3.Connection, changes: Iterable[Change]) -> None:
        states: dict[Key, Kept] = {}
        messages: list[Waiting] = []
        for alert, stream, kept, told in changes:
            states[alert.name, stream] = kept
            save_state(connection, (alert.name, stream), kept)
            if told is not None:
                messages.append(self._queued(told, self._number + len(messages) + 1))
        for each in messages:
            save_message(connection, each)
        if messages:
            save_number(connection, messages[-1].told.number)
        dropped = self._make_room(connection, len(messages))
        self._count({"alerts.messages": len(messages), "alerts.dropped": len(dropped)})
        self._staged = states, messages, dropped
        faults.step("alerts: written")

    def _count(self, amounts: dict[str, int]) -> None:
        """With this commit, once: one that failed before may have counted the same."""
        for name, amount in amounts.items():
            self.state.counters.add(name, amount - self._counted.get(name, 0))
        self._counted = amounts

    def _queued(self, told: Told, number: int) -> Waiting:
        # What it says is in it: a number that was lost with a damaged record is given once more.
        said = crc32(f"{told.alert}/{told.stream} {told.state} {told.certainty} {told.time_us}".encode())
        named = replace(told, id=f"{self.state.incarnation}-{number}-{said:08x}", number=number)
        return Waiting(named, bool(self.config.alerts.topic), self.config.alerts.webhook is not None)

    def _make_room(self, connection: sqlite3.Connection, new: int) -> list[int]:
        """The oldest give way where nobody takes any; that is counted."""
        beyond = [*self.waiting][: max(0, len(self.waiting) + new - self.config.alerts.queue)]
        for number in beyond:
            save_message(connection, Waiting(self.waiting[number].told, mqtt=False, webhook=False))
        return beyond

    def _forget_removed(self) -> None:
        """Rows of alerts and streams that the configuration has no more."""
        names = {alert.name: alert for alert in self.config.alert}
        gone = [key for key in self._states if key[0] not in names or not names[key[0]].covers(key[1])]
        if not gone:
            return
        with self.state.transaction() as connection:
            for key in gone:
                save_state(connection, key, Kept())
                del self._states[key]


def _number(value: object) -> float | None:
    """A number that can be compared; None where nothing is known."""
    return float(value) if isinstance(value, int | float) and isfinite(value) else None
