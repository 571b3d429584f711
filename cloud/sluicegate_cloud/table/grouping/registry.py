"""A registry: a CSV file that says of devices what their documents do not, such as the site and the region.

Its values go before the tags of documents. A table keeps it: the runs that follow need no file.
"""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from sluicegate.format.tags import flaw_of_tags
from sluicegate_cloud.errors import SourceError
from sluicegate_cloud.table.versions import Store, Version

#: By device.
Registry = dict[str, dict[str, str]]
_DEVICE, _RETIRED = "device", "retired"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SCHEMA = pa.schema([(_DEVICE, pa.string()), ("tags", pa.map_(pa.string(), pa.string()))])
#: Bytes of a file, at most: a million devices of some columns.
_MOST = 256 << 20


def read(file: Path) -> Registry:
    """What a file says, by its column `device`; an empty field says nothing. Raises SourceError, naming the line."""
    try:
        if file.stat().st_size > _MOST:
            raise SourceError(f"{file}: over {_MOST >> 20} MiB: leave out columns by which nothing is rolled up")
        with file.open(newline="", encoding="utf-8-sig") as handle:
            return _read(file, csv.DictReader(handle, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"{file}: cannot be read: {error}; expected a CSV file with a column `device`") from None


def _read(file: Path, rows: csv.DictReader[str]) -> Registry:
    names = [*(rows.fieldnames or ())]
    if _DEVICE not in names or len(names) != len({*names}):
        raise SourceError(f"{file}: expected the names of columns in its first line, each once, one of them `device`")
    found: Registry = {}
    for row in rows:
        device = row.pop(_DEVICE)
        if None in row or None in row.values() or not device:
            raise SourceError(f"{file}, line {rows.line_num}: expected {len(names)} fields, a device among them")
        told = {name: value for name, value in row.items() if value}
        if flaw := flaw_of_tags(told) or _flaw_of_time(told):
            raise SourceError(f"{file}, line {rows.line_num}: {flaw}")
        if found.setdefault(device, told) is not told:
            raise SourceError(f"{file}, line {rows.line_num}: {device!r} is there twice")
    return found


def _flaw_of_time(told: dict[str, str]) -> str | None:
    try:
        retired({"": told})
    except (ValueError, OverflowError):
        return f"{_RETIRED} is {told[_RETIRED]!r}: expected a day or a time such as 2026-11-01 or 2026-11-01T12:00Z"
    return None


def retired(registry: Registry) -> dict[str, int]:
    """Of the devices that were taken down: when, in µs; UTC where it is not said. Raises ValueError, OverflowError."""
    times = {device: datetime.fromisoformat(tags[_RETIRED]) for device, tags in registry.items() if _RETIRED in tags}
    aware = {device: at if at.tzinfo else at.replace(tzinfo=UTC) for device, at in times.items()}
    return {device: (at - _EPOCH) // timedelta(microseconds=1) for device, at in aware.items()}


def write(store: Store, registry: Registry) -> str:
    """Keep it as a file of the table: its name."""
    rows = [{_DEVICE: device, "tags": [*tags.items()]} for device, tags in sorted(registry.items())]
    return store.write("registry", pa.Table.from_pylist(rows, _SCHEMA))


def of_version(store: Store, version: Version) -> Registry:
    """What a version keeps."""
    if version.registry is None:
        return {}
    table = store.read(version.registry)
    return {
        device: dict(tags) for device, tags in zip(*(table[name].to_pylist() for name in _SCHEMA.names), strict=True)
    }
