"""Gathers what a report is drawn from: windows, and what is known of the documents behind them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.dataset as ds

from sluicegate_cloud.errors import SourceError
from sluicegate_cloud.sinks import SUMMARY, windows_at


class Told(NamedTuple):
    """`place`: where it comes from; `summary`: as cloud.md has it; `windows`: rows as `read_windows` has them."""

    place: str
    summary: dict[str, Any]
    windows: ds.Dataset


def of_folder(merged: Path) -> Told:
    """What `cloud merge --out` wrote. Raises SourceError, SinkError."""
    summary = read_json(merged / SUMMARY, "give the folder that `sluicegate cloud merge --out` wrote")
    return Told(str(merged), summary, windows_at(merged))


def read_json(path: Path, remedy: str) -> dict[str, Any]:
    """An object. Raises SourceError, which says the remedy."""
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise SourceError(f"cannot read {str(path)!r}: {error.strerror}; {remedy}") from error
    except ValueError as error:
        raise SourceError(f"{str(path)!r} is no JSON ({error}); {remedy}") from error
    if not isinstance(found, dict):
        raise SourceError(f"{str(path)!r} holds no JSON object; {remedy}")
    return found
