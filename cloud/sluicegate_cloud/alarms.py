"""What somebody must look into: two boards that speak as one device, told by their keys or by what they say.

A copied card gives two boards one name. Since its first start each board has a key of its own, which stands in every
document; where the copy was noticed each also has an incarnation of its own, and all readings of both are merged. Where
documents of one incarnation contradict each other some readings are left out: they are missing, and named here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

from sluicegate_cloud.schema import REFUSED

TWO_KEYS, TWO_CONTENTS, TWO_BOARDS = "two_keys", "two_contents", "two_boards"
#: A stream has too many windows (`fleet.sparse`).
SET_ASIDE = "set_aside"
#: Alarms named in a summary; all are counted.
NAMED = 100
Row = dict[str, Any]


def alarms(tallied: Iterable[Row]) -> list[Row]:
    """Of the rows of `quality.tally`: `kind`, `device`, `stream`, `incarnations`, `keys`, `ids`, `readings`, `text`.

    `readings`: how many are in doubt: left out where contents contradict each other, else merged and of a second board.
    """
    rows = [row for row in tallied if row["fate"] != REFUSED]
    found = [*_two_contents(rows), *_two_keys(rows)]
    return sorted(found, key=lambda alarm: (alarm["device"], alarm["stream"], alarm["kind"]))


def set_aside(tallied: Iterable[Row], aside: Mapping[tuple[str, str], str]) -> list[Row]:
    """Of the rows of `quality.tally` an alarm for each stream of which something is set aside; `aside`: why.

    `readings`: those left out so.
    """
    refused = [row for row in tallied if row["fate"] == REFUSED and (row["device"], row["stream"]) in aside]
    return [
        _alarm(SET_ASIDE, device, stream, mine, mine, sum(row["readings"] for row in mine), aside[device, stream])
        for (device, stream), mine in sorted(_by(refused, "device", "stream"))
    ]


def _two_contents(rows: list[Row]) -> Iterator[Row]:
    """Readings left out that no document in use has."""
    for (device, stream, _), mine in _by(rows, "device", "stream", "incarnation"):
        lost = [row for row in mine if row["lost"] > 0]
        if lost:
            readings = sum(row["lost"] for row in lost)
            text = f"two contents under one incarnation: {readings:,} readings are left out, and count as missing"
            yield _alarm(TWO_CONTENTS, device, stream, mine, lost, readings, text)


def _two_keys(rows: list[Row]) -> Iterator[Row]:
    """Keys of one stream that took readings in the same time: one set up anew has two, one after the other."""
    for (device, stream), mine in _by([row for row in rows if row["key"]], "device", "stream"):
        boards = {key[0]: theirs for key, theirs in _by(mine, "key")}
        together = {key for a, b in combinations(boards, 2) if _met(boards[a], boards[b]) for key in (a, b)}
        if together:
            both = [row for key in sorted(together) for row in boards[key]]
            kind = TWO_KEYS if len({row["incarnation"] for row in both}) == 1 else TWO_BOARDS
            readings = sorted(sum(row["readings"] for row in boards[key]) for key in together)
            text = f"{len(together)} boards speak as one device; all they sent is merged: give each a name of its own"
            yield _alarm(kind, device, stream, both, both, sum(readings[:-1]), text)


def _met(one: list[Row], other: list[Row]) -> bool:
    """Whether both took readings in one stretch of time, or both wrote in one incarnation."""
    if {row["incarnation"] for row in one} & {row["incarnation"] for row in other}:
        return True
    (a, b), (c, d) = ((min(r["first_us"] for r in of), max(r["last_us"] for r in of)) for of in (one, other))
    return bool(a <= d and c <= b)


def _alarm(kind: str, device: str, stream: str, rows: list[Row], named: list[Row], readings: int, text: str) -> Row:
    return {
        "kind": kind,
        "device": device,
        "stream": stream,
        "incarnations": sorted({row["incarnation"] for row in rows if row["incarnation"]}),
        "keys": sorted({row["key"] for row in rows if row["key"]}),
        "ids": sorted({row["id"] for row in named if row["id"]})[:10],
        "readings": readings,
        "text": text,
    }


def _by(rows: Iterable[Row], *names: str) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    """The rows told apart by some of their fields."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    yield from found.items()
