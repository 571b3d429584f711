"""A configuration as it lies on disk: one TOML file, and those of the folder `conf.d` beside it in the order of names.

Tables are put together key by key, lists of tables one after the other; a key that stands in two files is refused. In
texts `${NAME}` stands for an environment variable; one that is not set is refused, `$${` is a plain `${`.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sluicegate_agent.config.errors import ConfigError, Problem

FOLDER = "conf.d"
_LARGEST_FILE, _MOST_FILES = 1 << 20, 1000
_VARIABLE = re.compile(r"\$(\$\{)|\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_STEP = re.compile(r"([^.\[\]]+)(?:\[(\d+)\])?")


class Filled(str):
    """A text in which environment variables stood; `written` is what stands in the file, and what is shown."""

    written: str

    def __new__(cls, text: str, written: str) -> Filled:
        filled = super().__new__(cls, text)
        filled.written = written
        return filled


class Files:
    """All that was read: `raw` is the whole, and each of its lists' tables is known by its file."""

    def __init__(self, file: Path, environment: Mapping[str, str] = os.environ) -> None:
        """Read and put together. Raises ConfigError, which names the file."""
        self.file = file
        self._owners: dict[str, tuple[Path, int]] = {}
        self.raw: dict[str, Any] = {}
        for part in (file, *_parts(file)):
            found = parse(part)
            problems = [*_missing(found, environment, "")]
            if problems:
                raise ConfigError(part, problems)
            self._merge(part, self.raw, _filled(found, environment), "")

    def _merge(self, part: Path, into: dict[str, Any], more: dict[str, Any], at: str) -> None:
        for key, value in more.items():
            place = f"{at}.{key}" if at else key
            before = into.get(key)
            if isinstance(before, dict) and isinstance(value, dict):
                self._merge(part, before, value, place)
            elif isinstance(value, list) and _are_tables(value) and (before is None or _are_tables(before)):
                for number, table in enumerate(value, 1):
                    into.setdefault(key, []).append(table)
                    self._owners[f"{place}[{len(into[key])}]"] = part, number
            elif before is not None:
                owner = self._owners.get(place, (self.file, 0))[0]
                raise ConfigError(part, [Problem(place, None, f"{owner.name} has it already: write it in one place")])
            else:
                into[key] = value
                self._note(part, place, value)

    def _note(self, part: Path, place: str, value: Any) -> None:
        self._owners[place] = part, 0
        for key, inner in value.items() if isinstance(value, dict) else ():
            self._note(part, f"{place}.{key}", inner)

    def placed(self, problem: Problem) -> Problem:
        """A finding with the file that its key stands in, where that is another one; its tables counted as there."""
        steps = _STEP.findall(problem.key)
        for length in range(len(steps), 0, -1):
            name = ".".join(f"{step}[{number}]" if number else step for step, number in steps[:length])
            if name in self._owners and self._owners[name][0] != self.file:
                part, number = self._owners[name]
                key = f"{name.rpartition('[')[0]}[{number}]{problem.key[len(name) :]}" if number else problem.key
                return Problem(f"{FOLDER}/{part.name}: {key}", problem.value, problem.remedy)
        return problem


def parse(file: Path) -> dict[str, Any]:
    """One TOML file. Raises ConfigError."""
    try:
        with file.open("rb") as handle:
            data = handle.read(_LARGEST_FILE + 1)
        if len(data) > _LARGEST_FILE:
            raise ConfigError(file, [Problem("file", None, "is larger than 1 MiB: this is no agent's configuration")])
        return tomllib.loads(data.decode())
    except FileNotFoundError:
        remedy = "there is no such file; an agent's is written by `sluicegate init`, or printed by `check --sample`"
        raise ConfigError(file, [Problem("file", None, remedy)]) from None
    except OSError as error:
        remedy = f"cannot be read: {error.strerror}; correct the path or its permissions"
        raise ConfigError(file, [Problem("file", None, remedy)]) from None
    except UnicodeDecodeError as error:
        remedy = f"is not UTF-8 at byte {error.start}: save it as UTF-8 text"
        raise ConfigError(file, [Problem("file", None, remedy)]) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(file, [Problem("file", None, f"is not TOML: {error}")]) from None


def _parts(file: Path) -> list[Path]:
    folder = file.absolute().parent / FOLDER
    try:
        found = sorted(folder.glob("*.toml")) if folder.is_dir() else []
    except OSError as error:
        raise ConfigError(folder, [Problem("folder", None, f"cannot be read: {error.strerror}")]) from None
    if len(found) > _MOST_FILES:
        raise ConfigError(folder, [Problem("folder", None, f"has more than {_MOST_FILES} files")])
    return [part for part in found if part != file.absolute()]


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _missing(raw: Any, environment: Mapping[str, str], at: str) -> Iterator[Problem]:
    """Variables that are not set."""
    if isinstance(raw, str):
        for plain, name in _VARIABLE.findall(raw):
            if not plain and name not in environment:
                yield Problem(at, raw, f"the environment variable {name} is not set")
    elif isinstance(raw, dict):
        for key, value in raw.items():
            yield from _missing(value, environment, f"{at}.{key}" if at else key)
    elif isinstance(raw, list):
        for number, value in enumerate(raw, 1):
            yield from _missing(value, environment, f"{at}[{number}]")


def _filled(raw: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(raw, str) and "${" in raw:
        return Filled(_VARIABLE.sub(lambda found: "${" if found[1] else environment[found[2]], raw), raw)
    if isinstance(raw, dict):
        return {key: _filled(value, environment) for key, value in raw.items()}
    return [_filled(value, environment) for value in raw] if isinstance(raw, list) else raw


def plain(raw: Any) -> Any:
    """The same in texts of Python's own, as a converter wants them."""
    if isinstance(raw, dict):
        return {key: plain(value) for key, value in raw.items()}
    if isinstance(raw, list):
        return [plain(value) for value in raw]
    return str(raw) if isinstance(raw, Filled) else raw
