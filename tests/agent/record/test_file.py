"""The record's file: what was appended is read back, and nothing else is, whatever became of its bytes."""

from __future__ import annotations

import errno
import itertools
import os
import random
import sqlite3
import struct
import tempfile
import tracemalloc
import zlib
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")

from hypothesis import given
from hypothesis import strategies as st

from sluicegate_agent.record import file, sectors
from sluicegate_agent.record.file import HEAD, NAME, Record, framed, read
from sluicegate_agent.record.sectors import HELD, SECTOR

FOLD = 7
BODIES = [b"first", b"", b"third" * 2000]
#: Where each ends on the disk, the first two in a sector of their own and the last one on pages; bytes of the last one.
ENDS = [SECTOR, 2 * SECTOR, 2 * SECTOR + sectors.size(HEAD + len(BODIES[-1]))]
LAST = ENDS[-1] - ENDS[-2]
#: Bytes behind its last one that only fill up the sector.
UNUSED = SECTOR - (HEAD + len(BODIES[-1])) % HELD


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


def is_next_damaged(folder: Path, fold: int = FOLD) -> bool:
    """Whether a frame was there that is not whole, though it was written whole."""
    frames = read(folder, fold)
    assert frames is not None
    for _ in frames:
        pass
    return frames.is_next_damaged()


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


@pytest.mark.parametrize("cut", [UNUSED + 1, SECTOR, 3000, LAST - 1, LAST])
def test_a_last_frame_that_was_cut_short_was_never_there(written: Path, cut: int) -> None:
    """As a crash leaves it: what is behind belongs to nobody, and is no damage."""
    os.truncate(written / NAME, ENDS[-1] - cut)
    assert found(written) == (BODIES[:2], [])
    assert not is_next_damaged(written)


@pytest.mark.parametrize("before", [b"", b"zero", b"earlier"])
@pytest.mark.parametrize("length", [5, 2000])
def test_whatever_a_power_cut_leaves_of_a_frame_is_no_damage(tmp_path: Path, before: bytes, length: int) -> None:
    """Each sector as it was or as it was to be: all 2^n of them, over nothing, zeros and earlier frames."""
    record = Record(tmp_path)
    record.begin(FOLD - 1)
    if before:
        record.append(bytes(8000) if before == b"zero" else b"earlier" * 1000)
    if before == b"zero":
        record.path.write_bytes(bytes(8192))
    record.begin(FOLD)
    record.append(b"first")
    was, begin = record.path.read_bytes(), record.bytes
    record.append(random.Random(1).randbytes(length))
    record.close()
    new = record.path.read_bytes()
    was = was.ljust(len(new), b"\0")
    places = range(begin, record.bytes, SECTOR)
    for kept in itertools.product((True, False), repeat=len(places)):
        data = bytearray(new)
        for place, is_new in zip(places, kept, strict=True):
            data[place : place + SECTOR] = (new if is_new else was)[place : place + SECTOR]
        record.path.write_bytes(data)
        assert len(found(tmp_path)[0]) == 1 + all(kept)
        assert not is_next_damaged(tmp_path)


@pytest.mark.parametrize("at", range(0, LAST, 97))
def test_a_last_frame_that_is_damaged_is_told(written: Path, at: int) -> None:
    """Whichever of its bytes: the frame is whole, or it is known that it was there."""
    path = written / NAME
    data = bytearray(path.read_bytes())
    data[ENDS[1] + at] ^= 4
    path.write_bytes(data)
    is_whole = found(written) == (BODIES, [])
    assert is_whole == (at % SECTOR >= HELD or ENDS[1] + at >= ENDS[-1] - UNUSED)
    assert is_whole or is_next_damaged(written)


def test_a_sector_that_the_disk_refuses_is_damage(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are read."""
    real = os.pread

    def pread(handle: int, length: int, at: int) -> bytes:
        if at <= ENDS[1] + 700 < at + length:
            raise OSError(errno.EIO, "Input/output error")
        return real(handle, length, at)

    monkeypatch.setattr(sectors.os, "pread", pread)
    assert found(written) == (BODIES[:2], [])
    assert is_next_damaged(written)


def test_what_an_agent_is_writing_is_no_damage(written: Path) -> None:
    """Whoever looks at its record sees half a frame."""
    path = written / NAME
    path.write_bytes(path.read_bytes()[: ENDS[1]] + b"x" * SECTOR)
    assert is_next_damaged(written)
    frames = read(written, FOLD, copied=True)
    assert frames is not None
    assert [*frames] == BODIES[:2]
    assert not frames.is_next_damaged()


@pytest.mark.parametrize("at", [0, 9, HEAD, SECTOR, SECTOR + 5, SECTOR + HEAD - 1])
def test_a_frame_that_is_damaged_is_a_hole_and_those_behind_it_are_seen(written: Path, at: int) -> None:
    """One bit is enough, in its head or in its body."""
    path = written / NAME
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)
    whole = [] if at < SECTOR else BODIES[:1]
    assert found(written) == (whole, BODIES[-1:] if whole else BODIES[1:])


def test_a_record_of_an_older_sluicegate_is_read_and_begun_anew(tmp_path: Path) -> None:
    """It had no sectors; none of its frames is taken for damage afterwards."""
    plain = bytearray()
    for number, body in enumerate(BODIES, 1):
        head = [b"SGR1", FOLD, number, len(body)]
        crc = zlib.crc32(body, zlib.crc32(struct.pack("<4sQIII", *head, 0)))
        plain += struct.pack("<4sQIII", *head, crc) + body
    (tmp_path / NAME).write_bytes(plain)
    assert found(tmp_path) == (BODIES, [])
    assert not is_next_damaged(tmp_path)
    (tmp_path / NAME).write_bytes(plain[:30] + b"x" + plain[31:])
    assert found(tmp_path) == (BODIES[:1], BODIES[2:])
    record = Record(tmp_path)
    record.begin(FOLD + 1)
    record.append(b"new")
    record.close()
    assert found(tmp_path, FOLD + 1) == ([b"new"], [])
    assert not is_next_damaged(tmp_path, FOLD + 1)


def test_a_frame_that_stands_there_twice_counts_once(written: Path) -> None:
    """Its number says where it belongs; a copy behind the last one is a frame that does not follow."""
    path, first = written / NAME, framed(FOLD, 1, BODIES[0])
    data = path.read_bytes()
    path.write_bytes(data[: ENDS[-1]] + first + data[ENDS[-1] + len(first) :])
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
    largest = 20 * SECTOR + 100
    record = Record(tmp_path, largest)
    record.begin(FOLD)
    assert record.has_room(bytes(20 * HELD - HEAD))
    assert not record.has_room(bytes(20 * HELD - HEAD + 1))
    record.append(b"x")
    assert not record.has_room(bytes(20 * HELD - HEAD))
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
            size = sectors.size(HEAD + len(body))
            assert (end - 1) // 4096 - (end - size) // 4096 + 1 == -(-size // 4096)
        assert found(Path(folder)) == (bodies, [])
