"""Who the agent is at a gateway or server, and how it shows it: by a credentials file, a password file or variable."""

from __future__ import annotations

from typing import NamedTuple

from sluicegate_agent.config import Config
from sluicegate_agent.config.credentials import read, resolved
from sluicegate_agent.config.model import SyncConfig
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.passwords import password


class Access(NamedTuple):
    """[sync] with its URL, and the name and secret to show there; no secret: nothing is shown."""

    sync: SyncConfig
    url: str
    name: str
    secret: str | None


def access(config: Config) -> Access:
    """What [sync] says. Raises EnvironmentRefused where a secret cannot be had."""
    sync = config.sync
    try:
        found = resolved(sync)
        secret = read(sync.credentials_file).password if sync.credentials_file else None
    except ValueError as error:
        raise EnvironmentRefused(f"sync.credentials_file: {sync.credentials_file} {error}") from None
    if secret is None:
        secret = password("sync", sync.password_file, sync.password_env)
    return Access(found, found.url or "", found.username or config.device.id, secret)
