"""Documents that cannot be used promise to be counted, and the newest of them named, however many a device sends."""

from __future__ import annotations

from pathlib import Path

import pytest
from table_worlds import store_at, table_of, take_in
from test_devices import document

from sluicegate_cloud.table import devices, job
from sluicegate_cloud.table.settled import refused
from sluicegate_cloud.table.settled.rows import load
from sluicegate_cloud.table.told import of_table


def test_of_many_that_cannot_be_used_few_are_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are counted; the last ones are named, and forgiven once they can be read."""
    monkeypatch.setattr(refused, "NAMED", 5)
    store, version = store_at(tmp_path, job.definition_of(20_000_000, 20_000_000, ("mean",), shards=1))
    for at in range(6):
        sent = [b"%d" % (10 * at + i) for i in range(4)]
        version = take_in(store, version, table_of([*sent, document("d", 20 * at)], 10 * at))
        assert of_table(store, version).summary["documents"]["refused"] == 4 * (at + 1)
    index = store.read_json(version.shards["0"])
    table = load(store, index["ledger"])
    fates = table["fate"].to_pylist()
    assert (fates.count("refused"), index["refused"], index["settled"]) == (5, 24, [])
    said = [row["text"] for row in devices.alerts(store, version, 0)]
    assert len(said) == 4 + 1
    assert said[-1] == "20 more documents are not used"
    assert [*store.files(version)]
    # the file at 53.json is written anew, and can be read
    version = take_in(store, version, table_of([document("d", 1_000)], 53))
    assert of_table(store, version).summary["documents"]["refused"] == 23
