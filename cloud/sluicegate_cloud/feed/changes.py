"""A channel of the changes feed, page by page: no row passed over, no page over its bound, resumable anywhere.

A page that cannot be read, for its size or for a document in it, is asked for again in smaller ones; a row that cannot
be read even alone comes without its document, which whoever decodes it then fetches, or sets aside, by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from sluicegate_cloud.errors import GatewayError
from sluicegate_cloud.feed.client import Client, TooLargeError, UnreadableError

#: Where a feed begins.
BEGINNING = "0"
#: No answer is larger. A chunk has at most 8 MiB, so that one alone always fits; JSON takes up to 28 times as much in
#: memory as it is long.
MOST = 24 << 20
#: What a page aims at, and the rows it may have.
AIM, FIRST_ROWS, MOST_ROWS = 8 << 20, 64, 5_000
_ROW = 64  # bytes: what a row of the feed costs beside its document, at least
Row = dict[str, Any]
Order = tuple[int, int, int]


class Page(NamedTuple):
    """Rows of the feed with their documents, and the sequence to go on from once they are safe."""

    rows: list[Row]
    last: str


def pages(
    client: Client, channel: str, since: str = BEGINNING, until: str | None = None, *, documents: bool = True
) -> Iterator[Page]:
    """What was written to `channel` after `since`, up to now or up to `until`, in the feed's order.

    Sequences are the feed's own strings (`7`, `5::7`, `3:7`), handed back as they came: a compound one says that
    earlier writes may still appear, and only the gateway knows how to go on from it. Rows may come again after such a
    one. A user's own row is left out. Raises GatewayError, also where the feed goes round and so would never end.
    """
    limit, after = FIRST_ROWS if documents else MOST_ROWS, order(until) if until else None
    passed = {since}
    while True:
        try:
            rows, last = _page(client, channel, since, limit, documents=documents)
        except (TooLargeError, UnreadableError) as error:
            if limit > 1:
                limit = max(1, limit // 4)
                continue
            rows, last = _alone(client, channel, since, error)
        kept = [row for row in rows if after is None or order(row["seq"]) <= after]
        yield Page([row for row in kept if not row["id"].startswith("_")], last)
        if len(rows) < limit or len(kept) < len(rows) or (after and order(last) >= after):
            return
        if last in passed:
            raise GatewayError(f"{client.gateway.url}/_changes goes round: after {since} it comes to {last} again")
        passed.add(last)
        since, limit = last, _following(limit, kept) if documents else limit


def order(sequence: Any) -> Order:
    """Where a sequence stands in a feed. Raises GatewayError for what is none.

    Rows that a grant of access triggered (`3:7`) come when it does: just before the grant's own sequence.
    """
    try:
        numbers = [int(part) if part else 0 for part in str(sequence).split(":")]
        triggered = numbers[-2] if len(numbers) > 1 else 0
        return (triggered, 0, numbers[-1]) if triggered else (numbers[-1], 1, 0)
    except ValueError:
        raise GatewayError(f"the feed's sequence {sequence!r} is none: expected numbers with colons") from None


def newest(client: Client, channel: str, since: str, most: int | None = None) -> str:
    """The sequence to which `channel` goes now, or that of at most about `most` rows after `since`; no documents."""
    last, seen = since, 0
    for page in pages(client, channel, since, documents=False):
        seen += len(page.rows)
        if most is not None and seen >= most:
            return str(page.rows[most - seen - 1]["seq"]) if seen > most else page.last
        last = page.last
    return last


def document(client: Client, name: str) -> Row | None:
    """One document by its id; None where there is none. Raises ValueError for one that is not read, GatewayError."""
    try:
        found = client.get(quote(name, safe="", errors="surrogatepass"), {}, MOST)
    except TooLargeError as error:
        raise ValueError(f"it has {error}, at most {MOST} are read: its readings are missing here") from error
    except UnreadableError as error:
        raise ValueError(f"cannot be read: {error}: its readings are missing here") from error
    return found if isinstance(found, dict) else None


def _page(client: Client, channel: str, since: str, limit: int, *, documents: bool) -> tuple[list[Row], str]:
    query = {"feed": "normal", "since": since, "limit": str(limit)}
    query |= {"filter": "sync_gateway/bychannel", "channels": channel} if channel else {}
    query |= {"include_docs": "true"} if documents else {}
    said = client.get("_changes", query, MOST)
    rows = said.get("results") if isinstance(said, dict) else None
    if not isinstance(rows, list) or not all(_is_row(row) for row in rows) or "last_seq" not in said:
        raise GatewayError(f"{client.gateway.url}/_changes: no changes feed, but {str(said)[:100]}")
    return rows, str(said["last_seq"])


def _is_row(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("id"), str) and "seq" in row


def _alone(client: Client, channel: str, since: str, error: Exception) -> tuple[list[Row], str]:
    """The one row that comes next, without its document, which was too large or unreadable."""
    try:
        return _page(client, channel, since, 1, documents=False)
    except (TooLargeError, UnreadableError):
        raise GatewayError(f"{client.gateway.url}/_changes: a single row cannot be read: {error}") from error


def _following(limit: int, rows: list[Row]) -> int:
    """How many rows the next page may have, so that it comes to about AIM bytes."""
    size = sum(_ROW + len(_data(row)) for row in rows)
    return max(1, min(MOST_ROWS, 4 * limit, AIM * len(rows) // max(size, 1)))


def _data(row: Row) -> str:
    body = row.get("doc")
    data = body.get("data") if isinstance(body, dict) else None
    return data if isinstance(data, str) else ""
