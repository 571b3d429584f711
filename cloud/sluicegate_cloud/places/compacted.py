"""Which files of a folder hold documents that were compacted: the newest list counts, what it does not name does not.

PLACE/sluicegate-compacted/00000003.json names files in PLACE/documents, rows of `documents.DOCUMENTS`, and lists of the
chunk files that these rows come of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from sluicegate_cloud.errors import SourceError
from sluicegate_cloud.places.contract import Place

FOLDER, FORMAT = "sluicegate-compacted", 1
#: How a file of compacted documents ends: `decode_files` takes its rows as they are.
ENDING = ".parquet"
_NAME = re.compile(rf"(?:^|/){FOLDER}/\d{{8}}\.json$")


@dataclass(frozen=True)
class Compacted:
    """`number`: of runs; `files` of documents; `sources`: lists of the chunk files that they have."""

    number: int = 0
    files: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


def load(place: Place) -> Compacted:
    """The newest, nothing where there is none. Raises SourceError."""
    names = sorted(name for name in place.names(FOLDER) if _NAME.search(name))
    if not names:
        return Compacted()
    told = json.loads(place.read(names[-1]))
    if told["format"] != FORMAT:
        raise SourceError(f"{place.root}/{names[-1]} is of another format than {FORMAT}: update Sluicegate")
    return Compacted(told["number"], tuple(told["files"]), tuple(told["sources"]))


def commit(place: Place, now: Compacted) -> None:
    """Make it the newest. Raises FileExistsError where another run was first."""
    told = {"format": FORMAT, "number": now.number, "files": now.files, "sources": now.sources}
    place.create(f"{FOLDER}/{now.number:08d}.json", json.dumps(told).encode())


def roots(names: Iterable[str]) -> set[str]:
    """Of paths or URLs, the places that hold compacted documents."""
    return {name.rpartition(f"{FOLDER}/")[0].rstrip("/") for name in names if _NAME.search(name)}
