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
from sluicegate_agent.record.recorder import Recorder
from sluicegate_agent.state import State
from sluicegate_agent.streams import Stream
from sluicegate_agent.sync import DirectoryTarget, Sync


@pytest.mark.parametrize("ends_by", ["flush", "kill", "no record"])
@pytest.mark.parametrize("restarts_at", [None, 4, 5, 6, 7, 8])
def test_a_stream_that_is_not_in_a_late_message_takes_its_loss_back(
    tmp_path: Path, restarts_at: int | None, ends_by: str
) -> None:
    """Of 5, which comes after 7, `flow` is null: between 4 and 6 it was told that one is lost, and nothing is.

    So after a restart too, and after a kill: which numbers were passed over is in each commit.
    """
    (tmp_path / "chunks").mkdir()
    config = configured(tmp_path)
    order = [0, 1, 2, 3, 4, 6, 7, 5, 8, 9]

    def begun() -> tuple[State, Pipeline]:
        state = State(config)
        return state, Pipeline(config, state, recorder=None if ends_by == "no record" else Recorder(config, state))

    state, pipeline = begun()
    for at, number in enumerate(order):
        pipeline.accept(sequenced(number, at + 1, **({"flow": None} if number == 5 else {})))
        pipeline.commit()
        if at == restarts_at:
            if ends_by == "flush":
                pipeline.flush()
                pipeline.fold_next()
                pipeline.commit()
            state.close()
            state, pipeline = begun()
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
