"""Finds the documents that a table has not read yet: files are known by path, size and time."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate_cloud.places.bucket import Object
from sluicegate_cloud.table.versions import Store

#: Lists of what was read beyond which a run makes one of them all.
MOST_LISTS = 16
_SEEN = pa.schema([("path", pa.string()), ("size", pa.int64()), ("changed_ns", pa.int64())])


def listed(files: Sequence[str], objects: Mapping[str, Object] | None = None) -> pa.Table:
    """The files as they are now; those that are gone meanwhile are left out. Of `objects` it is known already."""
    rows: list[tuple[str, int, int]] = []
    for file in files:
        if objects and file in objects:
            rows.append(objects[file])
            continue
        try:
            told = Path(file).stat()
        except FileNotFoundError:
            continue
        rows.append((file, told.st_size, told.st_mtime_ns))
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    return pa.table([pa.array(of, kind) for of, kind in zip(columns, _SEEN.types, strict=True)], schema=_SEEN)


def unseen(store: Store, lists: Sequence[str], files: pa.Table) -> pa.Table:
    """Those of `files` that none of the lists has, or that changed since."""
    if not lists or not files.num_rows:
        return files
    return files.filter(pc.invert(known(store, lists, files)))


def known(store: Store, lists: Sequence[str], files: pa.Table) -> pa.Array:
    """Which of `files` the lists have as they are now."""
    return among(files, pa.concat_tables([_SEEN.empty_table(), *(store.read(name) for name in lists)]))


def among(files: pa.Table, there: pa.Table) -> pa.Array:
    """Which of `files` are `there` too, with the same size and time."""
    return pc.is_in(_spelled(files), value_set=_spelled(there))


def _spelled(files: pa.Table) -> pa.Array:
    """Path, size and time of each as one text."""
    columns = [files[name].cast(pa.string()).combine_chunks() for name in _SEEN.names]
    return pc.binary_join_element_wise(*columns, "\n")


def noted(
    store: Store, lists: tuple[str, ...], read: pa.Table, files: pa.Table, places: Sequence[str]
) -> tuple[str, ...]:  # fmt: skip
    """The lists of what is read once `read` is: a new one beside those there are, or one of all.

    `files`: all that there are at `places`: what is there no longer leaves the one list, for nobody asks for it.
    """
    if not read.num_rows:
        return lists
    if len(lists) < MOST_LISTS:
        return (*lists, store.write("sources", read))
    known = pa.concat_tables([*(store.read(name) for name in lists), read])
    last = np.unique(known["path"].to_numpy(zero_copy_only=False)[::-1], return_index=True)[1]
    known = known.take(pa.array(known.num_rows - 1 - last))
    return (store.write("sources", known.filter(pa.array(~_gone(known, files, places)))),)


def _gone(known: pa.Table, files: pa.Table, places: Sequence[str]) -> Any:
    """Which lie below one of the places, and are none of the files."""
    below = np.zeros(known.num_rows, bool)
    for place in places:
        root = os.path.realpath(place) if Path(place).is_dir() else place
        below |= np.asarray(pc.starts_with(known["path"], f"{root.rstrip('/')}/"))
    return below & ~np.asarray(pc.is_in(known["path"], value_set=files["path"].combine_chunks()))
