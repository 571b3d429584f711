"""The changes feed of the stand-in: `since`, `limit`, `include_docs`, one or several channels, normal and longpoll."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway.stand_in import Database


def changes(database: Database, user: str | None, query: dict[str, str]) -> dict[str, Any]:
    """The answer of `_changes`; a longpoll waits for the first row, at most `timeout` ms (10 s where none is said)."""
    end = time.monotonic() + int(query.get("timeout", "10000")) / 1000
    with database.lock:
        rows = _rows(database, user, query)
        while not rows and query.get("feed") == "longpoll" and time.monotonic() < end:
            database.lock.wait(0.1)
            rows = _rows(database, user, query)
        return {"results": rows, "last_seq": str(rows[-1]["seq"] if rows else query.get("since", "0"))}


def _rows(database: Database, user: str | None, query: dict[str, str]) -> list[dict[str, Any]]:
    since, limit = int(query.get("since") or 0), int(query.get("limit") or 0) or None
    asked = set(query.get("channels", "").split(",")) - {""}
    found = [
        {"seq": sequence, "id": name, "changes": [{"rev": revision}]}
        for name, (sequence, revision, channels) in database.log.items()
        if sequence > since and database.may_read(user, name) and (not asked or asked & set(channels))
    ]
    found = [*_own_row(database, user, since), *found][:limit]
    for row in found:
        name = str(row["id"])
        if name in database.log and name not in database.documents:
            row["deleted"] = True
        elif name in database.documents and query.get("include_docs") == "true":
            row["doc"] = {"_id": name, "_rev": database.log[name][1], **database.documents[name]}
    return found


def _own_row(database: Database, user: str | None, since: int) -> list[dict[str, Any]]:
    """What a user sees of itself, unless it may read all channels."""
    if user is None or "*" in database.channels_of(user):
        return []
    sequence = 1 + list(database.users).index(user)
    return [{"seq": sequence, "id": f"_user/{user}", "changes": []}] if sequence > since else []
