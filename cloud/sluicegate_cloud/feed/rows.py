"""A row of the changes feed → a row of `documents.DOCUMENTS`: the document as it was sealed, or why there is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from sluicegate.format import chunk as chunks
from sluicegate_cloud.documents import Found, document_batches
from sluicegate_cloud.feed.changes import Page, document
from sluicegate_cloud.feed.client import Client


def batches(client: Client, pages: Iterator[Page]) -> Iterator[pa.RecordBatch]:
    """Rows of `documents.DOCUMENTS` of all pages. Raises GatewayError."""
    url = client.gateway.url
    found = (
        Found(f"{url}/{row['id']}", partial(_sealed, client, row), row["id"]) for page in pages for row in page.rows
    )
    return document_batches(found)


def _sealed(client: Client, row: dict[str, Any]) -> bytes:
    """A feed's row as bytes. Raises ValueError with the reason why there are none, GatewayError."""
    body = row.get("doc")
    if row.get("deleted"):
        raise ValueError("deleted at the gateway: its readings are missing here, unless it was read before")
    if row.get("removed"):
        raise ValueError(
            f"removed from the channel {', '.join(map(str, row['removed']))}: its readings are missing here, "
            "unless it was read before"
        )
    if not isinstance(body, dict):  # the gateway could not load it just then
        body = document(client, row["id"])
    if body is None:
        raise ValueError("the feed has it, the gateway does not: its readings are missing here")
    if body.get("id") != row["id"] and body.get("type") == chunks.TYPE:
        raise ValueError(f"stored as {row['id']!r}, but it is the document {body.get('id')!r}")
    return restored(body)


def restored(body: dict[str, Any]) -> bytes:
    """The document's bytes as `chunks.encode` wrote them, whatever a database did to its keys' order and numbers.

    So that a copy from elsewhere is known as one. What no agent writes is left as it is, for `chunks` to refuse.
    """
    known = {key: body[key] for key in chunks.ORDER if key in body}
    rest = {key: value for key, value in body.items() if key not in known and not key.startswith("_")}
    if isinstance(known.get("extras"), dict):
        known["extras"] = dict(sorted(known["extras"].items()))
    if type(known.get("center")) is int:
        known["center"] = _as_float(known["center"])
    return json.dumps(known | rest, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")


def _as_float(number: int) -> float | int:
    try:
        return float(number)
    except OverflowError:
        return number
