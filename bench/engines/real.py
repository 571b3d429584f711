"""Real readings by time: even for a while, with gaps, repeats and a clock set back, in one batch and in small ones."""

from __future__ import annotations

import csv
import importlib.util
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from bench.engines.tables import Column, Table
from bench.engines.timing import Effort, Feed, alternated, timed
from bench.engines.windows import BY_NAME

import sluicegate as sg

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
ENGINES = ("amta", "two_stacks_lite", "soe", "daba_lite")
TAKE_LATE = ("amta",)  # of these; the others refuse times that go back
SPANS = ("1h", "24h", "7d")
SMALL = (10, 100, 1000)  # readings a call


class Stream(NamedTuple):
    """A sensor's readings, as they came."""

    name: str
    values: array[float]
    times: array[int]  # µs


def streams() -> Iterator[Stream]:
    """Of every file there is; what is NA is no reading."""
    for name in ("machine_temperature", "ambient_temperature", "road_speed"):
        yield _stream(name, [(row["timestamp"], row["value"]) for row in _rows(name)])
    stations: dict[str, list[tuple[str, str]]] = {}
    for row in _rows("weather_3stations"):
        if row["temp"] != "NA":
            stations.setdefault(row["origin"], []).append((row["time_hour"], row["temp"]))
    for station, readings in stations.items():
        yield _stream(f"weather {station}", readings)


def _rows(name: str) -> Iterator[dict[str, str]]:
    with (DATA / f"{name}.csv").open(encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _stream(name: str, readings: Sequence[tuple[str, str]]) -> Stream:
    moments = (datetime.fromisoformat(moment) for moment, _ in readings)
    times = array("q", (round(moment.replace(tzinfo=UTC).timestamp()) * 1_000_000 for moment in moments))
    return Stream(name, array("d", (float(value) for _, value in readings)), times)


def real(engines: Sequence[str], effort: Effort) -> list[Table]:
    """insert_many with results: a file in one batch, for each engine; in batches of 10 to 1,000; pandas beside."""
    if not DATA.is_dir():
        print(f"real: no readings beside this checkout ({DATA.parent.name}/{DATA.name})", file=sys.stderr)
        return []
    some = [engine for engine in ENGINES if engine in engines]
    found = list(streams())[: 3 if effort.quick else None]
    rows = [_row(stream, span, name, some, effort) for stream in found for span in SPANS for name in ("sum", "max")]
    columns = [Column("window", "window"), Column("held", "holds", ",.0f")]
    columns += [Column(engine, engine, ",.3g") for engine in some]
    columns += [Column(f"by {size}", f"{some[0]}, {size:,} a call", ",.3g") for size in SMALL]
    if _has_pandas():
        columns += [Column("pandas", "pandas", ",.3g"), Column("ratio", f"{some[0]} / pandas", ".2f")]
    notes = [
        "CPU ns a reading, into an empty window by time, a result after each reading, taking turns, least of the "
        "rounds: all of a file in one call, or so many a call. Holds: half of the time at least so many. pandas: "
        "`rolling`, with its times sorted where they go back. Readings: "
        + ", ".join(f"{stream.name} {len(stream.values):,}" for stream in found)
        + "."
    ]
    return [Table("real", "Real readings", columns, rows, notes)]


def _row(stream: Stream, span: str, name: str, engines: Sequence[str], effort: Effort) -> dict[str, Any]:
    subjects: dict[str, Feed] = {}
    is_ordered = all(before <= after for before, after in pairwise(stream.times))
    for engine in engines:
        if (engine != "soe" or name == "sum") and (engine in TAKE_LATE or is_ordered):
            subjects[engine] = _passes(stream, span, name, engine, len(stream.values))
    for size in SMALL:
        subjects[f"by {size}"] = _passes(stream, span, name, engines[0], size)
    if _has_pandas():
        subjects["pandas"] = _pandas(stream, span, name)
    counts = dict.fromkeys(subjects, len(stream.values))
    measured = alternated(subjects, effort._replace(rounds=1 if effort.most < 1000 else 8 * effort.rounds), counts)
    row = {"window": f"{stream.name}, {span}, {name}", "held": _held(stream, span)} | measured
    return row | ({"ratio": measured[engines[0]] / measured["pandas"]} if _has_pandas() else {})


def _passes(stream: Stream, span: str, name: str, engine: str, size: int) -> Feed:
    """All of a stream, so many readings a call, through a window that was empty."""
    places = range(0, len(stream.values), size)
    parts = [(stream.values[i : i + size], stream.times[i : i + size]) for i in places]

    def feed(count: int) -> float:
        window = sg.Window(BY_NAME[name].aggregate(), policy=sg.policies.time(span), engine=engine)

        def take() -> None:
            for values, times in parts:
                window.insert_many(values, times)

        return timed(take)

    return feed


def _held(stream: Stream, span: str) -> float:
    window = sg.Window(sg.count(), policy=sg.policies.time(span))
    held = sorted(window.insert_many(stream.values, stream.times)["count"])
    return held[len(held) // 2]


def _pandas(stream: Stream, span: str, name: str) -> Feed:
    import pandas as pd

    index = pd.to_datetime(array("q", sorted(stream.times)), unit="us")
    rolling = pd.Series(stream.values, index=index).rolling(pd.Timedelta(span))
    return lambda count: timed(lambda: getattr(rolling, name)())


def _has_pandas() -> bool:
    return importlib.util.find_spec("pandas") is not None


COMMANDS: dict[str, Callable[[Sequence[str], Effort], list[Table]]] = {"real": real}
