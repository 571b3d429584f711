"""Names the newest documents of a shard that cannot be used, and counts those before: devices may send any number."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate_cloud.grid import Ints
from sluicegate_cloud.schema import REFUSED
from sluicegate_cloud.table.settled.rows import LEDGER, ints, of_runs

#: Of a shard that are named.
NAMED = 4_096
_PATH = "…"


def fewer(refused: pa.Table) -> pa.Table:
    """Rows in the order in which they came: the last NAMED, and before them one for all others.

    What is not named any more stays counted when its file can be read one day, and counts again where it comes again.
    """
    if refused.num_rows <= NAMED:
        return refused
    others, named = refused.slice(0, refused.num_rows - NAMED + 1), refused.slice(refused.num_rows - NAMED + 1)
    documents = int(documents_of(others).sum())
    head = {"fate": REFUSED, "reason": f"{documents:,} documents that came before are not used either", "path": _PATH}
    row = head | {"size": int(ints(others, "size").sum()), "hole": 0, "lost": 0, "run": {"documents": documents}}
    return pa.concat_tables([pa.Table.from_pylist([row], LEDGER), named])


def documents_of(rows: pa.Table) -> Ints:
    """For how many documents each row stands."""
    return of_runs(rows, "documents", np.ones(rows.num_rows, np.int64))


def count(ledger: pa.Table) -> int:
    """How many documents of a ledger are refused."""
    return int(documents_of(ledger.filter(pc.equal(ledger["fate"], REFUSED))).sum())
