"""What a stream and its windows can cost at worst: each window is filled to its worst, and asked for its bytes."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

from sluicegate.format.pairs import PairColumn
from sluicegate_agent import carried, doubts, streams
from sluicegate_agent.config import Config, WindowConfig
from sluicegate_agent.config.carrying import asked_of
from sluicegate_agent.config.questions import COUNT, build_arguments
from sluicegate_agent.costs.remembered import PAGE_FILL, Line
from sluicegate_agent.pipeline import READINGS_MOST
from sluicegate_agent.results import ENDED_MOST

#: Python objects of a stream and of a window beside their readings (3.3 KiB measured of a window); chunks that a
#: window's queues begin and have not filled, beyond those of the probe.
STREAM_OBJECTS = 4096
WINDOW_OBJECTS = 5 * 1024
WINDOW_CHUNKS = 8 * 1024
#: A leaf of buckets is packed, at worst to its row's bytes; partials that lie beside all leaves.
BESIDE_LEAVES = 32
#: A leaf that waits for the next fold, beside its row's bytes.
WAITING_LEAF = 200
#: A histogram's rule: a sample of 256 hops, 30 block maxima, a controlled sum's limits (256 aggregates at most).
RULE_OBJECTS = 8 * 1024
#: A hop of a window with ends: its record, its window and what of them is due (1.4 KiB measured); their rows.
SLICE_OBJECTS = 2048
SLICE_ROW, TOLD_ROW = 384, 64
#: A result on its way.
RESULT_OBJECTS = 640
#: A row of a leaf and of a window that is answered from another's buckets, beside their bytes.
LEAF_ROW = 40
SHARED_ROW = 128
#: Leaves that a window is filled with to be measured; a greater one is counted in proportion.
PROBED = 4096
#: Late readings that are put into a probed window, of a time each: one more than it has buckets for.
LATE = 33


def stream_cost(config: Config, stream: str) -> Line:
    """A stream with all that is kept beside it: its open bucket, what is in doubt, its windows."""
    singles = 16 * min(config.bucket.readings, streams.SINGLES_MOST)
    section = carried.most(asked_of(config, stream))
    memory, disk = STREAM_OBJECTS + 4 * singles + 3 * section, int((singles + 512 + section) * PAGE_FILL)
    if any(stream in each.streams and each.sequence is None and each.time is None for each in config.sources):
        memory, disk = memory + doubts.MEMORY, int(disk + doubts.ROW * PAGE_FILL)
    for asked in config.windows_of(stream):
        window = _sliced(asked) if asked.sliced else _kept_window(config, asked)
        memory, disk = memory + window.memory, disk + window.disk
    return Line(stream, memory, disk)


def _kept_window(config: Config, asked: WindowConfig) -> Line:
    return window_cost(asked) if asked.shares is None else _shared_window(config, asked)


def _sliced(asked: WindowConfig) -> Line:
    """A window with ends: a record for each hop until all windows that hold it are final, and as many windows."""
    from sluicegate.windowing.slices import slices_at_most
    from sluicegate_agent.state.slices import KEPT, WAITING

    slices = slices_at_most(asked.spec)
    waiting = (KEPT + WAITING + ENDED_MOST * len(asked.aggregates)) * RESULT_OBJECTS
    disk = (slices * (SLICE_ROW + TOLD_ROW) + KEPT * SLICE_ROW) * 2
    return Line(asked.name, WINDOW_OBJECTS + slices * SLICE_OBJECTS + waiting, int(disk * PAGE_FILL))


def _shared_window(config: Config, asked: WindowConfig) -> Line:
    """One that is answered from another's buckets: a partial of those it folded last, and a row with a number."""
    longest = next(each for each in config.windows if each.name == asked.shares)
    _, leaf, _ = _probe(longest, 4)
    return Line(asked.name, WINDOW_OBJECTS + 2 * leaf, int((len(asked.definition) + SHARED_ROW) * PAGE_FILL))


