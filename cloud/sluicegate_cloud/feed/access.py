"""Sees before anything is read that the gateway answers, knows this reader, and has the feed that was read before."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from sluicegate_cloud.errors import GatewayError
from sluicegate_cloud.feed import changes
from sluicegate_cloud.feed.client import Client
from sluicegate_cloud.feed.gateway import Gateway

_MOST = 8 << 20


def require_access(at: Gateway, tries: int = 2) -> str:
    """The reader's name, as the gateway knows it.

    Raises GatewayError where the gateway does not answer, is not trusted, or does not know this reader.
    """
    with Client(at, tries) as client:
        said = client.get("_session", {}, _MOST)
    context = said.get("userCtx") if isinstance(said, dict) else None
    if not isinstance(context, dict):
        raise GatewayError(f"{at.url}/_session: no session of a Sync Gateway, but {str(said)[:100]}")
    return str(context.get("name") or "")


def why_empty(at: Gateway) -> str:
    """Why a feed may have come out empty. A channel that its reader may not see is not refused: it has no rows."""
    with Client(at) as client:
        rows = [row for page in islice(changes.pages(client, "", documents=False), 1) for row in page.rows]
    if rows:
        return (
            f"{at.url} has documents for this reader, as {rows[0]['id']!r}, but none in the channels asked for: "
            "is deploy/couchbase/sync.js its sync function?"
        )
    return (
        f"{at.url} has no document that this reader may see: no agent has synced yet, or the reader lacks the role "
        "`reader` (sluicegate cloud provision)"
    )


def require_same_feed(client: Client, since: Iterable[str]) -> None:
    """Raises GatewayError where the database was made anew: its sequences are behind what was read of it before."""
    said = client.get("", {}, _MOST)
    newest = said.get("update_seq") if isinstance(said, dict) else None
    ahead = [one for one in since if changes.order(one) > changes.order(newest)] if newest is not None else []
    if ahead:
        raise GatewayError(
            f"{client.gateway.url}: its newest sequence is {newest}, but {ahead[0]} was read before: the database was "
            "made anew. Give an empty folder to keep what is read from now on, and merge the old one beside it; for a "
            "stream give another --checkpoint: its table knows what it has"
        )
