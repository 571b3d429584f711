"""Rebuilds a window's closed leaves from rows written at this and lower levels, exactly as its level evictions did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sluicegate.errors import SnapshotError
from sluicegate.snapshot import portable

Row = tuple[int, int, bytes]
Combine = Callable[[bytes, bytes], bytes]


def gather(heads: Sequence[int], closed: range, rows: Iterable[Row], width: int, combine: Combine) -> list[bytes]:
    """The closed leaves at the level `len(heads)`, oldest first, from rows (level, index, little-endian partial).

    `heads`: the first leaf of each lower level when that level was evicted; earlier rows had left by then. A row of a
    higher level supersedes what lower ones make of the same leaf: it was written later. Raises SnapshotError where a
    leaf is missing.
    """
    levels = _by_level(rows, len(heads), 8 * width)
    leaves: dict[int, bytes] = {}
    for level, head in enumerate((*heads, closed.start)):
        leaves = {**_raised(leaves, combine), **levels[level]}
        leaves = {index: partial for index, partial in leaves.items() if index >= head}
    missing = [index for index in closed if index not in leaves]
    if missing:
        raise SnapshotError(
            f"leaves: {missing[0]} of level {len(heads)} is missing ({len(missing)} in all), rows are incomplete"
        )
    return [leaves[index] for index in closed]


def _by_level(rows: Iterable[Row], top: int, size: int) -> list[dict[int, bytes]]:
    levels: list[dict[int, bytes]] = [{} for _ in range(top + 1)]
    for level, index, partial in rows:
        if not 0 <= level <= top:
            raise SnapshotError(f"leaves: row ({level}, {index}), expected a level from 0 to the state's {top}")
        if len(partial) != size:
            raise SnapshotError(f"leaves: row ({level}, {index}) of {len(partial)} bytes, expected {size}")
        levels[level][index] = portable(bytes(partial))
    return levels


def _raised(leaves: dict[int, bytes], combine: Combine) -> dict[int, bytes]:
    pairs: dict[int, bytes] = {}
    for index in sorted(leaves):
        left = pairs.get(index >> 1)
        pairs[index >> 1] = leaves[index] if left is None else combine(left, leaves[index])
    return pairs
