"""Runs Pipeline and Sync in a child process as a broker would feed them, and kills it; the parent is the broker.

The broker sends messages in order, at most Receive Maximum of them unacknowledged, and after a restart again whatever
it does not know to be acknowledged, with DUP and its packet id. What it knows is a file of 16 bytes: how many messages
it has sent, and how many were acknowledged, written where the child would send PUBACKs.
"""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import time
import traceback
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import fsum
from pathlib import Path
from typing import Any

from durable_agent import BARE, NOON, SECOND, SEQUENCED, TIMED, WITH_ENDS, configured

import sluicegate as sg
from sluicegate.format import chunk as chunks
from sluicegate.format.extras import Extra, extra
from sluicegate.format.late import LATE_NAME
from sluicegate_agent import faults
from sluicegate_agent.messages import Message
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.record.recorder import Recorder, is_recorded
from sluicegate_agent.state import State
from sluicegate_agent.state.slices import StoredSlices
from sluicegate_agent.sync import DirectoryTarget, Document, Outcome, Sync, Target

Reading = tuple[int, float]
#: Beside windows with ends: by the calendar of a place where a day ends amid the readings, by its clock, and what the
#: cloud is to answer.
WINDOWS: list[dict[str, Any]] = [
    *WITH_ENDS,
    {"name": "days", "kind": "tumbling", "aligned": "day", "timezone": "Australia/Eucla", "lateness": "10s"},
    {"name": "by_clock", "kind": "hopping", "evict": {"time": "4min", "hop": "2min"}, "aligned": "clock",
     "timezone": "Europe/Vienna", "aggregate": ["max", "std"]},
    {"name": "carried", "policy": {"count": 50}, "aggregate": ["slope", "quantiles(8)", "top_k(3)", "count_min(8, 2)",
     "bloom_filter(64, 2)", "distinct_count(8)"], "cloud": True, "buckets": 5},
]  # fmt: skip
#: Of the extras those that are the same whatever buckets were merged on the way.
SAME = ("bloom_filter(64,2)", "count_min(8,2)", "distinct_count(8)", "top_k(3)")
RECEIVE_MAXIMUM = 40
_KNOWN = struct.Struct("<qq")
_FIRST_ID = 5000  # a session that is not young: that ids count upward is seen from the first messages on


@dataclass
class Work:
    """What the broker has to send, and which readings that makes when each counts once."""

    messages: list[tuple[str, bytes]] = field(default_factory=list)
    readings: dict[str, list[Reading]] = field(default_factory=dict)
    missing: int = 0
    late: int = 0
    away: range = range(0)


