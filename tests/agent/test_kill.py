"""Killed at every numbered step and at random instants, each reading counts exactly once, on the board and beyond."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from killing import RECEIVE_MAXIMUM, Work, check_target, in_child, known, live, lose_pubacks, work
from thorough import chosen, number

from sluicegate_agent import faults

pytestmark = [pytest.mark.faults, pytest.mark.slow]
SHARES = 3
RUNS, KILLS_EACH = number(10, 3), 20


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: SIGKILL loses nothing that was written, so syncing proves nothing here."""
    memory = Path("/dev/shm")  # noqa: S108  a folder of our own is made below it
    folder = Path(tempfile.mkdtemp(dir=memory)) if memory.is_dir() else tmp_path
    yield folder
    if folder != tmp_path:
        shutil.rmtree(folder)


def fresh(folder: Path) -> Path:
    """The folder of one more device."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "chunks").mkdir(parents=True)
    return folder


def uninterrupted(folder: Path, made: Work) -> tuple[str, list[str]]:
    """The answers of a run that nothing disturbs, and the names of all steps it passes."""
    trace: list[str] = []
    try:
        live(fresh(folder), made, 0, trace)
    finally:
        faults.disarm()
    check_target(folder, made)
    return (folder / "answers").read_text(), trace


def check(folder: Path, made: Work, expected: str, at: object, *, is_shown: bool = True) -> None:
    """Nothing lost, nothing double at the target; every window's answer and every leaf is the same to the bit.

    `is_shown`: the broker had shown how it numbers messages and marks repeats. Else bare readings may be in doubt.
    """
    try:
        check_target(folder, made)
    except AssertionError as error:
        raise AssertionError(f"killed at {at}: {error}") from error
    found, whole = json.loads((folder / "answers").read_text()), json.loads(expected)
    assert found.keys() == whole.keys()
    differ = [name for name in whole if found[name] != whole[name] and (is_shown or not name.startswith("door/"))]
    assert not differ, f"killed at {at}: answers differ"


@pytest.mark.parametrize("share", range(SHARES))
def test_killed_at_every_step(quick: Path, share: int) -> None:
    """Steps of accept, commit, acknowledge, seal, put and delete: killed there, and again while it recovers."""
    made = work(80, seed=1)
    expected, trace = uninterrupted(quick / "whole", made)
    rng = random.Random(share)
    folder = quick / "killed"
    ends = [place for place, name in enumerate(trace, 1) if name == "accept: end"]
    for at in chosen(trace, 9)[share::SHARES]:
        fresh(folder)
        assert not in_child(folder, made, at)
        lost = rng.randint(0, RECEIVE_MAXIMUM // 2) if rng.random() < 0.5 else 0
        lose_pubacks(folder, 0, lost)
        in_child(folder, made, rng.randint(1, 40))
        assert in_child(folder, made)
        check(folder, made, expected, (at, trace[at - 1]), is_shown=lost > 0 and at > ends[RECEIVE_MAXIMUM - 1])


def test_every_kind_of_step_is_passed(quick: Path) -> None:
    """The runs above prove something only if they go through all that can be interrupted: an outage and a merge too."""
    _, trace = uninterrupted(quick / "whole", work(400, seed=1))
    assert set(trace) == {
        "store: before opening commits",
        "accept: begin",
        "accept: end",
        "commit: begin",
        "commit: streams",
        "commit: windows",
        "commit: identities",
        "commit: counters",
        "commit: squeezed",
        "commit: durable, not acknowledged",
        "record: gathered",
        "record: before append",
        "record: written",
        "record: durable",
        "record: buckets written",
        "transaction: before commit",
        "transaction: after commit",
        "seal: begin",
        "seal: encoded",
        "seal: rows replaced",
        "put: before",
        "directory: written",
        "directory: file synced",
        "directory: named",
        "directory: folder synced",
        "put: after",
        "settle: deleted",
    }


def begun(folder: Path, made: Work) -> Path:
    """A device that was killed once it had shown that its session's packet ids count upward.

    A bare message that comes again before that is in doubt, and may count twice as such.
    """
    assert not in_child(fresh(folder), made, RECEIVE_MAXIMUM, only="accept: end")
    return folder


@pytest.mark.parametrize("run", range(RUNS))
def test_killed_at_random_instants(quick: Path, run: int) -> None:
    """Devices, each killed twenty times at instants nobody chose, its last PUBACKs lost each time."""
    made = work(1200, seed=100 + run)
    expected, _ = uninterrupted(quick / "whole", made)
    rng = random.Random(run)
    folder, kills = begun(quick / "killed", made), 1
    while kills < KILLS_EACH:
        before = known(folder)
        if in_child(folder, made, seconds=rng.uniform(0.005, 0.09)):
            check(folder, made, expected, "the end")
            begun(folder, made)
            continue
        kills += 1
        lose_pubacks(folder, before, rng.randint(0, RECEIVE_MAXIMUM // 2))
    assert in_child(folder, made)
    check(folder, made, expected, f"{kills} random instants")
