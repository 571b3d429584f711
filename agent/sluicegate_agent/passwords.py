"""Secrets come from a file's first line or from the environment, and stand in no message, log or status."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.logs.secrets import hide
from sluicegate_agent.private import exposed

if TYPE_CHECKING:
    from sluicegate_agent.config import Config

_LONGEST = 4096


def password(table: str, file: Path | None, variable: str | None) -> str | None:
    """The password that `password_file` or `password_env` of a table names; None where neither does.

    Raises EnvironmentRefused where it cannot be had.
    """
    if variable is not None:
        if variable not in os.environ:
            raise EnvironmentRefused(f"{table}.password_env: the environment has no variable {variable}")
        return hide(os.environ[variable])
    return None if file is None else hide(first_line(f"{table}.password_file", file))


def exposed_files(config: Config) -> list[str]:
    """A warning for each file with a secret that others than its owner may read."""
    files = {
        "mqtt.password_file": config.mqtt.password_file,
        "mqtt.tls.key_file": config.mqtt.tls.key_file,
        "sync.password_file": config.sync.password_file,
        "sync.credentials_file": config.sync.credentials_file,
        "alerts.token_file": config.alerts.token_file,
        "metrics.token_file": config.metrics.token_file,
        "http.token_file": config.http.token_file,
    }
    return [
        f"{key}: others than its owner may read {path}; chmod 600 {path}"
        for key, path in files.items()
        if path is not None and exposed(path)
    ]


def first_line(key: str, path: Path) -> str:
    """What a file of a secret begins with; `key` names it. Raises EnvironmentRefused where it cannot be read."""
    try:
        with path.open(encoding="utf-8") as handle:
            return handle.readline(_LONGEST).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentRefused(f"{key}: {path} cannot be read: {error}") from None
