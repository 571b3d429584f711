"""Secrets come from a file's first line or from the environment, and stand in no message, log or status."""

from __future__ import annotations

import os
from pathlib import Path

from sluicegate_agent.errors import EnvironmentRefused

_LONGEST = 4096


def password(table: str, file: Path | None, variable: str | None) -> str | None:
    """The password that `password_file` or `password_env` of a table names; None where neither does.

    Raises EnvironmentRefused where it cannot be had.
    """
    if variable is not None:
        if variable not in os.environ:
            raise EnvironmentRefused(f"{table}.password_env: the environment has no variable {variable}")
        return os.environ[variable]
    return None if file is None else _first_line(f"{table}.password_file", file)


def _first_line(key: str, path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as handle:
            return handle.readline(_LONGEST).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentRefused(f"{key}: {path} cannot be read: {error}") from None
