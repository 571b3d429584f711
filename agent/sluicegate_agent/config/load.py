"""From a TOML file to a whole, checked `Config`, or to one `ConfigError` with every finding."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import structs
from msgspec.structs import FieldInfo, fields

from sluicegate_agent.config.checks import check
from sluicegate_agent.config.errors import ConfigError, Problem
from sluicegate_agent.config.files import Files, Filled, plain
from sluicegate_agent.config.formats import payload_of
from sluicegate_agent.config.inputs import MQTT, input_of
from sluicegate_agent.config.model import Config
from sluicegate_agent.config.profiles import with_profile
from sluicegate_agent.config.specified import as_policies, as_written, unsaid
from sluicegate_agent.config.table import Table
from sluicegate_agent.config.units import Duration, Pace, Share, Size
from sluicegate_agent.naming.plugins import UnknownName

_STEP = re.compile(r"([^.\[\]]+)(?:\[(\d+)\])?")
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text in quotes",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


def load(path: str | Path) -> Config:
    """Read, convert and cross-check a configuration file, and those of `conf.d` beside it. Raises ConfigError.

    Opens no connection, creates nothing.
    """
    files = Files(Path(path))
    try:
        return build(files.raw, files.file)
    except ConfigError as error:
        raise ConfigError(files.file, [files.placed(problem) for problem in error.problems]) from None


def build(raw: dict[str, Any], file: Path) -> Config:
    """The same from parsed TOML; relative paths are taken from the folder of `file`."""
    reader = _Reader(file.absolute().parent)
    config: Config | None = reader.table(Config, as_policies(with_profile(raw)), "")
    reader.problems.extend(unsaid(raw))
    if config is not None:
        config = _implied(_with_options(config, raw, reader))
    if config is None or reader.problems:
        raise ConfigError(file, [as_written(problem, raw) for problem in reader.problems])
    problems = check(config)
    if problems:
        raise ConfigError(file, [_as_written(as_written(problem, raw), raw) for problem in problems])
    return config


def read_as(kind: type[Table], raw: dict[str, Any], file: Path) -> Any:
    """Parsed TOML as a table of another program's file, converted with the same words. Raises ConfigError."""
    reader = _Reader(file.absolute().parent)
    found = reader.table(kind, raw, "")
    if reader.problems:
        raise ConfigError(file, reader.problems)
    return found


def _with_options(config: Config, raw: dict[str, Any], reader: _Reader) -> Config:
    """With the options of each input as its own table has them; an unknown input is the check's finding."""
    sources = []
    for number, source in enumerate(config.sources, 1):
        at = f"source[{number}].options"
        written = raw["source"][number - 1].get("options", {})
        kind = None
        with contextlib.suppress(UnknownName):
            kind = None if source.input == MQTT else input_of(source.input).options
            if kind is None and written:
                reader.problems.append(Problem(at, None, f"the input {source.input} has none: leave them out"))
        if kind is not None:
            source = structs.replace(source, options=reader.table(kind, written, at))
        sources.append(source)
    return structs.replace(config, sources=tuple(sources))


def _implied(config: Config) -> Config:
    """With what the format of each source says of what is left out; an unknown one is the check's finding."""
    sources = []
    for source in config.sources:
        with contextlib.suppress(UnknownName):
            source = payload_of(source.format).implied(source)
        if source.resolution is None and _sends_again(source.input):
            source = structs.replace(source, resolution=Duration(0))
        sources.append(source)
    return structs.replace(config, sources=tuple(sources))


def _sends_again(name: str) -> bool:
    """Whether messages may come again without a word that they do."""
    try:
        return name == "http" or (name != MQTT and input_of(name).repeats)
    except UnknownName:
        return False


def _as_written(problem: Problem, raw: Any) -> Problem:
    """The finding with the value as it stands in the file ("3us", not 3), where there is one at its key."""
    for name, number in _STEP.findall(problem.key):
        raw = raw.get(name) if isinstance(raw, dict) else None
        raw = raw[int(number) - 1] if number and isinstance(raw, list) else raw
    is_plain = isinstance(raw, str | int | float) and problem.value is not None
    return Problem(problem.key, _shown(raw), problem.remedy) if is_plain else problem


def _shown(raw: Any) -> Any:
    """A value as it is written: what a variable holds is nobody's business."""
    return raw.written if isinstance(raw, Filled) else raw


