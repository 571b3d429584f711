"""The credentials file that `sluicegate cloud provision` prints: URL, user and password of this device, as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from sluicegate_agent.config.model import SyncConfig
from sluicegate_agent.logs.secrets import hide

_LARGEST = 65536
_KEYS = ("url", "user", "password")


class Credentials(NamedTuple):
    """What the file holds; the password stands in no message."""

    url: str
    user: str
    password: str


def read(path: Path) -> Credentials:
    """The file's contents. Raises ValueError that says what is wrong with it."""
    try:
        with path.open("rb") as handle:
            found = json.loads(handle.read(_LARGEST))
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}; correct the path or its permissions") from None
    except ValueError:
        raise ValueError("is not JSON: expected the file that `sluicegate cloud provision` writes") from None
    if not isinstance(found, dict) or not all(isinstance(found.get(key), str) for key in _KEYS):
        raise ValueError("expected url, user and password, as `sluicegate cloud provision` writes them")
    hide(found["password"])
    return Credentials(*(found[key] for key in _KEYS))


def resolved(sync: SyncConfig) -> SyncConfig:
    """[sync] with URL and user of its credentials file, if it names one. Raises ValueError as `read` does."""
    if sync.credentials_file is None:
        return sync
    found = read(sync.credentials_file)
    return replace(sync, url=found.url, username=found.user)
