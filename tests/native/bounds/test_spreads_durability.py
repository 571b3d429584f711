"""Variances and geometric means through snapshots and stores: the same bits, or a refusal with its reason."""

from __future__ import annotations

import random
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from test_spreads import NEW

import sluicegate as sg
import sluicegate.window.configure
from sluicegate.errors import ForeignSnapshotError

sys.path.append(str(Path(__file__).resolve().parents[3]))


# durability


@pytest.mark.usefixtures("implementation_of_window")
def test_snapshots_continue_bit_for_bit() -> None:
    """A window of all new aggregates is restored and rebuilt with the same answers; another ddof is another window."""
    options: dict[str, Any] = {"policy": sg.policies.count(40), "histograms": [sg.Constrained(6)]}
    window, rng = sg.Window(NEW, **options), random.Random(5)
    for _ in range(150):
        window.insert(rng.uniform(0.5, 9))
    changes = window.changes()
    rows = [(changes.level, i, window.leaf(i)) for i in range(changes.head, changes.open)]
    others = [sg.Window.restore(window.snapshot(), NEW, **options)]
    others.append(sg.Window.rebuild(NEW, state=window.state(), leaves=rows, **options))
    for _ in range(100):
        value = rng.uniform(0.5, 9)
        for each in (window, *others):
            each.insert(value)
            assert each.query(bounds=True) == window.query(bounds=True)
    sample = sg.Window(sg.variance(ddof=1), policy=sg.policies.count(3))
    with pytest.raises(ForeignSnapshotError, match="another configuration"):
        sg.Window.restore(sample.snapshot(), sg.variance(), policy=sg.policies.count(3))


def test_a_window_of_buckets_of_0_1_is_refused_with_the_reason() -> None:
    """Buckets of 0.1 did not keep what surrounds a maximum: their fingerprint differs, and the error says so."""
    window = sg.Window(sg.max(), policy=sg.policies.count(9), histograms=[sg.Constrained(4)])
    data = bytearray(window.snapshot())
    data[8:24] = bytes(16)  # another fingerprint, under a checksum that fits
    data[-4:] = struct.pack("<I", zlib.crc32(data[:-4]))
    with pytest.raises(ForeignSnapshotError, match=r"0\.1"):
        sg.Window.restore(bytes(data), sg.max(), policy=sg.policies.count(9), histograms=[sg.Constrained(4)])
