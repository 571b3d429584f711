"""A message that comes late and has no reading of a stream says that the stream misses none there."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from durable_agent import NOON, SECOND, configured, sequenced

from sluicegate.format.chunk import columns
from sluicegate.format.gaps import WIDTH
from sluicegate.format.late import LATE_NAME, CameLate
from sluicegate_agent import carried
from sluicegate_agent.identity import tally
from sluicegate_agent.identity.returned import Returned
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.state import State
from sluicegate_agent.streams import Stream
from sluicegate_agent.sync import DirectoryTarget, Sync


@pytest.mark.parametrize("restarts_at", [None, 6, 7])
def test_a_stream_that_is_not_in_a_late_message_takes_its_loss_back(tmp_path: Path, restarts_at: int | None) -> None:
    """Of 5, which comes after 7, `flow` is null: between 4 and 6 it was told that one is lost, and nothing is.

    After a start nobody knows which numbers were passed over before it: what was told stays.
    """
    (tmp_path / "chunks").mkdir()
    config = configured(tmp_path)
    order = [0, 1, 2, 3, 4, 6, 7, 5, 8, 9]
    state = State(config)
    pipeline = Pipeline(config, state)
    for at, number in enumerate(order):
        pipeline.accept(sequenced(number, at + 1, **({"flow": None} if number == 5 else {})))
        pipeline.commit()
        if at == restarts_at:
            pipeline.flush()
            pipeline.commit()
            state.close()
            state = State(config)
            pipeline = Pipeline(config, state)
    pipeline.flush()
    pipeline.commit()
    sync, now = Sync(config, state, DirectoryTarget(tmp_path / "chunks")), 0.0
    while not sync.is_done():
        sync.step(now, flush=True)
        now += 1000.0
    state.close()
    documents = [columns(path.read_bytes()) for path in (tmp_path / "chunks/board-1/flow").iterdir()]
    rows = chain.from_iterable([*zip(*[iter(each["gaps"])] * WIDTH, strict=True)] for each in documents)
    told = {gap: first for _, gap, _, first, _, _ in rows if gap}
    assert told[1] >= NOON + 4 * 60 * SECOND
    assert (-1 in told) == (restarts_at != 6)
    if -1 in told:
        assert NOON + 4 * 60 * SECOND < told[-1] < NOON + 6 * 60 * SECOND


@pytest.mark.parametrize(("later", "place"), [(NOON, NOON), (NOON + 1, NOON), (NOON + SECOND, NOON + SECOND - 1)])
def test_what_is_taken_back_lies_in_the_loss_that_was_told(later: int, place: int) -> None:
    """Never before the reading after which it was lost: where both have one time, what was lost has it too."""
    stream = Stream(1, "flow", 4, SECOND)
    stream.without = Returned()
    stream.add(1.0, NOON, 0)
    stream.add(2.0, later, 1)
    stream.is_without(tally.late(1, 1, 1))
    stream.close()
    late = CameLate.unpack(carried.parted(stream.closed[-1].bucket)[1][LATE_NAME])
    assert late.rows == ((1, place, place),)
