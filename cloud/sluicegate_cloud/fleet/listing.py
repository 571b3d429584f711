"""The Parquet files that a path or a URI stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from sluicegate_cloud.errors import SourceError


def listed(paths: Sequence[str | Path]) -> list[str]:
    """Every Parquet file at `paths`, absolute or as URIs; of folders those that Spark reads. Raises SourceError."""
    out = [name for path in paths for name in _files(str(path))]
    if not out:
        raise SourceError(f"there are no Parquet files in {', '.join(map(str, paths)) or 'an empty list of paths'}")
    return out


def _files(path: str) -> Iterator[str]:
    scheme = "" if "://" not in path else path.partition("://")[0] + "://"
    at, place = placed(path)
    info = at.get_file_info(place)
    if info.type == fs.FileType.File:
        yield path if scheme else place
        return
    if info.type != fs.FileType.Directory:
        raise SourceError(f"there is nothing at {path}: name a Parquet file or a folder of such")
    for one in sorted(at.get_file_info(fs.FileSelector(place, recursive=True)), key=lambda one: str(one.path)):
        inner = str(one.path)[len(place) :].strip("/").split("/")
        if one.is_file and not any(name.startswith(("_", ".")) for name in inner):
            yield scheme + one.path


def placed(path: str) -> tuple[fs.FileSystem, str]:
    """The file system that a path or URI is of, and the path there. Raises SourceError."""
    try:
        at, place = fs.FileSystem.from_uri(path if "://" in path else Path(path).absolute().as_uri())
    except (pa.ArrowInvalid, OSError) as error:
        raise SourceError(f"{path} cannot be read: {error}") from error
    return at, str(place)
