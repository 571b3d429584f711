"""When the devices of each group were heard of last: by this its windows say how many are silent in them.

A version has a file of it, a row for each frame of a group in which a device's last reading lies. By the file of the
version before a run knows which windows say another number now, though none of their readings changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluicegate_cloud.grid import Ints
from sluicegate_cloud.merging.silence import LastHeard
from sluicegate_cloud.table.grouping.groups import groups_of, label_of
from sluicegate_cloud.table.ranges import LAST, Ranges, merged
from sluicegate_cloud.table.versions import Definition, Store

#: So many `devices` of a group have their last reading in a frame, less those that are retired from the next one on.
HEARD = pa.schema([("group", pa.string()), ("frame", pa.int64()), ("devices", pa.int64())])


def heard(
    store: Store, indexes: Sequence[dict[str, Any]], definition: Definition, retired_us: Mapping[str, int]
) -> pa.Table:
    """Rows of HEARD, by group and frame, of the streams of all shards; `retired_us`: of devices, when they were."""
    names = ["device", "stream", "last_us", "tags"]
    tables = [store.read(index["streams"], names) for index in indexes if index["streams"]]
    if not tables:
        return HEARD.empty_table()
    table = pa.concat_tables(tables)
    table = table.filter(pc.is_valid(table["last_us"]))
    groups = _groups(table, definition)
    row = pa.array(np.repeat(np.arange(table.num_rows), len(definition.by) + 1))
    frame = definition.grid.frame_of(table["last_us"].to_numpy())
    every = pa.table({"group": groups, "device": table["device"].take(row), "frame": pa.array(frame).take(row)})
    last = every.group_by(["group", "device"]).aggregate([("frame", "max")])  # of several keys it may have several
    last = last.append_column("devices", pa.array(np.ones(last.num_rows, np.int64)))
    gone = _retired(last, definition, retired_us)
    told = pa.concat_tables([last, gone]).group_by(["group", "frame_max"]).aggregate([("devices", "sum")])
    return _sorted(pa.table({"group": told["group"], "frame": told["frame_max"], "devices": told["devices_sum"]}))


def _retired(last: pa.Table, definition: Definition, retired_us: Mapping[str, int]) -> pa.Table:
    """Of the devices that are retired the last frame in whose windows they are silent; `last` as `heard` has it."""
    some = last.filter(pc.is_in(last["device"], value_set=pa.array([*retired_us], pa.string())))
    times = np.array([retired_us[device] for device in some["device"].to_pylist()], np.int64)
    frame = np.maximum(definition.grid.frame_of(times - 1), some["frame_max"].to_numpy())
    less = pa.array(np.full(some.num_rows, -1))
    return some.set_column(2, "frame_max", pa.array(frame)).set_column(3, "devices", less)


def _groups(table: pa.Table, definition: Definition) -> pa.Array:
    """Of each row all its groups, one after the other."""
    if not definition.by:
        streams = table["stream"].combine_chunks().dictionary_encode()
        names = [group for stream in streams.dictionary.to_pylist() for group in groups_of((), "", stream)]
        return pa.array(names, pa.string()).take(streams.indices)
    rows = zip(*(table[name].to_pylist() for name in ("device", "stream", "tags")), strict=True)
    told = (groups_of(definition.by, device, stream, dict(tags or [])) for device, stream, tags in rows)
    return pa.array([group for groups in told for group in groups], pa.string())


def _sorted(table: pa.Table) -> pa.Table:
    return table.select(HEARD.names).cast(HEARD).sort_by([("group", "ascending"), ("frame", "ascending")])


def changed(before: pa.Table, now: pa.Table) -> dict[str, Ranges]:
    """By label, the windows of groups in which another number of devices is silent now; both of `heard`."""
    less = before.set_column(2, "devices", pc.negate(before["devices"]))
    steps = pa.concat_tables([less, now]).group_by(["group", "frame"]).aggregate([("devices", "sum")])
    steps = _sorted(steps.rename_columns({"devices_sum": "devices"}).filter(pc.not_equal(steps["devices_sum"], 0)))
    if not steps.num_rows:
        return {}
    group = steps["group"].combine_chunks().dictionary_encode()
    code, frame = np.asarray(group.indices), steps["frame"].to_numpy()
    begins = np.flatnonzero(np.concatenate(([True], np.diff(code) != 0)))
    more = np.cumsum(steps["devices"].to_numpy())
    more -= np.repeat(np.concatenate(([0], more[begins[1:] - 1])), np.diff(np.append(begins, code.size)))
    upto = np.append(frame[1:], LAST)
    upto[np.append(begins[1:] - 1, code.size - 1)] = LAST
    labels = [label_of(name) for name in group.dictionary.to_pylist()]
    out: dict[str, list[tuple[int, int]]] = {}
    for at in np.flatnonzero(more):
        out.setdefault(labels[code[at]], []).append((int(frame[at]) + 1, int(upto[at])))
    return {label: merged(ranges) for label, ranges in out.items()}


class SilentDevices:
    """How many devices are silent in windows of some groups."""

    def __init__(self, table: pa.Table) -> None:
        """`table`: rows of `heard`, of all these groups."""
        group = table["group"].combine_chunks().dictionary_encode()
        begins = np.flatnonzero(np.diff(np.asarray(group.indices), prepend=-1))
        frames, devices = (np.split(table[name].to_numpy(), begins[1:]) for name in ("frame", "devices"))
        names = group.dictionary.to_pylist()
        self._heard = {name: LastHeard.of(*of) for name, *of in zip(names, frames, devices, strict=bool(names))}

    def of(self, groups: Sequence[str], code: Ints, frame: Ints) -> Ints:
        """Of each window: `code`, ascending, says of which of `groups` it is, and `frame` where it begins."""
        out = np.zeros(frame.size, np.int64)
        edges = np.append(np.flatnonzero(np.diff(code, prepend=-1)), code.size)
        for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            known = self._heard.get(groups[code[begin]])
            if known is not None:  # of a span a device may have moved to another group
                out[begin:end] = known.silent(frame[begin:end])
        return out
