"""A process to be killed: inserts numbered readings into a stored window for ever and says what it has flushed.

python killed_window.py FILE SIZE SHIFT [begin] [CouchbaseLite]
"""

from __future__ import annotations

import sys
from pathlib import Path

import sluicegate as sg
from sluicegate import stores

AGGREGATES = {"sum": sg.sum(), "max": sg.max(), "std": sg.std()}


def reading(i: int) -> float:
    """The reading of ordinal i, with digits that rounding shows in."""
    return (i * 2654435761 % 2**32) / 2**29 - 3.7


def run(path: Path, size: int, shift: int) -> None:
    """Go on where the store ends, by single readings and batches."""
    kind = stores.CouchbaseLite if "CouchbaseLite" in sys.argv else stores.SQLite
    store = kind(path, stores.Plan(shift, 4))
    if "begin" in sys.argv:
        window = sg.Window(AGGREGATES, policy=sg.policies.count(size), store=store)
    else:
        window = sg.Window.open(store)
    print("open", window.accepted, flush=True)
    while True:
        for _ in range(37):
            window.insert(reading(window.accepted))
        start = window.accepted
        window.insert_many([reading(i) for i in range(start, start + 211)], results=False)
        if window.accepted % 5 == 0:
            window.flush()
            print("flushed", window.accepted, flush=True)


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
