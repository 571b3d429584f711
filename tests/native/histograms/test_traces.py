"""The benchmarks' traces promise the same bits everywhere, in blocks of any size, and what the papers' has in it."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="the traces are made with numpy, of the extra cloud")
sys.path.insert(0, str(Path(__file__).parents[3]))
from bench.a2mta import __main__ as a2mta_command  # noqa: E402  (found by the line above)
from bench.amta import __main__ as amta_command  # noqa: E402
from bench.traces import READINGS, TRACES, blocks, trace  # noqa: E402
from bench.traces.counted import word, words  # noqa: E402
from bench.traces.memory import DAY, GIB, LEAST, TOTAL, Memory  # noqa: E402

#: SHA-256 of the readings 30,000,000 … 30,099,999 as little-endian int64, of seed 7.
DIGESTS = {
    "memory": "e54da4a930a37d875e650ffcd1d75878423b3164ca06a91a5475f1b8da0de32a",
    "calm": "3497e8d9c7845139a6cb66cea56449a1bfa7c0a85b64f31e12a7455f2ccdcda6",
    "near-zero": "d2029c9c89fbdaac9b82efda7d1e62ff53c85042fefac21c4cadec44ab32cb5f",
    "steps": "9a495b7dffe002835a45132afff2050b7fb9ceab49c138b23f83409809ed6d67",
}


def digest(name: str) -> str:
    """What DIGESTS has of a trace."""
    return hashlib.sha256(trace(name)(30_000_000, 30_100_000).astype("<i8").tobytes()).hexdigest()


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_is_the_same_to_the_bit_everywhere(name: str) -> None:
    """Digests written down once; another seed has others; every reading is a whole number, exact in any sum."""
    assert digest(name) == DIGESTS[name]
    some = trace(name)(0, 50_000)
    assert not np.array_equal(some, trace(name, seed=8)(0, 50_000))
    assert np.array_equal(some, np.rint(some))
    assert np.abs(some).max() * READINGS < 2**53


@pytest.mark.parametrize("name", TRACES)
@pytest.mark.parametrize("size", [1, 997, 65_536])
def test_blocks_of_any_size_are_the_same_readings(name: str, size: int) -> None:
    """No state goes from block to block: plateaus, jobs and restarts are found from their numbers."""
    begin, end = 5 * DAY - 100, 5 * DAY + (50 if size == 1 else 90_000)
    parts = [trace(name)(at, min(at + size, end)) for at in range(begin, end, size)]
    assert np.array_equal(np.concatenate(parts), trace(name)(begin, end))
    assert sum(len(block) for block in blocks(trace(name), 1_000, 300)) == 1_000


def test_numbers_by_counter_are_splitmix64() -> None:
    """The vectors of its authors for seed 1234567, and NumPy's words as Python's."""
    start = 1_234_567
    golden = 0x9E3779B97F4A7C15
    assert [word(start + golden, i) for i in range(3)] == [
        6_457_827_717_110_365_317,
        3_203_168_211_198_807_973,
        9_817_491_932_198_370_423,
    ]
    assert words(start, np.arange(50)).tolist() == [word(start, i) for i in range(50)]


def test_memory_stays_within_what_there_is() -> None:
    """Two years, a reading each five hours: from 1 GiB to 64 GiB, most of the range used, none where it is held."""
    seen = np.concatenate([trace("memory")(at, at + 1) for at in range(0, READINGS, 18_001)])
    assert LEAST <= seen.min() < 12 * GIB
    assert 35 * GIB < seen.max() <= TOTAL


def test_steps_hold_still_and_peak_once_a_night() -> None:
    """Of thirty days: one reading in 500 is another than the last, each day has about an hour far above the others."""
    seen = trace("steps")(0, 30 * DAY)
    assert 0.0005 < (np.diff(seen) != 0).mean() < 0.002
    peaks = seen.reshape(30, DAY) > 33 * GIB
    assert (peaks.sum(axis=1) < 5_000).all()
    assert (peaks.sum(axis=1) > 2_500).sum() > 15
    assert seen.min() > 8 * GIB
    assert seen.max() < TOTAL


def test_memory_has_what_the_papers_trace_has() -> None:
    """Days and weeks, jobs, restarts, leaks and plateaus, each to be seen at its time scale."""
    made = Memory(7)
    made(READINGS - 1, READINGS)
    lives = [life for life in made._known if life.begin < READINGS]
    assert 12 <= len(lives) <= 240
    assert all(3 * DAY <= life.end - life.begin < 60 * DAY for life in lives)
    assert {life.faster for life in lives} == {True, False}
    long = max(lives, key=lambda life: life.end - life.begin)
    weeks = [made(at, at + DAY).mean() for at in range(long.begin + DAY, long.end - DAY, 7 * DAY)]
    assert weeks[-1] > weeks[0], "it leaks"
    assert made(long.end, long.end + 60).mean() < made(long.end - 3_600, long.end).mean(), "a restart frees memory"
    day = made(long.begin + 3 * DAY, long.begin + 4 * DAY)
    same = np.flatnonzero(np.diff(np.flatnonzero(np.diff(day) != 0)) > 59)
    assert same.size, "a plateau a day"
    assert np.abs(np.diff(day)).max() > GIB // 8, "a job that starts or ends"


def test_calm_is_calm_and_near_zero_changes_its_sign() -> None:
    """The calm trace's days are alike; a month's mean of the other is now above, now below 0."""
    calm, near = trace("calm"), trace("near-zero")
    days = [calm(day * DAY, (day + 1) * DAY).mean() for day in range(0, 700, 100)]
    assert np.ptp(days) < 0.01 * np.mean(days)
    months = [np.mean([near(at, at + 1) for at in range(first, first + 2_592_000, 14_407)]) for first in
              range(0, READINGS, 2_592_000)]  # fmt: skip
    assert min(months) < -100
    assert max(months) > 100


def test_any_csv_can_stand_in(tmp_path: Path) -> None:
    """Its column again and again, cells that are no number left out; what is not there is refused by name."""
    file = tmp_path / "a.csv"
    file.write_text("time,x,y\n1,1.5,2\n2,nan,3\n3,2.5,\n4,-4,oops\n")
    assert trace(str(file), column="x")(1, 6).tolist() == [2.5, -4.0, 1.5, 2.5, -4.0]
    assert trace(str(file))(0, 3).tolist() == [2.0, 3.0, 2.0]
    with pytest.raises(ValueError, match="no column 'z'; there are time, x, y"):
        trace(str(file), column="z")
    with pytest.raises(ValueError, match="expected one of memory, calm, near-zero, steps, or a CSV file"):
        trace("nothing")


def test_a_trace_that_cannot_be_is_refused_before_anything_runs(tmp_path: Path, capsys: Any) -> None:
    """By both commands, in a line that says what there is; a byte order mark is no part of a name."""
    file, noise = tmp_path / "a.csv", tmp_path / "b.csv"
    file.write_bytes(b"\xef\xbb\xbfx,y,when\r\n1.5,0,one\r\n2.5,1,two\r\n")
    noise.write_bytes(b"\xff\xfe\x00\x81")
    assert trace(str(file), column="x")(0, 2).tolist() == [1.5, 2.5]
    for arguments, told in (
        (["--trace", "nothing"], "expected one of memory, calm"),
        (["--trace", str(file)], "the last column holds no number; name one by --column, there are x, y, when"),
        (["--trace", str(file), "--column", "z"], "no column 'z'; there are x, y, when"),
        (["--trace", str(noise)], "expected a CSV file in UTF-8"),
    ):
        for command in (amta_command, a2mta_command):
            with pytest.raises(SystemExit):
                command.main(arguments)
            assert told in capsys.readouterr().err, arguments
    with pytest.raises(SystemExit):
        amta_command.main(["--trace", str(file), "--column", "y", "--only", "geometric_mean"])
    assert "0 is in it, and a geometric mean takes numbers above 0 only" in capsys.readouterr().err
