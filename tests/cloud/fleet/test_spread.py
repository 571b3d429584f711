"""A stream that is most of a job promises the same windows when Spark's tasks answer its pieces side by side."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from random_worlds import MINUTE, Cut, random_fleet
from table_worlds import differences, documents_of, table_of
from test_long import answered, by_time, discrete
from test_long import windows as windows_of

from sluicegate_cloud.fleet import packed, spread, wire
from sluicegate_cloud.grid import MAX_EMPTY, Grid
from sluicegate_cloud.names import ALL

pytestmark = pytest.mark.spark

CUT = Cut(60 * MINUTE, 2, 0, 40)
GRID = Grid(CUT.slide, CUT.width)
ASKED = ("count", "mean", "min", "max")


@pytest.fixture(scope="module")
def sent() -> pa.Table:
    """Documents of one board with many buckets, of two with few."""
    rng = random.Random(14)
    boards = [*random_fleet(rng, CUT, 1, 1_000, ordinary=True), *random_fleet(rng, CUT, 3, 60, ordinary=True)[1:]]
    return table_of(documents_of(boards, "s", rng, 0.03))


@pytest.fixture(scope="module")
def documents(spark: Any, sent: pa.Table) -> Any:
    """Placed."""
    from sluicegate_cloud.documents import DOCUMENTS
    from sluicegate_cloud.lines.dedupe import catalogue

    return catalogue(spark.createDataFrame(sent, DOCUMENTS).coalesce(1)).cache()


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A stream of few buckets is large; what was cut."""
    found: list[Any] = []
    placed = spread.placed

    def told(rows: Any, cuts: Any, *more: Any) -> Any:
        found.extend(len(pieces) for pieces in cuts.values())
        return placed(rows, cuts, *more)

    monkeypatch.setattr(spread, "MOST", 60)
    monkeypatch.setattr(spread, "placed", told)
    return found


@pytest.fixture(scope="module")
def whole(sent: pa.Table) -> Any:
    """The rows of all documents in one task."""
    source = packed.source(wire.fields(ALL, folded=False), GRID)
    return discrete(answered([by_time(sent).to_batches()], GRID, source, MAX_EMPTY))


def differ(windows: Any, whole: Any) -> list[str]:
    """In what the rows of devices are not those of all documents in one task, but for what is rounded."""
    rows = discrete(windows_of(windows.toArrow().to_batches()))
    asked = [*next(iter(rows.values()))]
    told = {of: {name: row[name] for name in asked} for of, row in whole.items() if row["device"]}
    return differences(rows, told)[:3]


def test_rows_of_a_large_stream_go_to_many_tasks(documents: Any, whole: Any, cuts: list[Any]) -> None:
    """Of a DataFrame, whose streams are counted first."""
    from sluicegate_cloud.frames import place_in_frames
    from sluicegate_cloud.sources import buckets_of
    from sluicegate_cloud.windows import sliding_windows

    frames = place_in_frames(buckets_of(documents), CUT.slide)
    assert differ(sliding_windows(frames, CUT.width, ASKED, fleet=False, spread=True), whole) == []
    assert len(cuts) == 1
    assert cuts[0] > 2


def test_documents_of_a_large_stream_go_to_many_tasks(documents: Any, whole: Any, cuts: list[Any]) -> None:
    """What is missing between two pieces is missing once."""
    from sluicegate_cloud.windows import windows_of_documents

    assert differ(windows_of_documents(documents, GRID, ASKED, fleet=False, long=True), whole) == []
    assert len(cuts) == 1
    assert cuts[0] > 2


def test_a_stream_that_may_have_too_many_windows_is_left_to_one_task(
    documents: Any, cuts: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There they are counted."""
    from sluicegate_cloud.frames import place_in_frames
    from sluicegate_cloud.sources import buckets_of

    frames = place_in_frames(buckets_of(documents), CUT.slide)
    assert spread.of_documents(documents, GRID)
    assert spread.of_frames(frames, CUT.width)
    monkeypatch.setattr(spread, "MAX_WINDOWS", -1_000_000)
    assert not spread.of_documents(documents, GRID)
    assert not spread.of_frames(frames, CUT.width)
