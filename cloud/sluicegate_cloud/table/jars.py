"""Jars of Spark's that were tried with this project, each known by its SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from sluicegate_cloud.errors import SinkError


def checked(folder: Path, jars: Mapping[str, str], what: str) -> str:
    """The setting `spark.jars` for `jars` in a folder. Raises SinkError where they are not there, or are others.

    `what`: the word by which deploy/spark/jars.sh knows them.
    """
    for name, wanted in jars.items():
        if not (folder / name).is_file():
            raise SinkError(f"{folder} has no {name}: deploy/spark/jars.sh {what} {folder} gets it from Maven")
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != wanted:
            raise SinkError(f"{folder / name} is not the file that was tried (SHA-256): remove it and get it again")
    return ",".join(str((folder / name).absolute()) for name in jars)
