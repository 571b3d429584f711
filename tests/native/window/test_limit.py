"""A limit of buckets that shrinks and grows back while the window runs loses no reading and no certain bound."""

from __future__ import annotations

import random
import struct
import zlib
from typing import Any

import pytest
from exact_windows import ALL, CLOCKS, SHAPES, Exact
from test_histogram_windows import count, in_step, outside, stream, time
from thorough import number, some
from twins import core as pure

import sluicegate as sg
import sluicegate.window.configure
from sluicegate import errors
from sluicegate.core import core as compiled
from sluicegate.window import snapshot

MOST = 24
WINDOWS: dict[str, tuple[Any, list[Any]]] = {
    "constrained": (time(300), []),
    "constrained, count": (count(90), []),
    "constrained, hopping": (time(300, hop=100), []),
    "sum-like": (time(250), [sg.SumLike(0.02, atol=1e-3)]),
    "max-like": (count(120), [sg.MaxLike(block=9)]),
    "hop": (time(300, hop=100), [sg.Hop()]),
    "hop, sum-like": (count(120, hop=30), [sg.Hop(hint=30), sg.SumLike(0.05)]),
}
each = pytest.mark.parametrize("name", WINDOWS)
both = pytest.mark.usefixtures("implementation_of_window")


def made(core: Any, name: str) -> sg.Window:
    """A window of at most MOST buckets over one of the two cores."""
    policy, histograms = WINDOWS[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sluicegate.window.configure, "Core", core)
        return sg.Window(ALL, policy=policy, histograms=[*histograms, sg.Constrained(MOST)])


@each
@pytest.mark.parametrize("clock", CLOCKS)
def test_every_window_holds_the_exact_result(name: str, clock: str) -> None:
    """Shrunk and grown at random: intervals hold the truth, the edge never goes back, both cores agree to the bit."""
    fast, slow, exact = made(compiled.Core, name), made(pure.Core, name), Exact(WINDOWS[name][0])
    rng, start, edge = random.Random(zlib.crc32((name + clock).encode())), 0, -1
    for shape in some(SHAPES[:6], 3):
        for value, moment in stream(name + clock, shape, clock, 80):
            if rng.random() < 0.1:
                limit = rng.randint(4, MOST)
                for window in (fast, slow):
                    window.limit_to(limit)
                    assert len(window) <= limit == window.limit
                    window.verify()
                if exact.begin < len(exact.values):
                    assert outside(exact, fast.query(bounds=True)) == []
            edge = in_step(fast, slow, exact, value, start + moment, edge)
            assert fast.accepted == len(exact.values)
            assert len(fast) <= fast.limit
        start += 900
        fast.verify()
        assert fast.snapshot() == slow.snapshot()


@each
@both
def test_a_restart_knows_the_limit(name: str) -> None:
    """Rebuilt from rows and state, or from a snapshot, right after a change or later: as the one that ran on."""
    policy, histograms = WINDOWS[name]
    histograms = [*histograms, sg.Constrained(MOST)]
    rng, rows = random.Random(5), {}
    going, rebuilt = (sg.Window(ALL, policy=policy, histograms=histograms) for _ in range(2))
    for i, (value, moment) in enumerate(stream(name, SHAPES[0], "irregular", number(900, 450))):
        if rng.random() < 0.05:
            limit = rng.randint(4, MOST)
            going.limit_to(limit)
            rebuilt.limit_to(limit)
        if rng.random() < 0.05:
            changes, state = rebuilt.changes(), rebuilt.state()
            rows.update({(changes.level, index): row for index, row in changes.closed})
            stored = [(level, index, row) for (level, index), row in rows.items()]
            assert snapshot.stored_limit(state) == rebuilt.limit
            rebuilt = sg.Window.rebuild(ALL, policy=policy, histograms=histograms, state=state, leaves=stored)
        if i % 101 == 0:
            rebuilt = sg.Window.restore(rebuilt.snapshot(), ALL, policy=policy, histograms=histograms)
        assert rebuilt.limit == going.limit
        going.insert(value, moment)
        rebuilt.insert(value, moment)
        assert rebuilt.query(bounds=True) == going.query(bounds=True)
    assert rebuilt.state() == going.state()


@both
def test_a_window_that_grew_back_is_fine_again() -> None:
    """Once what was merged has left, the window is as fine as one that was never shrunk."""
    shrunk, never = (sg.Window(ALL, policy=count(400), histograms=[sg.Constrained(64)]) for _ in range(2))
    for i in range(3000):
        if i == 1000:
            shrunk.limit_to(4)
        if i == 1200:
            shrunk.limit_to(64)
        for window in (shrunk, never):
            window.insert(float(i * 7919 % 101))
        if i == 1100:
            assert len(shrunk) <= 4
    sizes = [[bucket.count for bucket in window.buckets()] for window in (shrunk, never)]
    assert max(sizes[0]) <= max(sizes[1])
    assert len(shrunk) >= 0.75 * len(never)


@both
@pytest.mark.parametrize("limit", [3, 0, -1, 25, 4.0, True, "8", None])
def test_a_limit_that_cannot_be_is_refused(limit: Any) -> None:
    """Under four buckets, above the window's own, or no number: nothing changes."""
    window = sg.Window(sg.mean(), policy=count(50), histograms=[sg.Constrained(MOST)])
    with pytest.raises(errors.ConfigurationError, match="expected 4 to 24"):
        window.limit_to(limit)
    assert window.limit == MOST


@both
def test_a_window_without_a_constrained_footprint_has_no_limit() -> None:
    """There is nothing to change, and it says so."""
    window = sg.Window(sg.mean(), policy=count(50))
    assert window.limit == 0
    with pytest.raises(errors.ConfigurationError, match="no constrained footprint"):
        window.limit_to(8)


@both
def test_a_stored_limit_that_cannot_be_is_refused() -> None:
    """Bytes that claim a limit beyond the window's own, or under four, are no state of it."""
    window = sg.Window(sg.mean(), policy=count(50), histograms=[sg.Constrained(MOST)])
    window.insert(1.0)
    state = window.state()
    for limit in (3, 0, -4, MOST + 1, 2**62):
        forged = state[:-20] + struct.pack("<q", limit) + state[-12:-4]
        forged += struct.pack("<I", zlib.crc32(forged))
        with pytest.raises(errors.SnapshotError, match="limit of"):
            sg.Window.rebuild(sg.mean(), policy=count(50), histograms=[sg.Constrained(MOST)], state=forged, leaves=[])