class _Reader:
    """Converts table by table, so that every finding has its full key and one mistake does not hide the next."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: list[Problem] = []

    def table(self, kind: type[Table], raw: Any, at: str) -> Any:
        if not isinstance(raw, dict):
            self.problems.append(Problem(at, raw, f"expected a table: write it as [{at}]"))
            return None
        known = {info.encode_name: info for info in fields(kind)}
        self._unknown(raw, known, at)
        values = {}
        for key, info in known.items():
            if key in raw:
                values[info.name] = self.value(info.type, raw[key], _join(at, key))
            elif info.required:
                self.problems.append(Problem(_join(at, key), None, f"is required{_example(key)}"))
        return None if self.problems else kind(**values)

    def _unknown(self, raw: dict[str, Any], known: dict[str, FieldInfo], at: str) -> None:
        for key in raw:
            if key not in known:
                import difflib  # only where there is something to say

                near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
                remedy = f"did you mean `{near[0]}`?" if near else f"known here: {', '.join(known)}"
                shown = None if isinstance(raw[key], dict | list) else raw[key]
                what = "table" if isinstance(raw[key], dict | list) else "key"
                self.problems.append(Problem(_join(at, key), shown, f"there is no such {what}; {remedy}"))

    def value(self, kind: Any, raw: Any, at: str) -> Any:
        nested = next(_tables(kind), None)
        if nested is None:
            return self._plain(kind, raw, at)
        if get_origin(kind) is dict and isinstance(raw, dict):
            return {name: self.table(nested, item, f"{at}.{name}") for name, item in raw.items()}
        if get_origin(kind) is not tuple:
            return self.table(nested, raw, at)
        if not isinstance(raw, list):
            self.problems.append(Problem(at, None, f"expected a list of tables: write [[{at}]] before each"))
            return ()
        return tuple(self.table(nested, item, f"{at}[{number}]") for number, item in enumerate(raw, 1))

    def _plain(self, kind: Any, raw: Any, at: str) -> Any:
        parsers = {Duration: Duration.parse, Pace: Pace.parse, Size: Size.parse, Share: Share.parse, Path: self._path}
        parse = next((parsers[part] for part in (kind, *get_args(kind)) if part in parsers), None)
        value, strict = plain(raw), not isinstance(raw, Filled)
        try:
            return msgspec.convert(value, kind, strict=strict) if parse is None else parse(value)
        except msgspec.ValidationError as error:
            remedy = _choices(kind) or _plainly(str(error))
            self.problems.append(Problem(at, _shown(raw), remedy))
        except ValueError as error:
            self.problems.append(Problem(at, _shown(raw), str(error)))
        return None

    def _path(self, raw: Any) -> Path:
        if not isinstance(raw, str) or not raw or "\0" in raw:
            raise ValueError('expected the path of a file or folder, such as "/var/lib/sluicegate"')
        return self.folder / Path(raw).expanduser()


def _tables(kind: Any) -> Iterator[type[Table]]:
    for part in (kind, *get_args(kind)):
        if isinstance(part, type) and issubclass(part, Table):
            yield part


def _plainly(message: str) -> str:
    """msgspec's message in the words of the file: "expected a whole number, got a text in quotes"."""
    message = message.partition(" - at ")[0].replace(" | null", "").replace("`", "")
    message = re.sub(r"\b(int|float|str|bool|array|object)\b", lambda match: _TYPES[match[1]], message)
    return (message[0].lower() + message[1:]).replace(" | ", " or ")


def _choices(kind: Any) -> str:
    """What a key with a few allowed values expects; empty for another key."""
    literal = next((part for part in (kind, *get_args(kind)) if get_origin(part) is Literal), None)
    named = [f'"{choice}"' if isinstance(choice, str) else str(choice) for choice in get_args(literal)]
    whole = [_TYPES["int"]] if int in get_args(kind) else []
    return "expected " + " or ".join(whole + named) if named else ""


def _join(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key


_EXAMPLES = {
    "device": '; write [device] with id = "…"',
    "state": '; write [state] with path = "…"',
    "source": "; write [[source]] with the topic to subscribe to",
    "id": ': the name of this device, such as id = "greenhouse-1"',
    "path": ': the folder for everything durable, such as path = "/var/lib/sluicegate"',
    "topic": ': the topic to subscribe to, such as topic = "weather/ewr"',
    "streams": ': which values become streams, such as streams = { temp = "temp" }',
    "name": ': what its results are called, such as name = "mean_24h"',
}


def _example(key: str) -> str:
    return _EXAMPLES.get(key, "")
