"""What a window has of some devices, as a row that a table keeps and adds to what others have; and back. No Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from sluicegate_cloud.extras.piece import Held, Piece, Share
from sluicegate_cloud.extras.placed import Candidate

_PARTS = pa.list_(pa.binary())
#: `told`: all but what buckets carry, JSON; `inside`, `cut`: what they carry, by place, of what is there.
STORED = pa.schema([("told", pa.string()), ("inside", _PARTS), ("cut", _PARTS)])


def to_row(share: Share) -> dict[str, Any]:
    """A row of STORED. What only tells readings of one device apart is left out."""
    some = {name: getattr(share, name) for name in ("inside", "cut")}
    told = [share.start, share.end, *(piece and _told(piece) for piece in some.values())]
    told += [share.least, share.most, share.held, share.placed]
    return {"told": json.dumps(told)} | {name: piece and piece.parts for name, piece in some.items()}


def of_row(row: Mapping[str, Any]) -> Share:
    """What `to_row` made a row of."""
    start, end, inside, cut, least, most, held, placed = json.loads(row["told"])
    pieces = _piece(inside, row["inside"]), _piece(cut, row["cut"])
    offered = tuple(tuple(map(_candidate, of)) for of in placed)
    return Share(start, end, pieces[0], pieces[1], least, most, held and Held(*held), offered)


def _told(piece: Piece) -> list[Any]:
    return [*piece[: Piece._fields.index("parts")]]


def _piece(told: list[Any] | None, parts: list[bytes | None] | None) -> Piece | None:
    if told is None or parts is None:
        return None
    t_first, t_last, first, *rest = told
    return Piece._make((t_first, t_last, tuple(first), *rest, tuple(parts), None, ()))


def _candidate(told: list[Any]) -> Candidate:
    *known, line = told
    return Candidate._make((*known, None if line is None else tuple(line)))