def work(count: int, seed: int) -> Work:
    """`count` messages of three sources: repeats, gaps, late arrivals, reboots, times going back, honest repeats."""
    rng = random.Random(seed)
    made = Work(away=range(count // 3, 2 * count // 3))
    number, boot, sent, held, held_boot = -1, 0, [], None, 0
    for position in range(count):
        kind = rng.choice("sssttb")
        if kind == "b":
            value, arrival = rng.randrange(4) / 8, NOON + len(made.messages) * SECOND
            _take(made, BARE, str(value), [("door", arrival, value)])
        elif sent and rng.random() < 0.1:
            made.messages.append(rng.choice(sent[-30:]))
        elif kind == "t":
            at, value = NOON + position * SECOND - rng.choice((0, 0, 0, 5 * SECOND)), rng.randrange(999) / 8
            _take(made, TIMED, json.dumps({"t": at, "heat": value}), [("heat", at, value)])
            sent.append(made.messages[-1])
        else:
            boot, number = (boot + 1, 0) if rng.random() < 0.02 else (boot, number + 1)
            lost = rng.choice((0, 0, 0, 0, 3)) if number else 0
            number, made.missing = number + lost, made.missing + lost
            at, level, flow = NOON + position * SECOND, rng.randrange(99) / 8, rng.randrange(99) / 8
            fields = {"n": number, "boot": boot, "t": at, "level": level, "flow": flow}
            message = SEQUENCED, json.dumps(fields), [("level", at, level), ("flow", at, flow)]
            if held is None and rng.random() < 0.1:
                held, held_boot = message, boot if number else -1
                continue
            _take(made, *message)
            sent.append(made.messages[-1])
            if held is not None:
                _take(made, *held)
                made.late += boot == held_boot  # the later number told it as lost; before a boot's first none is
                held = None
    if held is not None:
        _take(made, *held)
    return made


def _take(made: Work, topic: str, payload: str, readings: list[tuple[str, int, float]]) -> None:
    made.messages.append((topic, payload.encode()))
    for stream, at, value in readings:
        made.readings.setdefault(stream, []).append((at, value))


class SometimesAway:
    """A target that is away while the broker's position is within the outage."""

    def __init__(self, target: Target, made: Work) -> None:
        self.target, self.made = target, made
        self.position = 0

    def put(self, documents: Sequence[Document]) -> Outcome:
        """As the target, or away."""
        if self.position in self.made.away:
            return Outcome(retry_after=0.0, error="away")
        return self.target.put(documents)

    def close(self) -> None:
        """Nothing is held open."""


def live(
    folder: Path,
    made: Work,
    at: int = 0,
    trace: list[str] | None = None,
    outbox_rows: int = 40,
    to: Callable[[], Target] | None = None,
    only: str = "",
) -> None:
    """One life of an agent, in this process: from what the broker has to send to the end, unless a fault ends it.

    `to` makes the target; without it, the directory `chunks`. `only`: `at` counts the steps of this name.
    """
    if at or trace is not None:
        faults.arm(at, trace, only)
    config = configured(
        folder, WINDOWS, mqtt={"receive_maximum": RECEIVE_MAXIMUM}, outbox={"rows": outbox_rows, "bytes": "64KiB"}
    )
    acks = os.open(folder / "acknowledged", os.O_RDWR | os.O_CREAT)
    with State(config) as state:
        position = 0
        recorder = Recorder(config, state) if is_recorded(config) else None
        pipeline = Pipeline(config, state, lambda: NOON + position * SECOND, recorder)
        target = SometimesAway(to() if to else DirectoryTarget(folder / "chunks"), made)
        sync = Sync(config, state, target)
        acknowledged = first = known(folder)
        before = sent(folder)
        for position in range(first, len(made.messages)):
            topic, payload = made.messages[position]
            os.pwrite(acks, _KNOWN.pack(max(before, position + 1), acknowledged), 0)
            pipeline.accept(Message(topic, payload, _packet_id(position), 1, dup=position < before))
            if pipeline.pending >= config.commit_messages:
                acknowledged = _acknowledge(acks, acknowledged, pipeline.commit())
                target.position = position
                sync.step(time.monotonic() + 1000.0 * position)
        pipeline.flush()
        _acknowledge(acks, acknowledged, pipeline.commit())
        target.position = len(made.messages)
        while not sync.is_done():
            sync.step(time.monotonic(), flush=True)
        (folder / "answers").write_text(json.dumps(answers(pipeline)))
    os.close(acks)


def _packet_id(position: int) -> int:
    return (_FIRST_ID + position) % 65535 + 1


def _acknowledge(acks: int, before: int, packet_ids: list[int]) -> int:
    expected = [_packet_id(position) for position in range(before, before + len(packet_ids))]
    assert packet_ids == expected, "PUBACKs go out in the order of the messages"
    os.pwrite(acks, _KNOWN.pack(_KNOWN.unpack(os.pread(acks, _KNOWN.size, 0))[0], before + len(packet_ids)), 0)
    return before + len(packet_ids)


def sent(folder: Path) -> int:
    """How many messages the broker has ever sent."""
    return _read(folder)[0]


def known(folder: Path) -> int:
    """How many messages the broker knows to be acknowledged."""
    return _read(folder)[1]


def _read(folder: Path) -> tuple[int, int]:
    path = folder / "acknowledged"
    written = path.read_bytes() if path.exists() else b""
    return _KNOWN.unpack(written) if written else (0, 0)


def lose_pubacks(folder: Path, before: int, lost: int) -> None:
    """The last PUBACKs never reached the broker; what it knew earlier, it knows still."""
    delivered, written = _read(folder)
    with (folder / "acknowledged").open("r+b" if written else "wb") as file:
        file.write(_KNOWN.pack(delivered, max(before, written - lost)))


def closed(window: sg.Window, changes: sg.Changes) -> list[int]:
    """What its closed leaves are called: by index, or by first ordinal where pairs are merged."""
    if not window._histograms.pairs:
        return [*range(changes.head, changes.open)]
    return [bucket.ordinal or 0 for bucket in window.buckets()[:-1]]


def sliced(stored: StoredSlices) -> list[Any]:
    """Its state, every record of readings, and the newest final results; how often it told of them a kill changes."""
    slices = stored.slices
    records = [(start, each.pack().hex()) for start, each in sorted(slices.slices.items())]
    finals = [(each.start, each.end, each.bucket.pack().hex(), each.first, each.last) for each in stored._finals]
    return [slices.state().hex(), records, finals]


def answers(pipeline: Pipeline) -> dict[str, Any]:
    """All that every window says, and every closed leaf it holds, exactly."""
    found: dict[str, Any] = {}
    for stream, windows in pipeline.windows.items():
        for stored in windows:
            if isinstance(stored, StoredSlices):
                found[f"{stream}/{stored.name}"] = sliced(stored)
                continue
            changes = stored.window.changes()
            leaves = [stored.window.leaf(i).hex() for i in closed(stored.window, changes)]
            said = [
                repr(tuple(getattr(r, f) for f in r.__struct_fields__))
                for name in stored.names
                for r in (pipeline.answers(stream, name) if not stored.asked[0].triggered else ())
            ]
            said += [repr(stored.answers())] if stored.asked[0].triggered else []
            found[f"{stream}/{stored.name}"] = [said, changes.level, changes.head, changes.open, leaves]
    return found


def in_child(folder: Path, made: Work, at: int = 0, seconds: float | None = None, **options: Any) -> bool:
    """One life in a forked child that is killed at step `at`, or after `seconds`; whether it reached its end.

    Raises AssertionError where the child failed in another way: its traceback is on stderr.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            live(folder, made, at, **options)
            status = 0
        except BaseException:  # a forked child must never return into pytest
            traceback.print_exc()
        finally:
            os._exit(status)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), f"the child ended with {status}"
    return status == 0


def check_target(folder: Path, made: Work) -> None:
    """Each reading is in exactly one bucket of exactly one document, in its place; losses are told of."""
    found: dict[str, list[Any]] = {}
    centers: dict[str, float] = {}
    for path in sorted((folder / "chunks").rglob("*")):
        assert path.is_dir() or path.suffix in (".json", ".partial") or path.name == ".sluicegate-target", path
        if path.suffix == ".json":
            chunk = chunks.decode(path.read_bytes())
            found.setdefault(chunk.stream, []).extend(chunk.buckets)
            centers[chunk.stream] = chunk.center
            _check_extras(chunk, made.readings[chunk.stream])
    assert found.keys() == made.readings.keys()
    for stream, readings in made.readings.items():
        following = 0
        for bucket in sorted(found[stream], key=lambda bucket: bucket.first):
            assert bucket.first == following, f"{stream}: ordinal {following} is missing or double"
            following += bucket.n
            _check_bucket(bucket, readings[bucket.first : following], centers[stream])
        assert following == len(readings), f"{stream}: {following} readings of {len(readings)}"
    gaps = [bucket.gap for bucket in found["level"]]
    assert sum(gap for gap in gaps if gap > 0) == made.missing + made.late, "each that was told as lost, whoever merged"
    assert -made.late <= sum(gap for gap in gaps if gap < 0) <= 0, "what came late, where its bucket tells of no loss"


def _check_extras(chunk: chunks.Chunk, readings: list[Reading]) -> None:
    """A bucket that has lost its single readings carries what these come to, each once; what came late stands there."""
    for place, bucket in enumerate(chunk.buckets):
        if chunk.readings[place] is None:
            some = readings[bucket.first : bucket.first + bucket.n]
            assert {*chunk.extras} - {LATE_NAME} == {"line", "quantiles(8)", *SAME}
            parts = {name: each[place] or b"" for name, each in chunk.extras.items()}
            values, times = array("d", [x for _, x in some]), array("q", [t for t, _ in some])
            for name in SAME:
                assert parts[name] == _extra(name).fold(values, times), f"{name} of ordinal {bucket.first}"
            assert _extra("line").slots(parts["line"])[:3] == (bucket.n, min(times), max(times))
            assert _extra("quantiles(8)").slots(parts["quantiles(8)"])[0] == bucket.n


def _extra(name: str) -> Extra:
    found = extra(name)
    assert found is not None
    return found


def _check_bucket(bucket: Any, readings: list[Reading], center: float) -> None:
    times, values = [time for time, _ in readings], [value for _, value in readings]
    assert bucket.n == len(readings)
    assert bucket.total == fsum(value - center for value in values)
    assert (bucket.low, bucket.high) == (min(values), max(values))
    assert (bucket.t_first, bucket.t_last) == (min(times), max(times))
    assert (bucket.x_first, bucket.x_last) == (values[0], values[-1])
