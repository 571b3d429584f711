"""The record's file: what was appended is read back, and nothing else is, whatever became of its bytes."""

from __future__ import annotations

import os
import random
import sqlite3
import tempfile
import tracemalloc
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")

from hypothesis import given
from hypothesis import strategies as st

from sluicegate_agent.record import file
from sluicegate_agent.record.file import HEAD, NAME, Record, framed, read

FOLD = 7
BODIES = [b"first", b"", b"third" * 2000]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder whose record has three frames after the fold, over two longer ones of an earlier fold."""
    record = Record(tmp_path)
    record.begin(FOLD - 1)
    for _ in range(2):
        record.append(b"earlier" * 3000)
    record.begin(FOLD)
    for body in BODIES:
        record.append(body)
    record.close()
    return tmp_path


def found(folder: Path, fold: int = FOLD) -> tuple[list[bytes], list[bytes]]:
    """The frames that are whole, and those beyond a hole."""
    frames = read(folder, fold)
    assert frames is not None
    return [*frames], [*frames.beyond()]


def test_a_copy_takes_the_room_of_the_file_and_no_more(written: Path) -> None:
    """An agent that is killed begins again in the memory that it was given, whatever the largest record may be."""
    tracemalloc.start()
    try:
        frames = read(written, FOLD, copied=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert frames is not None
    assert [*frames] == BODIES
    assert peak < 2 * (written / NAME).stat().st_size + 16_384


def test_frames_of_one_fold_are_read_back_and_those_of_an_earlier_one_are_not(written: Path) -> None:
    """The number of the fold tells them apart, in one file."""
    assert found(written) == (BODIES, [])
    assert found(written, FOLD + 1) == ([], [])
    assert read(written, FOLD)
    assert not read(written, FOLD + 1)
    assert read(written / "elsewhere", FOLD) is None


@pytest.mark.parametrize("cut", [1, HEAD - 1, HEAD, 3000])
def test_a_last_frame_that_was_cut_short_was_never_there(written: Path, cut: int) -> None:
    """As a crash leaves it: what is behind belongs to nobody, and is no damage."""
    length = sum(HEAD + len(body) for body in BODIES)
    os.truncate(written / NAME, length - cut)
    assert found(written) == (BODIES[:2], [])


@pytest.mark.parametrize("at", [0, 9, HEAD, HEAD + 5, 2 * HEAD])
def test_a_frame_that_is_damaged_is_a_hole_and_those_behind_it_are_seen(written: Path, at: int) -> None:
    """One bit is enough, in its head or in its body."""
    path = written / NAME
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)
    whole = [] if at < HEAD + 5 else BODIES[:1]
    assert found(written) == (whole, BODIES[-1:] if whole else BODIES[1:])


def test_a_frame_that_stands_there_twice_counts_once(written: Path) -> None:
    """Its number says where it belongs; a copy behind the last one is a frame that does not follow."""
    path, first = written / NAME, framed(FOLD, 1, BODIES[0])
    length = sum(HEAD + len(body) for body in BODIES)
    data = path.read_bytes()
    path.write_bytes(data[:length] + first + data[length + len(first) :])
    assert found(written)[0] == BODIES


def test_a_disk_that_refuses_is_a_commit_that_failed(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an error of the store, and the next frame would take its place."""
    record = Record(written)
    record.begin(FOLD + 1)

    def refuse(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file.os, "fdatasync", refuse)
    with pytest.raises(sqlite3.OperationalError, match="No space left"):
        record.append(b"body")
    assert (record.frames, record.bytes) == (0, 0)
    record.close()
    record.close()


def test_what_was_deleted_is_put_back(written: Path) -> None:
    """The open file has all of it; what stands in its place is kept beside."""
    record = Record(written)
    record.rescue()
    (written / NAME).unlink()
    record.rescue()
    assert found(written) == (BODIES, [])
    (written / NAME).unlink()
    (written / NAME).write_bytes(b"another's")
    record.rescue()
    assert found(written) == (BODIES, [])
    assert (written / f"rescued-replaced-{NAME}").read_bytes() == b"another's"
    record.close()


def test_the_file_has_a_bound(tmp_path: Path) -> None:
    """A frame that would go beyond it has no room."""
    largest = 10_000
    record = Record(tmp_path, largest)
    record.begin(FOLD)
    assert record.has_room(bytes(largest - HEAD))
    assert not record.has_room(bytes(largest - HEAD + 1))
    record.append(b"x")
    assert not record.has_room(bytes(largest - HEAD))
    record.close()


@given(sizes=st.lists(st.integers(0, 9000) | st.integers(4000, 4200), min_size=1, max_size=30), seed=st.integers())
def test_no_frame_reaches_into_a_page_more_than_it_has_to(sizes: list[int], seed: int) -> None:
    """Whole pages go to the disk; and all of them are read back, over whatever an earlier fold left."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        record = Record(Path(folder), 1 << 20)
        record.begin(FOLD - 1)
        for _ in range(40):
            record.append(rng.randbytes(rng.randrange(6000)))
        record.begin(FOLD)
        bodies = [rng.randbytes(size) for size in sizes]
        ends = []
        for body in bodies:
            record.append(body)
            ends.append(record.bytes)
        record.close()
        for body, end in zip(bodies, ends, strict=True):
            size = HEAD + len(body)
            assert (end - 1) // 4096 - (end - size) // 4096 + 1 == -(-size // 4096)
        assert found(Path(folder)) == (bodies, [])
