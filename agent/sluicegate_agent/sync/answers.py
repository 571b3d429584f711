"""What a gateway's answers say, read strictly and within bounds: a peer decides neither depth nor memory nor time."""

from __future__ import annotations

import re
import time
from http.client import HTTPMessage

import msgspec

#: Seconds that a `Retry-After` is obeyed for, at most.
LONGEST_WAIT = 3600.0
_SECONDS = re.compile(r"[0-9]{1,9}", re.ASCII)
_REASON = 200


class Verdict(msgspec.Struct, frozen=True):
    """A row of `_bulk_docs`. A status is a number, but "413" is a text."""

    id: str
    rev: str = ""
    status: int | str = ""
    error: str = ""
    reason: str = ""


class Found(msgspec.Struct, frozen=True):
    """A row of `_all_docs`; without an id there is no such document, or none for this user."""

    key: str = ""
    id: str = ""
    error: str = ""


class _Rows(msgspec.Struct, frozen=True):
    rows: list[Found]


class _Said(msgspec.Struct, frozen=True):
    reason: str = ""


_verdicts = msgspec.json.Decoder(list[Verdict])
_rows = msgspec.json.Decoder(_Rows)
_said = msgspec.json.Decoder(_Said)
#: What the decoders raise for bytes that are none of theirs, nested too deeply among them.
_UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)


def verdicts(body: bytes) -> dict[str, Verdict] | None:
    """The row of each id; None where the answer is none of a gateway's."""
    try:
        return {row.id: row for row in _verdicts.decode(body)}
    except _UNREADABLE:
        return None


def present(body: bytes) -> set[str]:
    """The ids that `_all_docs` found; nothing where its answer cannot be read."""
    try:
        return {row.id for row in _rows.decode(body).rows if row.id and not row.error}
    except _UNREADABLE:
        return set()


def reason(body: bytes) -> str:
    """The reason in an answer's body, short, for people; a proxy's page says nothing to them."""
    try:
        said = _said.decode(body).reason[:_REASON]
    except _UNREADABLE:
        return ""
    return f" ({''.join(c if c.isprintable() else '?' for c in said)})" if said else ""


def retry_after(headers: HTTPMessage) -> float:
    """Seconds that `Retry-After` asks for: ASCII digits, or a date beside the answer's own; 0 for anything else."""
    asked = str(headers.get("Retry-After") or "").strip()
    if _SECONDS.fullmatch(asked):
        return min(float(asked), LONGEST_WAIT)
    at = _date(asked)
    now = _date(str(headers.get("Date") or ""))
    if at is None:
        return 0.0
    return min(max(0.0, at - (time.time() if now is None else now)), LONGEST_WAIT)


def _date(text: str) -> float | None:
    """Seconds since 1970 of an HTTP date."""
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp() if 0 < len(text) < 64 else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
