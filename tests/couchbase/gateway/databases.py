"""The two databases of a gateway under test, its users, and where it is found."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from sluicegate_cloud.feed.provision import shards

SYNC_FUNCTION = Path(__file__).resolve().parents[3] / "deploy/couchbase/sync.js"
#: Why a test that needs the real one is skipped.
MISSING = "missing: Sync Gateway (SLUICEGATE_SYNC_GATEWAY)"
#: `telemetry` has the deployed sync function; `plain` takes any document of anybody who has a password.
TELEMETRY, PLAIN = "telemetry", "plain"
PLAIN_FUNCTION = 'function (doc, oldDoc) { requireRole("any"); channel("all"); }'
SHARDS = shards()
PASSWORD = "letmein"  # noqa: S105  of every user of a gateway that lives for one test
#: user → channels; `spark` reads all shards through the role `reader`.
DEVICES = ("board-1", "board-2")
READER = "spark"


def users() -> dict[str, Any]:
    """The devices, each with its own channel, and the reader."""
    found: dict[str, Any] = {name: {"password": PASSWORD, "admin_channels": [f"device-{name}"]} for name in DEVICES}
    return found | {READER: {"password": PASSWORD, "admin_roles": ["reader"]}}


def plain_users() -> dict[str, Any]:
    """The same names, each of which may do all."""
    return {name: {"password": PASSWORD, "admin_roles": ["any"]} for name in (*DEVICES, READER)}


def program() -> str | None:
    """The Sync Gateway of this machine, if there is one: SLUICEGATE_SYNC_GATEWAY, or on PATH."""
    return shutil.which(os.environ.get("SLUICEGATE_SYNC_GATEWAY") or "sync_gateway")
