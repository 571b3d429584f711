"""A file that grows: each line once, over restarts, rotations of both kinds, and files that are written anew."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import time
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from growing_file import Reader, gaps

from sluicegate_agent.state import StoreDamaged


def test_lines_count_once_and_equal_ones_each(reader: Callable[..., Reader]) -> None:
    """A line without its end waits for it; the file may come after the agent."""
    one = reader()
    one.read()
    one.write(1, 1, 1)
    one.write("2", end="")
    one.read()
    assert one.total() == (3.0, 3)
    one.write("5\n", "x", "", 4)
    one.read()
    assert one.total() == (32.0, 5)
    assert one.desk.reasons() == ["payload is not a number"]


def test_a_restart_goes_on_where_the_commit_was(reader: Callable[..., Reader]) -> None:
    """What was read and not committed is read again, what was committed is not."""
    one = reader()
    one.write(*range(10))
    one.read()
    one.write(*range(10, 20))
    one.read(commit=False)
    one.killed()
    one.write(20)
    one.read()
    assert one.total() == (210.0, 21)


@pytest.mark.parametrize("away", [False, True])
def test_a_file_that_is_renamed_is_read_to_its_end(reader: Callable[..., Reader], away: bool) -> None:
    """logrotate's usual way, while the agent listens or while it is away, once or twice: then the new one follows."""
    one = reader()
    one.write(1, 2)
    one.read()
    one.write(3)
    if away:
        one.inputs.close()
    one.file.rename(one.file.with_suffix(".log.1"))
    one.write(4)
    if away:
        time.sleep(0.01)
        one.file.with_suffix(".log.1").rename(one.file.with_suffix(".log.2"))
        one.file.rename(one.file.with_suffix(".log.1"))
        one.write(5)
        one.killed()
    one.read()
    assert one.total() == ((15.0, 5) if away else (10.0, 4))
    assert one.desk.state.counters["tail.lost"] == 0


