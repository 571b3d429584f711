"""Defects put in on purpose, one at a time, by the launcher of tests: each is a way in which a promise was once broken.

The campaign has to find every one of them (test_plants.py); what it cannot find it does not prove.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

#: Seconds between deleting documents and putting them: long enough that a kill falls between.
_LATE = 0.3


class Plant(NamedTuple):
    """What it breaks, the runs that can show it, the columns in which it has to show, and how it is put in.

    `step`: where a kill shows it best.
    """

    says: str
    identity: str | None
    family: str | None
    shows: tuple[str, ...]
    install: Callable[[], None]
    step: str = ""


def _wrap(owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Put `around(original, *arguments)` in a function's place; AttributeError where there is none of that name."""
    original = getattr(owner, name)

    def call(*arguments: Any, **named: Any) -> Any:
        return around(original, *arguments, **named)

    setattr(owner, name, call)


def _identity_off() -> None:
    from sluicegate_agent.pipeline import Pipeline

    _wrap(Pipeline, "_take", lambda original, *arguments, **_: original(*arguments, is_new=True))


def _ack_before_commit() -> None:
    from sluicegate_agent.link import Link

    def poll(original: Any, link: Any, *arguments: Any) -> Any:
        messages = original(link, *arguments)
        link.ack([message.packet_id for message in messages if message.qos])
        return messages

    _wrap(Link, "poll", poll)


def _two_transactions() -> None:
    from sluicegate_agent import identity

    def save(original: Any, this: Any, connection: Any) -> None:
        connection.execute("COMMIT")
        connection.execute("BEGIN IMMEDIATE")
        original(this, connection)

    for kind in (identity.Sequences, identity.Contents):
        _wrap(kind, "save", save)


def _settle_before_put() -> None:
    from sluicegate_agent.sync.sync import Sync

    def send(original: Any, sync: Any, target: Any, now: float) -> Any:
        return original(sync, _Late(target, sync.state), now)

    _wrap(Sync, "_send", send)


class _Late:
    """A target whose documents are deleted from the outbox before they are put."""

    def __init__(self, target: Any, state: Any) -> None:
        self.target, self.state = target, state

    def put(self, documents: Any) -> Any:
        if documents:
            with self.state.transaction() as connection:
                self.state.outbox.acknowledge(connection, [each.id for each in documents])
            time.sleep(_LATE)
        return self.target.put(documents)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target, name)


def _no_fsync() -> None:
    from sluicegate_agent.state import store

    def configure(original: Any, connection: Any) -> None:
        original(connection)
        connection.execute("PRAGMA synchronous = OFF")

    _wrap(store, "_configure", configure)
    _wrap(os, "fdatasync", lambda original, handle: None)


def _epoch_forgotten() -> None:
    from sluicegate_agent.identity import Sequences

    def forget(original: Any, this: Any) -> None:
        original(this)
        newest = max((epoch.order for _, epoch in this._epochs()), default=0)
        for key, epoch in [each for each in this._epochs() if each[1].order < newest]:
            this._drop(key, epoch)

    _wrap(Sequences, "_forget", forget)


def _gap_left_out() -> None:
    from sluicegate_agent.streams import Stream

    def add(original: Any, stream: Any, values: Any, times: Any, begin: int, missing: int, *doubt: int) -> Any:
        return original(stream, values, times, begin, 0, *doubt)

    _wrap(Stream, "add_many", add)


def _answer_of_the_uncommitted() -> None:
    from sluicegate_agent.agent import Agent

    def polled(original: Any, agent: Any, **held: bool) -> Any:
        messages = original(agent, **held)
        answers = [answer for stream, windows in agent.pipeline.windows.items() for stored in windows
                   for name in stored.names for answer in agent.pipeline.answers(stream, name)]  # fmt: skip
        if answers:
            from sluicegate_agent.results import encode

            agent.link.publish(agent.results.topic, encode(agent.config.device.id, answers))
        return messages

    _wrap(Agent, "_polled", polled)


def _answer_too_narrow() -> None:
    from sluicegate_agent import results
    from sluicegate_agent.messages import Result

    def encode(original: Any, device: str, answers: list[Result]) -> bytes:
        import msgspec

        narrow = [msgspec.structs.replace(a, low=a.low + 1, high=a.high + 1) if a.aggregate == "count" else a for a in answers]  # fmt: skip  # noqa: E501
        told: bytes = original(device, narrow)
        return told

    _wrap(results, "encode", encode)


def _lost_on_full_disk() -> None:
    from sluicegate_agent.pipeline import Pipeline

    def commit(original: Any, pipeline: Any) -> Any:
        import sqlite3

        try:
            return original(pipeline)
        except sqlite3.OperationalError:
            ids = list(dict.fromkeys(pipeline._unacknowledged))
            pipeline._unacknowledged.clear()
            pipeline._messages = pipeline._readings = 0
            return ids

    _wrap(Pipeline, "commit", commit)


PLANTS: dict[str, Plant] = {
    "identity off": Plant(
        "every message counts, however often it comes",
        "sequence", None, ("twice",), _identity_off, "commit: durable, not acknowledged",
    ),
    "ack before commit": Plant(
        "a PUBACK goes out as a message comes in",
        None, None, ("lost", "stuck"), _ack_before_commit, "commit: begin",
    ),
    "two transactions": Plant(
        "buckets are committed, then what was seen, in another transaction",
        "time", None, ("twice",), _two_transactions, "commit: identities",
    ),
    "settle before put": Plant(
        "a document is deleted here before it is there",
        None, None, ("lost", "silent"), _settle_before_put,
    ),
    "fsync left out": Plant(
        "the store is not synced, so a power cut takes back what was acknowledged",
        "sequence",
        "power cut", ("lost", "silent", "stuck"), _no_fsync,
    ),
    "epoch forgotten": Plant(
        "only the newest epoch is known after a commit",
        "epochs", None, ("twice",), _epoch_forgotten, "commit: durable, not acknowledged",
    ),
    "gap left out": Plant(
        "nothing says that numbers are missing",
        "sequence", None, ("silent",), _gap_left_out,
    ),
    "answer of the uncommitted": Plant(
        "an answer goes out before the commit it rests on",
        "sequence", None, ("silent",), _answer_of_the_uncommitted, "commit: begin",
    ),
    "answer too narrow": Plant(
        "the window's interval leaves the truth out",
        None, None, ("silent",), _answer_too_narrow,
    ),
    "acknowledged on a full disk": Plant(
        "a commit that failed is taken for one that succeeded",
        None, "disk full", ("lost",), _lost_on_full_disk,
    ),
}  # fmt: skip


def install(name: str) -> None:
    """Put one in. Raises KeyError for a name that there is none of."""
    PLANTS[name].install()
