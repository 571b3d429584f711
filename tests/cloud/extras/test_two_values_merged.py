"""From readings of two values on two boards to `cloud merge`: covariance and correlation lie where it is said."""

from __future__ import annotations

import random
from array import array
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="the cloud's tests need the extra `cloud`")
pytest.importorskip("msgspec", reason="the readings come from an agent, which needs the extra `agent`")

from thorough import number
from two_values import BOTH, Climate, Reading, told

from sluicegate.format.pairs import Moments, PairColumn
from sluicegate_cloud.extras.answers import answer
from sluicegate_cloud.extras.asked import sorted_out
from sluicegate_cloud.extras.piece import Piece, Share, added
from sluicegate_cloud.extras.windows import shares
from sluicegate_cloud.grid import Grid

ASKED = sorted_out(BOTH)[1]
MINUTE = 60_000_000


def sent(folder: Path, device: str, seed: int, size: int) -> list[Reading]:
    """What a board that is killed now and then was told; its documents are in `folder`."""
    own = folder / device
    own.mkdir()
    one = Climate(own, seed, device, bucket={"readings": size})
    for _ in range(250):
        one.step()
    for name, data in one.documents().items():
        (folder / f"{name.replace('::', '_')}.json").write_bytes(data)
    return one.readings


def is_right(name: str, row: dict[str, object], inside: list[Reading]) -> bool:
    """Whether the definition lies in the interval, and is the value where that is exact."""
    truth = told(name, inside) if inside else None
    if truth is None:
        return row[name] is None or not row[f"{name}_exact"]
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    slack = 1e-9 * max(1.0, abs(truth))
    holds = (-inf if low is None else low) - slack <= truth <= (inf if high is None else high) + slack  # type: ignore[operator]
    return holds and (not row[f"{name}_exact"] or abs(row[name] - truth) <= slack)  # type: ignore[operator]


@pytest.mark.spark
def test_from_the_agents_to_the_windows_of_each_and_of_all(spark: Any, tmp_path: Path) -> None:
    """Documents with single readings and without, late ones among them: no window outside, some exact."""
    from sluicegate_cloud import job
    from sluicegate_cloud.sinks import read_windows

    folder = tmp_path / "sent"
    folder.mkdir()
    devices = {"greenhouse": sent(folder, "greenhouse", 1, 16), "silo": sent(folder, "silo", 2, 1)}
    job.merge([str(folder)], tmp_path / "out", 10 * MINUTE, 5 * MINUTE, ("count", *BOTH))
    rows = [row for row in read_windows(tmp_path / "out").to_pylist() if row["stream"] == "warmth"]
    assert {row["device"] for row in rows} == {*devices, None}
    bounded = exact = 0
    for row in rows:
        of = [*devices.values()] if row["device"] is None else [devices[row["device"]]]
        inside = [each for some in of for each in some if row["window_start"] <= each[0] < row["window_end"]]
        for name in BOTH:
            assert is_right(name, row, inside), (row, told(name, inside))
            bounded += row[f"{name}_low"] is not None
            exact += row[f"{name}_exact"] is True
    assert bounded > len(rows)
    assert exact > len(rows) // 3


def pieces(rng: random.Random, readings: list[Reading]) -> list[Piece]:
    """Buckets of them, in order."""
    found, first = list[Piece](), 0
    while first < len(readings):
        run = readings[first : first + rng.choice((1, 2, 5, 12))]
        values, moments = PairColumn(array("d", [x for _, x, _ in run]), [y for *_, y in run]), Moments()
        moments.add(values, 0, len(run))
        (begin, *_), (end, *_) = run[0], run[-1]
        ends = min(x for _, x, _ in run), max(x for _, x, _ in run)
        doubt = rng.choice((0, 0, 0, 1))
        part = moments.pack() if rng.random() < 0.97 else None
        found.append(Piece(begin, end, ("", first), len(run), len(run) - doubt, *ends, True, (part,) * 2))
        first += len(run)
    return found


@given(st.integers(0, 10**9))
@settings(max_examples=number(80, 40), deadline=None)
def test_the_definition_lies_within(seed: int) -> None:
    """Any buckets of two devices, cut anywhere, some in doubt or without moments: both devices' windows and all's."""
    rng = random.Random(seed)
    grid = Grid(rng.choice((40, 150, 1000)), rng.choice((1, 2, 5)), rng.randrange(50))
    scale, every, devices = rng.choice((1.0, 1e-6, 1e8)), dict[int, Share](), []
    for _ in range(2):
        time, readings = rng.randrange(1000), list[Reading]()
        for _ in range(rng.randrange(1, 60)):
            time += rng.choice((0, 1, 7, 20, 90))
            x = round(rng.gauss(20, 3), 1)
            readings.append((time, x, scale * round(1e3 + x * rng.choice((-1, 1)) + rng.gauss(0, 1), 1)))
        devices.append(readings)
        for share in shares(pieces(rng, readings), grid, ASKED):
            _check(share, [readings])
            before = every.get(share.start)
            every[share.start] = share if before is None else added(before, share, ASKED)
    for share in every.values():
        _check(share, devices)


def _check(share: Share, of: list[list[Reading]]) -> None:
    inside = [each for some in of for each in some if share.start <= each[0] < share.end]
    for place, each in enumerate(ASKED):
        row = answer(share, place, each)
        if row[f"{each.kind}_low"] is not None and inside:
            assert is_right(each.kind, row, inside), (row, told(each.kind, inside))
