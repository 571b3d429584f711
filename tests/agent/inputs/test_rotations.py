"""Files that are rotated while clocks, people and writers do what they want: each line once, or told as missing."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import time
from collections.abc import Callable

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from growing_file import Reader, gaps


def rotate(one: Reader, name: str, *, ago: float = 0.0) -> None:
    """Rename the file as logrotate does: `.1` moves the others on, another name does not. `ago`: s before now."""
    for number in range(8, 0, -1) if name == ".1" else ():
        with contextlib.suppress(FileNotFoundError):
            one.file.with_suffix(f".log.{number}").rename(one.file.with_suffix(f".log.{number + 1}"))
    os.utime(one.file, (time.time() - ago,) * 2)
    one.file.rename(one.file.with_name(one.file.name + name))


@pytest.mark.parametrize("away", [False, True])
def test_a_clock_that_is_set_back_between_two_rotations(reader: Callable[..., Reader], away: bool) -> None:
    """The later file has the earlier time: by its number it is read, in its place, whoever is known from before."""
    one = reader()
    one.write(0)
    rotate(one, ".1", ago=9000)
    one.write(1, 2)
    one.read()
    if away:
        one.inputs.close()
    one.write(3)
    rotate(one, ".1")
    one.write(4)
    rotate(one, ".1", ago=3600)
    one.write(5)
    rotate(one, ".1", ago=7200)
    one.write(6)
    if away:
        one.killed()
    one.read()
    assert one.total() == (21.0, 6)
    assert one.desk.state.counters["tail.lost"] == 0
    assert [answer.value for answer in one.desk.pipeline.answers("x", "newest")] == [6.0]


def test_a_clock_that_is_set_back_between_two_copies(reader: Callable[..., Reader]) -> None:
    """copytruncate, twice while the agent is away: both copies are read."""
    one = reader()
    one.write(1, 2)
    one.read()
    one.inputs.close()
    for value, ago in ((3, 0), (4, 3600)):
        one.write(value)
        with contextlib.suppress(FileNotFoundError):
            one.file.with_suffix(".log.1").rename(one.file.with_suffix(".log.2"))
        shutil.copy(one.file, one.file.with_suffix(".log.1"))
        os.utime(one.file.with_suffix(".log.1"), (time.time() - ago,) * 2)
        one.file.write_text("")
    one.write(5)
    one.killed()
    one.read()
    assert one.total() == (15.0, 5)


def test_a_file_of_an_earlier_date_is_told(reader: Callable[..., Reader]) -> None:
    """Name and time say that it is older: it may be an old one that was unpacked. It is not read, a line is missing."""
    one = reader()
    one.write(1, 2)
    one.read()
    one.inputs.close()
    rotate(one, "-20260302")
    one.write(3)
    rotate(one, "-20260301", ago=86_400)
    one.write(4)
    one.killed()
    one.read()
    assert one.total() == (7.0, 3)
    assert one.desk.state.counters["tail.lost"] == 1
    assert gaps(one) == [1]


def test_a_file_that_waited_its_turn_is_read_whatever_its_time(reader: Callable[..., Reader]) -> None:
    """It was seen under the file's own name while an older one was read: no date in its next name matters."""
    one = reader()
    one.write(1)
    one.read()
    rotate(one, "-20260302")
    one.write(2)
    tail = one.tail
    tail._queue = tail._after(*((tail._place.device, tail._place.inode), time.time_ns()))
    rotate(one, "-20260301", ago=86_400)
    one.write(3)
    one.read()
    assert one.total() == (6.0, 3)
    assert one.desk.state.counters["tail.lost"] == 0


@pytest.mark.parametrize("ago", [0, 86_400])
def test_what_was_there_before_and_what_is_unpacked_is_not_read(reader: Callable[..., Reader], ago: float) -> None:
    """A log beside that goes on, a file that was touched, an old one that somebody unpacked to look at."""
    one = reader()
    beside, old = one.file.with_suffix(".log.err"), one.file.with_suffix(".log.1")
    beside.write_text("1000\n")
    one.write(77)
    one.file.rename(old)
    one.write(1)
    one.read()
    one.killed()
    beside.write_text("1000\n1000\n")
    os.utime(old, (time.time() - ago + 1,) * 2)
    rotate(one, ".1")
    unpacked = one.file.with_suffix(".log.7")
    unpacked.write_text("500\n")
    os.utime(unpacked, (time.time() - 90_000,) * 2)
    one.write(2)
    one.read()
    one.killed()
    one.read()
    assert one.total() == (3.0, 2)
    assert one.desk.state.counters["tail.lost"] == 0


def test_a_file_that_is_written_to_after_it_was_left_is_told(reader: Callable[..., Reader]) -> None:
    """Who writes kept it open for long: what was read counts once, and the next rotation tells of the late line."""
    one = reader()
    one.write(1)
    one.read()
    rotate(one, ".1")
    one.write(2)
    one.read()
    with one.file.with_suffix(".log.1").open("a") as late:
        late.write("100\n")
    os.utime(one.file.with_suffix(".log.1"), (time.time() + 60,) * 2)
    rotate(one, ".1")
    one.write(3)
    one.read()
    assert one.total() == (6.0, 3)
    assert one.desk.state.counters["tail.lost"] == 1


def test_a_folder_that_was_copied_to_another_card_is_not_read_again(reader: Callable[..., Reader]) -> None:
    """Every file is another one then, with the times of before: the older ones were read."""
    one = reader()
    for value, ago in ((1, 300), (2, 200), (3, 100)):
        one.write(value)
        one.read()
        rotate(one, ".1", ago=ago)
    one.write(4)
    one.read()
    one.inputs.close()
    for path in sorted(one.file.parent.glob("meter.log*")):
        copy = path.with_name(f"copy of {path.name}")
        shutil.copy2(path, copy)
        path.unlink()
        copy.rename(path)
    rotate(one, ".1")
    one.write(5)
    one.killed()
    one.read()
    assert one.total() == (15.0, 5)
    assert one.desk.state.counters["tail.lost"] == 0


@pytest.mark.parametrize("seed", range(4))
def test_random_lives_with_a_clock_that_steps(reader: Callable[..., Reader], seed: int) -> None:
    """Rotations by number at any times, reading, kills and restarts in any order: every line exactly once."""
    chance, one, written = random.Random(seed), reader(), 0
    for _ in range(60):
        what = chance.random()
        if what < 0.5:
            values = range(written, written + chance.randrange(1, 30))
            one.write(*values)
            written = values.stop
        elif what < 0.65 and one.file.exists() and not one.file.with_suffix(".log.8").exists():
            rotate(one, ".1", ago=chance.choice([0, 60, 3600, 86_400 * 300]))
        elif what < 0.9:
            one.read(commit=chance.random() < 0.7)
        else:
            one.killed()
    one.read()
    assert one.total() == (float(sum(range(written))), written)
