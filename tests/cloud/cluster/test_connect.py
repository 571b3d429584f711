"""Through Spark Connect a merge has the rows of one process; what needs a driver of its own says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusters import connect_server, driver
from table_worlds import differences
from test_cluster import ASKED, CUT, TOLD, World, batch_rows, loose, merged_rows
from thorough import WHOLE

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.skipif(not WHOLE, reason="half a minute: of the nightly tests")
def test_a_connect_server_has_the_rows_of_one_process(tmp_path: Path) -> None:
    """The DataFrame way, everything into a folder, a table in two runs, its proof; a stream is refused."""
    pytest.importorskip("grpc", reason="needs the extra `connect`")
    world = World(tmp_path)
    told = {"window": {"slide": CUT.slide, "width": CUT.width}, "aggregates": ["count", *ASKED]}
    wanted = loose(world.rows[2])
    with connect_server(tmp_path) as url, driver(url, tmp_path) as at:
        at.done("batch", source=f"{tmp_path}/in-[0-2]/*", out=f"{tmp_path}/rows", **told)
        assert differences(loose(batch_rows(tmp_path / "rows")), wanted)[:3] == []
        assert at.done("out", sources=["in-0", "in-1", "in-2"], folder="out", **told) == {"rows": len(wanted)}
        assert differences(loose(merged_rows(tmp_path / "out")), wanted)[:3] == []
        assert at.done("merge", sources=["in-0"], table="table", definition=TOLD) == {"version": 1}
        assert at.done("merge", sources=["in-1", "in-2"], table="table", definition=TOLD) == {"version": 2}
        assert world.differ("table", 3) == []
        assert at.done("reconcile", table="table") == []
        refused = at.done("stream", source="in-0", table="other", definition=TOLD, most=9)
        assert "not through Spark Connect" in refused["text"]
