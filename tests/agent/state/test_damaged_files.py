"""Whatever byte, page, log frame or file of the state is damaged, gone or from before: answers are true or in doubt."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from flipped import Board, placed
from thorough import number, some

from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.state import State

PAGE, LOG_HEAD, LOG_FRAME, SECTOR = 4096, 32, 24, 512
Files = dict[Path, bytes]


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    """One for each test."""
    return placed(tmp_path, monkeypatch)


def fault(board: Board, files: Files, what: str) -> list[str]:
    """What is wrong with a board that finds these files; a version that is newer may be refused."""
    board.restore(files)
    try:
        return [f"{what}: {each}" for each in board.faults()[:1]]
    except EnvironmentRefused as error:
        return [] if "schema version" in str(error) else [f"{what}: {error}"]


def structure(data: bytes, kinds: dict[int, str]) -> Iterator[int]:
    """The bytes that say where rows are: the file's head, those of pages and places of cells, and all of indexes."""
    for page in range(len(data) // PAGE):
        begin, head = page * PAGE, 100 if page == 0 else 0
        cells = int.from_bytes(data[begin + head + 3 : begin + head + 5], "big")
        is_index = page == 0 or kinds.get(page + 1, "").startswith(("sqlite_autoindex", "window_runs"))
        used = range(PAGE) if is_index else range(head + 12 + 2 * cells)
        yield from (begin + at for at in used if data[begin + at] or at < head + 12)


def test_each_flipped_byte_of_the_database_is_harmless_or_told(board: Board) -> None:
    """Of what holds pages together and of indexes, which no checksum of a row is of, and of all the rest."""
    data = board.path.read_bytes()
    with closing(sqlite3.connect(board.path)) as store:
        kinds = dict(store.execute("SELECT pageno, name FROM dbstat"))
    rng, wrong = random.Random(11), list[str]()
    places = rng.sample([*structure(data, kinds)], number(2000, 16))
    indexes = {name: page for page, name in kinds.items() if name.startswith(("sqlite_autoindex", "window_runs"))}
    places += [(page - 1) * PAGE + PAGE - at for page in indexes.values() for at in (2, 20)]
    places += rng.sample([at for at, byte in enumerate(data) if byte], number(2000, 4))
    places += [47, data.index(b"INTEGER NOT NULL, leaf")]  # the format's number, a column's type
    for at in places:
        bit = 1 << rng.randrange(8)
        damaged = bytearray(data)
        damaged[at] ^= bit
        what = f"bit {bit} of byte {at % PAGE} of page {at // PAGE + 1} ({kinds.get(at // PAGE + 1)})"
        wrong += fault(board, board.kept | {board.path: bytes(damaged)}, what)
    assert not wrong


def test_pages_that_are_gone_or_in_each_others_place_are_told(board: Board) -> None:
    """Zeroed, swapped, or behind the file's end."""
    data, wrong = board.path.read_bytes(), list[str]()
    pages = [data[at : at + PAGE] for at in range(0, len(data), PAGE)]
    for place in some(range(len(pages)), 6):
        other = (place + 7) % len(pages)
        swapped = [*pages]
        swapped[place], swapped[other] = pages[other], pages[place]
        for what, found in (
            ("zeroed", [*pages[:place], bytes(PAGE), *pages[place + 1 :]]),
            (f"in the place of {other + 1}", swapped),
            ("and all behind it gone", pages[:place]),
        ):
            wrong += fault(board, board.kept | {board.path: b"".join(found)}, f"page {place + 1} {what}")
    assert not wrong


def test_a_log_that_is_gone_cut_or_damaged_is_told(board: Board) -> None:
    """The tables are then from before, and the record is not: its frames follow a fold that they do not know."""
    files, log = board.moments[-1], Path(f"{board.path}-wal")
    written, wrong = files[log], fault(board, board.moments[-1], "as a power cut leaves it")
    frames = (len(written) - LOG_HEAD) // (LOG_FRAME + PAGE)
    for frame in some(range(frames), 24):
        begin = LOG_HEAD + frame * (LOG_FRAME + PAGE)
        damaged = bytearray(written)
        damaged[begin + LOG_FRAME + 100] ^= 4
        wrong += fault(board, files | {log: bytes(damaged)}, f"frame {frame} of the log damaged")
        wrong += fault(board, files | {log: written[:begin]}, f"the log cut before frame {frame}")
    wrong += fault(board, {path: data for path, data in files.items() if path != log}, "no log")
    assert not wrong


def test_tables_and_a_record_of_different_times_part(board: Board) -> None:
    """One of them was put back from a backup, or the card kept an old one: ordinals of before are not used again."""
    log, record = Path(f"{board.path}-wal"), board.path.with_name("state.record")
    newest, wrong = board.moments[-1], list[str]()
    for at in some(range(len(board.moments) - 6), 6):
        older = board.moments[at]
        wrong += fault(board, newest | {path: older[path] for path in (board.path, log)}, f"tables of commit {at}")
        if at <= 11:  # later ones are of this fold: the last frames are missed, as if they had never been
            wrong += fault(board, newest | {record: older[record]}, f"the record of commit {at}")
    for size in range(0, len(newest[record]), SECTOR):
        wrong += fault(board, newest | {record: newest[record][:size]}, f"the record cut to {size} bytes")
    assert not wrong
    board.restore(newest | {path: board.moments[5][path] for path in (board.path, log)})
    with State(board.config) as state:
        assert (state.counters["copies_noticed"], state.counters["record.damaged"]) == (1, 1)
        assert len({stream.incarnation for stream in state.streams.values()}) == 1
