"""A `[[window]]` table: what a window is and what is asked of which streams, as the agent's TOML and the cloud have it.

What a window is (`WindowSpec`) means the same everywhere. How a board keeps it (`KEPT`) is the board's business: others
pass over it.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sluicegate.errors import ConfigurationError
from sluicegate.windowing.spec import WindowSpec

KEPT = ("buckets", "merge", "sum_like", "max_like", "hop", "shares", "was", "cloud")
_LARGEST = 1 << 20


class WindowDefinition(NamedTuple):
    """A window by name: `aggregates` of each of `streams` ("*": all)."""

    name: str
    spec: WindowSpec
    aggregates: tuple[str, ...] = ("mean",)
    streams: tuple[str, ...] = ("*",)

    def covers(self, stream: str) -> bool:
        """Whether it is asked of the stream."""
        return "*" in self.streams or stream in self.streams

    def explain(self) -> str:
        """In plain words."""
        named = [f"the {each.replace('_', ' ')}" for each in self.aggregates]
        asked = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
        of = "" if "*" in self.streams else f" of {', '.join(self.streams)}"
        return f"{self.name}: {self.spec.explain(asked + of)}"


def from_table(table: Any, place: str) -> WindowDefinition:
    """What a table says. Raises ConfigurationError that begins with the place and the key."""
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{place}: {table!r}, expected a table")
    own = {"name", "aggregate", "streams", *KEPT}
    name = table.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"{place}.name: {name!r}, expected what its results are called")
    try:
        spec = WindowSpec.from_dict({key: value for key, value in table.items() if key not in own})
    except ConfigurationError as error:
        raise ConfigurationError(f"{place}.{str(error).removeprefix('window.')}") from error
    aggregates = _texts(table.get("aggregate", "mean"), f"{place}.aggregate")
    return WindowDefinition(name, spec, aggregates, _texts(table.get("streams", ["*"]), f"{place}.streams"))


def _texts(given: Any, place: str) -> tuple[str, ...]:
    found = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else ()
    if not found or not all(isinstance(each, str) and each for each in found) or len(set(found)) < len(found):
        raise ConfigurationError(f"{place}: {given!r}, expected a name or a list of different names")
    return found


def read(file: Path) -> list[WindowDefinition]:
    """The `[[window]]` tables of a TOML file, such as an agent's, or of JSON alike. Raises ConfigurationError."""
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise ConfigurationError(f"{file}: larger than 1 MiB: these are no definitions of windows")
        tables = (json.loads if file.suffix == ".json" else tomllib.loads)(data.decode()).get("window", [])
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}") from error
    except (ValueError, AttributeError) as error:
        raise ConfigurationError(f"{file}: is not {'JSON' if file.suffix == '.json' else 'TOML'}: {error}") from error
    if not isinstance(tables, list) or not tables:
        raise ConfigurationError(f"{file}: no windows, expected one [[window]] or more")
    found = [from_table(table, f"{file}: window[{i}]") for i, table in enumerate(tables, 1)]
    if twice := [each.name for i, each in enumerate(found) if each.name in {other.name for other in found[:i]}]:
        raise ConfigurationError(f"{file}: window {twice[0]!r} is there twice: its rows could not be told apart")
    return found