def window_cost(asked: WindowConfig) -> Line:
    """One window of one stream: filled as far as PROBED leaves, and in proportion beyond.

    A histogram promises no number of buckets: at worst each reading is one, up to `buckets`, or all that a count holds.
    """
    tail = asked.max_like.tail if asked.max_like else 0
    stored = asked.buckets or int(asked.policy.count or 0) + asked.policy.step - 1
    probed, leaves = min(stored, PROBED), stored + (tail if asked.buckets else 0)
    held, leaf, state = _probe(asked, probed)
    # A tail is there in full from the first reading on: only what is before it grows in proportion.
    scale = 1.0 if tail and stored == probed else stored / probed
    changed = (leaf + WAITING_LEAF) * min(leaves, READINGS_MOST)
    is_packed = asked.buckets > 0 and asked.merge == "levels" and not tail
    held = max(int(held * scale), (leaves + BESIDE_LEAVES) * leaf) + WINDOW_CHUNKS * (not is_packed)
    rules = RULE_OBJECTS * sum(each is not None for each in (asked.sum_like, asked.max_like, asked.hop))
    memory = WINDOW_OBJECTS + held + changed + rules
    # Rows of leaves that left are deleted a bounded number a commit: at most as many again may be waiting.
    return Line(asked.name, memory, int((2 * leaves * (leaf + LEAF_ROW) + state) * PAGE_FILL))


def _probe(asked: WindowConfig, leaves: int) -> tuple[int, int, int]:
    """Bytes held at worst, of a leaf's row and of the state's row, of a window with `leaves` leaves."""
    import sluicegate as sg

    arguments = build_arguments(asked)
    rules = len(sg.Window(**arguments).state())
    arguments |= {"policy": _staying(asked, leaves), "histograms": [*_strict(asked, leaves)]}
    window = sg.Window(**arguments)
    rules -= len(window.state())
    # Of a staircase each reading is a step: greatest first, or least first where only the least is asked for.
    size = leaves + (asked.max_like.tail if asked.max_like else 0)
    falling = any(name in ("max", "argmax", "max_count", "range") for name in asked.aggregates)
    steps = range(size, 0, -1) if falling else range(size)
    values, times = array("d", steps), array("q", [0]) * size
    held = leaf = 0
    for _ in range(3):
        window.insert_many(_taken(window, values), times, results=False)
        closed = window.changes().closed
        leaf = max([leaf, *(len(row) for _, row in closed)])
        held = max(held, window.footprint.bytes)
    if asked.policy.time is not None:
        # Late readings have buckets of their own, at worst one each; the state keeps them.
        late = _taken(window, array("d", range(LATE)))
        window.insert_many(late, array("q", range(-LATE, 0)), results=False)
    return max(held, window.footprint.bytes), leaf, len(window.state()) + max(rules, 0)


def _taken(window: Any, values: array[float]) -> Any:
    """Values as the window takes them: of two each, where it asks for two."""
    return PairColumn(values, values).rows() if len(window.dimensions) > 1 else values


def _staying(asked: WindowConfig, leaves: int) -> Any:
    """The policy, but as many readings stay as may at worst: no hop, and no extreme that makes others irrelevant."""
    import sluicegate as sg

    if asked.policy.time is not None:
        return sg.policies.time(LATE + 1)
    return sg.policies.count(int(asked.policy.count or 1) if asked.buckets else leaves)


def _strict(asked: WindowConfig, leaves: int) -> Iterator[Any]:
    """The histograms at their worst: every reading opens a bucket."""
    import sluicegate as sg

    if asked.max_like is not None and asked.max_like.tail:
        yield sg.MaxLike(staircase=True, staging=asked.max_like.tail)
    elif asked.max_like is not None:
        yield sg.MaxLike(block=2**53, candidates="paper")
    elif asked.sum_like is not None or asked.hop is not None:
        yield sg.SumLike(atol=5e-324, of=asked.sum_like.of if asked.sum_like else COUNT)
    if asked.buckets:
        yield sg.Constrained(leaves, merge=asked.merge)
