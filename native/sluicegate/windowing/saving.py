"""A `WindowOperator` as bytes, and one that goes on from them: JSON with a checksum, so nothing in it is code.

Readings and keys must be what JSON has: numbers, texts, true, false, none, lists and tables of them; a key may be a
tuple. Summarizers and operators say for themselves what they keep (`state`, `take_up`).
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Hashable
from heapq import heapify
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from sluicegate.errors import ConfigurationError, ForeignSnapshotError, NewerSnapshotError, SnapshotError
from sluicegate.windowing.event_time import Pane
from sluicegate.windowing.partitions import Partition

if TYPE_CHECKING:
    from sluicegate.windowing.operator import WindowOperator

_MAGIC: Final = b"SGOPERATOR"
_VERSION: Final = 1
_OF_PARTITION = ("size", "updates", "updated", "newest", "base", "seen", "full", "evicting", "closed")
_OF_PANE = ("start", "end", "size", "seen", "stage", "complete", "revision", "ended", "waiting")


def snapshot(window: WindowOperator) -> bytes:
    """All that it holds. Raises ConfigurationError for readings, keys or summarizers that cannot be written down."""
    due = [(*each[:5], None if each[6] is None else each[5].panes.index(each[6])) for each in window.due_events()]
    told = {
        "spec": window.spec.to_dict(), "now": window.now, "late": window.late, "size": window.size,
        "partitions": [_partition(each) for each in window.store.by_update()], "next": window.store.following,
        "due": due, "arrived": window.arrived,
    }  # fmt: skip
    return sealed(told, _MAGIC)


def restore(window: WindowOperator, saved: bytes) -> None:
    """In place of what the window holds. Raises SnapshotError, ForeignSnapshotError of another definition."""
    told = opened(saved, _MAGIC)
    if told["spec"] != window.spec.to_dict():
        raise ForeignSnapshotError(f"snapshot: of {told['spec']}, this window is {window.spec.to_dict()}")
    try:
        partitions = [_restored(window, each) for each in told["partitions"]]
        by_number = {each.number: each for each in partitions}
        due = [(*each[:5], by_number[each[2]], _pane_of(by_number[each[2]], each[5])) for each in told["due"]]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise SnapshotError(f"snapshot: contradicts itself: {error!r}") from error
    heapify(due)
    window.store.refill(partitions, told["next"])
    window.take_over(told["now"], told["late"], told["size"], told["arrived"], due)


def sealed(told: dict[str, Any], magic: bytes) -> bytes:
    """As JSON with a version and a checksum. Raises ConfigurationError for what JSON has not."""
    try:
        text = json.dumps(told).encode()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"snapshot: {error}; readings, keys and states have to be what JSON has") from error
    saved = magic + bytes([_VERSION]) + text
    return saved + crc32(saved).to_bytes(4, "little")


def opened(saved: bytes, magic: bytes) -> dict[str, Any]:
    """What `sealed` was told. Raises SnapshotError, NewerSnapshotError of a later version."""
    if len(saved) < len(magic) + 5 or not saved.startswith(magic):
        raise SnapshotError("snapshot: of no operator of this kind")
    if crc32(saved[:-4]) != int.from_bytes(saved[-4:], "little"):
        raise SnapshotError("snapshot: damaged or cut short: its checksum is another")
    if saved[len(magic)] > _VERSION:
        raise NewerSnapshotError(f"snapshot: of version {saved[len(magic)]}, this Sluicegate reads {_VERSION}")
    told: dict[str, Any] = json.loads(saved[len(magic) + 1 : -4])
    return told


def _partition(each: Partition) -> dict[str, Any]:
    told = {name: getattr(each, name) for name in _OF_PARTITION}
    held = [(mark, as_kept(f"partition {each.key!r}", reading)) for mark, reading in each.held]
    kept = {"key": key_table(each.key), "number": each.number, "held": held}
    return told | kept | {"panes": [_pane(pane) for pane in each.panes], "summarizer": _state(each.summarizer)}


def _pane(pane: Pane) -> dict[str, Any]:
    told = {name: getattr(pane, name) for name in _OF_PANE}
    return told | {
        "entries": [(time, ordinal, as_kept(f"time {time}", reading)) for time, ordinal, reading in pane.entries],
        "given": pane.given,
        "replaces": pane.replaces,
        "summarizer": _state(pane.summarizer),
    }


def _state(summarizer: Any) -> Any:
    return None if summarizer is None else [summarizer.state()]


def _restored(window: WindowOperator, told: dict[str, Any]) -> Partition:
    partition = Partition(key_of(told["key"]), told["number"], told["updated"])
    for name in _OF_PARTITION:
        setattr(partition, name, told[name])
    partition.held = deque((mark, reading) for mark, reading in told["held"])
    partition.panes = [_restored_pane(window, each) for each in told["panes"]]
    partition.summarizer = _summarizer(window, told["summarizer"])
    return partition


def _restored_pane(window: WindowOperator, told: dict[str, Any]) -> Pane:
    pane = Pane(told["start"], told["end"])
    for name in _OF_PANE:
        setattr(pane, name, told[name])
    pane.entries = [(time, ordinal, reading) for time, ordinal, reading in told["entries"]]
    pane.given = [(start, end) for start, end in told["given"]]
    pane.replaces = tuple((start, end) for start, end in told["replaces"])
    pane.summarizer = _summarizer(window, told["summarizer"])
    return pane


def _summarizer(window: WindowOperator, told: list[Any] | None) -> Any:
    if told is None:
        return None
    if window.makes is None:
        raise ValueError("a summarizer, but this window has none")
    made = window.makes()
    made.take_up(told[0])
    return made


def _pane_of(partition: Partition, index: int | None) -> Pane | None:
    return None if index is None else partition.panes[index]


def key_table(key: Hashable) -> Any:
    """A key as JSON has it: a tuple as a list."""
    return [key_table(each) for each in key] if isinstance(key, tuple) else as_kept("key", key)


def as_kept(place: str, value: Any) -> Any:
    """A reading or a part of one, which JSON gives back as it is. Raises ConfigurationError that names the place."""
    if isinstance(value, dict):
        for name, each in value.items():
            if not isinstance(name, str):
                raise ConfigurationError(f"snapshot: {place}: {name!r} in {value!r:.80} would come back as a text")
            as_kept(f"{place}: {name!r}", each)
    elif isinstance(value, list):
        for each in value:
            as_kept(place, each)
    elif not isinstance(value, str | int | float | None):
        raise ConfigurationError(
            f"snapshot: {place}: {value!r:.80} would not come back as it is; readings have to be what JSON has: "
            "numbers, texts, lists and tables by text"
        )
    return value


def key_of(told: Any) -> Hashable:
    """The key again."""
    return tuple(key_of(each) for each in told) if isinstance(told, list) else told
