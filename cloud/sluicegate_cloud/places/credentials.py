"""Says who comes to a gateway or a server: by a file, else by the environment, and never by an option."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from sluicegate_cloud.errors import SourceError

_MOST = 1 << 16


class Names(NamedTuple):
    """What the environment calls name and password, and the file that has both; `maker`: the command that makes it."""

    user: str
    password: str
    file: str
    maker: str = ""


def credentials(
    names: Names, nobody: str, file: str = "", environment: Mapping[str, str] = os.environ
) -> tuple[str, str]:
    """Name and password. Raises SourceError, which shows neither; `nobody`: what it says where there are none."""
    if path := file or environment.get(names.file):
        return _of_file(path, names)
    if environment.get(names.user) and names.password in environment:
        return environment[names.user], environment[names.password]
    raise SourceError(nobody)


def _of_file(path: str, names: Names) -> tuple[str, str]:
    try:
        with Path(path).open("rb") as file:
            told = json.loads(file.read(_MOST))
        if isinstance(told["user"], str) and isinstance(told["password"], str):
            return told["user"], told["password"]
    except OSError as error:
        raise SourceError(f"credentials {path!r} cannot be read: {error.strerror}; {names.file} names it") from error
    except (ValueError, KeyError, TypeError):
        pass
    remedy = f": `{names.maker}` makes such a file" if names.maker else ""
    raise SourceError(f"credentials {path!r}: expected JSON with user and password{remedy}")
