"""Rebuilds a window's closed leaves from rows written at this and lower levels, exactly as its level evictions did."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence

from sluicegate.errors import SnapshotError
from sluicegate.window.snapshot import portable

Row = tuple[int, int, bytes]
Combine = Callable[[bytes, bytes], bytes]


def gather(
    base: int, heads: Sequence[int], closed: range, rows: Iterable[Row], width: int, combine: Combine
) -> list[bytes]:
    """The closed leaves at level `base + len(heads)`, oldest first, from rows (level, index, little-endian partial).

    `heads`: the first leaf of each level from `base` on when it was evicted; earlier rows had left by then, and rows
    below `base` were all given out again. A row of a higher level supersedes what lower ones make of the same leaf:
    it was written later. Raises SnapshotError where a leaf is missing.
    """
    levels = _by_level(rows, base, len(heads), 8 * width)
    leaves: dict[int, bytes] = {}
    for written, head in zip(levels, (*heads, closed.start), strict=True):
        leaves = {**_raised(leaves, combine), **written}
        leaves = {index: partial for index, partial in leaves.items() if index >= head}
    missing = [index for index in closed if index not in leaves]
    if missing:
        place = f"leaves: {missing[0]} of level {base + len(heads)}"
        raise SnapshotError(f"{place} is missing ({len(missing)} in all), rows are incomplete")
    return [leaves[index] for index in closed]


def chain(state: bytes, closed: range, rows: Iterable[Row], width: int) -> list[bytes]:
    """The closed leaves of a window in which pairs were merged, oldest first, from rows (0, first ordinal, partial).

    `state` begins with the ordinal of the oldest. A row of a leaf that another took over lies inside that one's, whose
    row was written later: it is passed over. Raises SnapshotError where a leaf is missing.
    """
    written = _by_level(rows, 0, 0, 8 * width)[0]
    leaves: list[bytes] = []
    ordinal = int.from_bytes(state[:8], "little")
    for _ in closed:
        leaf = written.get(ordinal)
        readings = int.from_bytes(leaf[:8], sys.byteorder) if leaf is not None else 0
        if leaf is None or readings < 1:
            raise SnapshotError(f"leaves: the one from ordinal {ordinal} is missing, rows are incomplete")
        leaves.append(leaf)
        ordinal += readings
    return leaves


def _by_level(rows: Iterable[Row], base: int, levels: int, size: int) -> list[dict[int, bytes]]:
    found: list[dict[int, bytes]] = [{} for _ in range(levels + 1)]
    for level, index, partial in rows:
        if not 0 <= level <= base + levels:
            raise SnapshotError(
                f"leaves: row ({level}, {index}), expected a level from 0 to {base + levels}, the state's"
            )
        if len(partial) != size:
            raise SnapshotError(f"leaves: row ({level}, {index}) of {len(partial)} bytes, expected {size}")
        if level >= base:
            found[level - base][index] = portable(bytes(partial))
    return found


def _raised(leaves: dict[int, bytes], combine: Combine) -> dict[int, bytes]:
    pairs: dict[int, bytes] = {}
    for index in sorted(leaves):
        left = pairs.get(index >> 1)
        pairs[index >> 1] = leaves[index] if left is None else combine(left, leaves[index])
    return pairs
