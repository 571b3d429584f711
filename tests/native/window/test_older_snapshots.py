"""What earlier builds stored is read, and goes on; or it is refused with what to do.

tests/cases/snapshots holds the snapshots of `stored` as builds before each change of the state wrote them: version 1
at 1239007^ (R1 with the newest leaf in it), 2 at e2d34bd (no limit of buckets), 3 at 82efbb9 (before batches went in
blocks, which takes R0 and R1 at other times). They were written by checking each out, building it, and calling
`stored(name).snapshot()` with this module's `stored`, `VALUES` and `TIMES`, 400 readings one by one.
"""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import pytest

import sluicegate as sg
from sluicegate import errors
from sluicegate.window import snapshot

CASES = Path(__file__).parents[2] / "cases" / "snapshots"
VERSIONS = ("version-1", "version-2", "version-3")
VALUES = array("d", [((i * 37) % 101) / 8 - 3.1 for i in range(1000)])
TIMES = array("q", [i * 7 + i % 5 for i in range(1000)])
pytestmark = pytest.mark.usefixtures("implementation_of_window")


def options() -> dict[str, dict[str, Any]]:
    """The windows by name, as they were made then."""
    kept = {"sum": sg.sum(), "mean": sg.mean(), "max": sg.max(), "first": sg.first(), "argmin": sg.argmin()}
    return {
        "exact": {"aggregates": kept, "policy": sg.policies.count(100)},
        "time": {"aggregates": kept, "policy": sg.policies.time(900)},
        "means": {
            "aggregates": {"mean": sg.mean()},
            "policy": sg.policies.time(900),
            "histograms": [sg.Constrained(8)],
        },
        "extremes": {
            "aggregates": {"max": sg.max()},
            "policy": sg.policies.count(100),
            "histograms": [sg.Constrained(8)],
        },
    }


def stored(name: str) -> sg.Window:
    """A window after all readings."""
    window = sg.Window(**options()[name])
    for value, time in zip(VALUES[:400], TIMES[:400], strict=True):
        window.insert(value, time=time)
    window.insert_many(VALUES[400:], TIMES[400:])
    return window


def near(found: Any, expected: Any) -> bool:
    """Sums to their rounding, since a state of version 1 is combined anew; all else to the bit."""
    return set(found) == set(expected) and all(
        answer == pytest.approx(expected[name], rel=1e-13) if name in ("sum", "mean") else answer == expected[name]
        for name, answer in found.items()
    )


@pytest.mark.parametrize(
    ("version", "name"),
    [*((version, name) for version in VERSIONS for name in ("exact", "time", "means")), ("version-3", "extremes")],
)
def test_it_is_read_and_goes_on(version: str, name: str) -> None:
    """The answer of then; and after as many readings more that of a window that was never stored."""
    now = stored(name)
    back = sg.Window.restore((CASES / version / f"{name}.bin").read_bytes(), **options()[name])
    back.verify()
    assert near(back.query(), now.query())
    assert (len(back), back.accepted, back.readings) == (len(now), now.accepted, now.readings)
    assert [(each.count, each.t_first, each.t_last) for each in back.buckets()] == [
        (each.count, each.t_first, each.t_last) for each in now.buckets()
    ]
    later = array("q", [time + 7100 for time in TIMES])
    for window in (back, now):
        window.insert_many(VALUES, later)
        window.verify()
    assert near(back.query(), now.query())


@pytest.mark.parametrize("version", ["version-1", "version-2"])
def test_buckets_that_kept_less_are_refused(version: str) -> None:
    """A maximum's buckets have known since what stands beside it: said so, and a new window is what is left."""
    data = (CASES / version / "extremes.bin").read_bytes()
    with pytest.raises(errors.ForeignSnapshotError, match=r"Sluicegate 0\.1 wrote it, whose buckets kept less"):
        sg.Window.restore(data, **options()["extremes"])


def test_the_cases_are_of_each_version() -> None:
    """The version stands in the bytes; the newest, of windows with late readings, is written by the tests of those."""
    found = {each: int.from_bytes((CASES / each / "exact.bin").read_bytes()[4:6], "little") for each in VERSIONS}
    assert found == {f"version-{number}": number for number in range(1, snapshot.VERSION)}
