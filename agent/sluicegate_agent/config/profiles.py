"""What a profile says instead of the defaults; whatever a file says itself stays."""

from __future__ import annotations

from typing import Any

from sluicegate_agent.config.files import plain

#: A card that is to last: commits a minute apart (or 4,096 readings), large ones, and the tables once a day.
LOW_WEAR: dict[str, dict[str, Any]] = {
    "commit": {"every": "60s", "fold": "1d"},
    "mqtt": {"receive_maximum": 8192},
    "state": {"memory": "96MiB", "disk": "192MiB"},
}


def with_profile(raw: dict[str, Any]) -> dict[str, Any]:
    """The parsed TOML with what its profile adds."""
    commit = raw.get("commit")
    if not isinstance(commit, dict) or plain(commit.get("profile")) != "low-wear":
        return raw
    filled = {name: table | given for name, table in LOW_WEAR.items() if isinstance(given := raw.get(name, {}), dict)}
    return raw | filled