def test_a_file_that_is_renamed_while_older_ones_are_read(reader: Callable[..., Reader]) -> None:
    """Several files wait, by names that move on: of none that comes meanwhile is a line passed over."""
    one = reader()
    one.write(1)
    one.read()
    one.inputs.close()

    def rotate(value: int) -> None:
        time.sleep(0.01)
        for number in range(8, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                one.file.with_suffix(f".log.{number}").rename(one.file.with_suffix(f".log.{number + 1}"))
        one.file.rename(one.file.with_suffix(".log.1"))
        one.write(value)

    rotate(10)
    rotate(100)
    one.killed()
    tail = one.tail
    for value in (1_000, 10_000):
        while len(tail._queue) != 1 and (message := next(tail.step(1), None)) is not None:
            one.desk.pipeline.accept(message, is_new=True)
        rotate(value)
    one.read()
    assert one.total() == (11_111.0, 5)
    assert one.desk.state.counters["tail.lost"] == 0


def test_a_file_that_is_copied_and_emptied(reader: Callable[..., Reader]) -> None:
    """copytruncate, while the agent is away: what was not read is found in the copy."""
    one = reader()
    one.write(1, 2)
    one.read()
    one.inputs.close()
    one.write(3)
    shutil.copy(one.file, one.file.with_suffix(".log.1"))
    os.utime(one.file.with_suffix(".log.1"), (time.time() - 60, time.time() - 60))
    one.file.write_text("")
    one.write(4)
    one.killed()
    one.read()
    assert one.total() == (10.0, 4)


@pytest.mark.parametrize("in_hand", [0, 3])
@pytest.mark.parametrize("more", [1, 40])
def test_a_file_that_is_copied_and_emptied_while_it_is_read(
    reader: Callable[..., Reader], in_hand: int, more: int
) -> None:
    """What was not read is found in the copy, wherever reading was, and whether the new lines are fewer or more."""
    one = reader()
    one.write(*range(8))
    one.read()
    one.write(*range(8, 20))
    for _ in range(in_hand):  # the others wait in memory
        one.desk.pipeline.accept(next(iter(one.tail.step(1))), is_new=True)
    one.desk.pipeline.commit()
    shutil.copy(one.file, one.file.with_suffix(".log.1"))
    one.file.write_text("")
    one.write(*range(20, 20 + more))
    one.read()
    assert one.total() == (float(sum(range(20 + more))), 20 + more)
    one.killed()
    one.write(1000)
    one.read()
    assert one.total() == (float(sum(range(20 + more)) + 1000), 21 + more)
    assert one.desk.state.counters["tail.lost"] == 0


def test_a_file_that_is_replaced_by_a_longer_copy_goes_on(reader: Callable[..., Reader]) -> None:
    """As who writes a whole file and renames it: what was read is there, under another inode, and counts once."""
    one = reader()
    one.write(*range(8))
    one.read()
    new = one.file.with_suffix(".new")
    shutil.copy(one.file, new)
    one.write(8)
    new.write_text("".join(f"{number}\n" for number in range(12)))
    new.rename(one.file)
    one.read()
    assert one.total() == (66.0, 12)


def test_a_damaged_store_keeps_the_place(reader: Callable[..., Reader]) -> None:
    """Else the whole file would count twice."""
    one = reader()
    one.write(*range(8))
    one.read()
    one.desk.state.store.condemn("for the test")
    one.write(8)
    one.killed()
    one.read()
    assert one.total()[1] in (1, 9)
    assert one.desk.state.counters["accepted"] == 9


def test_a_file_that_is_written_anew_is_read_from_its_begin(reader: Callable[..., Reader]) -> None:
    """Nothing of the old one is there: that lines may be lost is counted, and the new ones count."""
    one = reader()
    one.write(1, 2, 3)
    one.read()
    one.file.write_text("7\n8\n9\n10\n")
    one.read()
    assert one.total() == (40.0, 7)
    assert one.desk.state.counters["tail.lost"] == 1


@pytest.mark.parametrize("keys", [{}, {"key": "k"}])
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("away", [False, True])
def test_lines_that_may_be_lost_are_missing(
    reader: Callable[..., Reader], keys: dict[str, Any], recorded: bool, away: bool
) -> None:
    """The next bucket of each stream of the file has a gap, once, however often the agent is killed on the way."""
    one = reader(format="json", streams={"x": "x", "y": "y"}, recorded=recorded, **keys)
    one.write('{"x": 1, "y": 2, "k": "a"}')
    one.read()
    one.write('{"x": 1, "y": 2, "k": "a"}')
    one.read()
    if away:
        one.inputs.close()
    one.file.write_text("")
    if away:
        one.killed()
    one.read()
    one.killed()
    one.write('{"x": 3, "y": 4, "k": "a"}')
    one.read(commit=False)
    one.killed()
    one.read()
    one.write('{"x": 5, "y": 6, "k": "a"}')
    one.read()
    one.killed()
    assert gaps(one) == [1, 1]
    assert [stream.accepted for stream in one.desk.state.streams.values()] == [4, 4]


def test_numbers_say_how_many_lines_are_lost(reader: Callable[..., Reader]) -> None:
    """Where lines have numbers nothing is guessed beside them."""
    one = reader(format="json", streams={"x": "x"}, sequence="n")
    one.write('{"x": 1, "n": 1}')
    one.read()
    one.file.write_text("")
    one.write('{"x": 1, "n": 5}')
    one.read()
    assert one.desk.state.counters["tail.lost"] == 1
    assert gaps(one) == [3]


def test_a_file_in_between_that_is_packed_is_missing(reader: Callable[..., Reader]) -> None:
    """Rotated twice while the agent was away: the first is read on, of the second nobody can read the lines."""
    one = reader()
    one.write(1, 2)
    one.read()
    one.inputs.close()
    one.file.rename(one.file.with_suffix(".log.2"))
    time.sleep(0.01)
    one.file.with_suffix(".log.1.gz").write_bytes(b"\x1f\x8b")
    one.write(3)
    one.killed()
    one.read()
    assert one.total() == (6.0, 3)
    assert gaps(one) == [1]


def test_a_line_without_its_end_is_not_the_begin_of_another(reader: Callable[..., Reader]) -> None:
    """The file was written anew before anything of it was a whole line."""
    one = reader()
    one.write(12, end="")
    one.read()
    one.file.write_text("7\n8\n")
    one.read()
    assert one.total() == (15.0, 2)


def test_columns_of_a_csv_file_are_found_by_the_paths(reader: Callable[..., Reader]) -> None:
    """The header is read again after a restart; numbers are numbers."""
    one = reader(suffix="csv", format="json", streams={"x": "power"}, time="at", time_format="s")
    one.write("at,room,power", "1,a,5", "2,b,6", "2,b,6")
    one.read()
    one.killed()
    one.write("3,c,7", "4,d,warm")
    one.read()
    assert one.total() == (24.0, 4)


def test_a_line_that_is_too_long_is_one_dead_letter(reader: Callable[..., Reader]) -> None:
    """However long it is, little of it is held, and the next one counts."""
    one = reader()
    one.write("9" * 300_000, 5)
    one.read()
    assert one.total() == (5.0, 1)
    assert one.desk.reasons() == ["payload of 300000 bytes is larger than limits.payload (65536)"]


@pytest.mark.parametrize("seed", range(4))
def test_random_lives(reader: Callable[..., Reader], seed: int) -> None:
    """Writing, rotating, reading, kills and restarts in any order: every line exactly once."""
    chance, one, written = random.Random(seed), reader(), 0
    number = 0
    for _ in range(60):
        what = chance.random()
        if what < 0.5:
            values = range(written, written + chance.randrange(1, 30))
            one.write(*values)
            written = values.stop
        elif what < 0.6 and one.file.exists():
            number += 1
            one.file.rename(one.file.with_suffix(f".log.{number}"))
            time.sleep(0.002)
        elif what < 0.9:
            one.read(commit=chance.random() < 0.7)
        else:
            one.killed()
    one.read()
    assert one.total() == (float(sum(range(written))), written)


def test_a_place_that_was_damaged_counts_no_line_twice(reader: Callable[..., Reader]) -> None:
    """The file is read from its end on then, and the loss of what may be between is counted."""
    one = reader()
    one.write(*range(8))
    one.read()
    connection = one.desk.state.store.connection
    (place,) = connection.execute("SELECT value FROM meta WHERE key = 'tail meter'").fetchone()
    connection.execute("UPDATE meta SET value = ? WHERE key = 'tail meter'", (place[:-40] + b"7" + place[-39:],))
    one.inputs.close()
    one.desk.killed()
    with pytest.raises(StoreDamaged):
        one.begin()
    one.killed()
    one.write(8)
    one.read()
    assert one.desk.state.counters["accepted"] == 9
    assert one.desk.state.counters["tail.lost"] == 1
