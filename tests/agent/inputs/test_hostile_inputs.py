"""Whatever a peer or a file has, an input gives bounded messages or the one refusal; 10^6 inputs in a whole run."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from growing_file import Reader
from hostile import hostile
from thorough import number

from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.inputs.lines import Lines
from sluicegate_agent.inputs.posts import Post, Posts, _message, _split
from sluicegate_agent.messages import Message
from sluicegate_agent.payloads.line_protocol import each_line  # noqa: F401  loaded before anything is counted
from sluicegate_agent.web.http import HEADERS_MOST, Refused, Request, parse

BODY, PAYLOAD = 512, 64
HEADS = [
    b"POST /in/meter HTTP/1.1\r\nHost: localhost:9465\r\nContent-Length: 17\r\nIdempotency-Key: a-1",
    b"POST /api/v2/write?bucket=influx&precision=ns HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 0",
    b"GET /api/buckets?stream=a%2Fb&window=w&from=-1 HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer 0123456789abcdef",
]
PLAIN = [
    b'{"t": 1700000000, "x": 1.5}\n{"t": 1700000001, "x": 2}\r\n\n{"x": null}',
    b'm,host=a z=1.5,"q"="a\nb" 1700000000\n# none\nm z=2 1700000001',
    b"21.5\n-1e5\n\n NA \n" + b"9" * 90,
]
BODIES = [*PLAIN, *map(gzip.compress, PLAIN), gzip.compress(b"0" * 4096), gzip.compress(PLAIN[0]) * 2]
SOURCES = [
    SourceConfig(subscribed="w", streams={"x": "x"}, input="http"),
    SourceConfig(subscribed="w", streams={"x": ""}, input="http", format="number"),
    SourceConfig(subscribed="w", streams={"x": "m.z"}, input="http", format="line"),
    SourceConfig(subscribed="w", streams={"x": "x"}, input="http", format="msgpack"),
]


def test_a_head_is_a_request_or_refused() -> None:
    """With no more headers and no longer a body than may be; a status says why it is none."""
    taken, refused = 0, set[int]()
    for i, head in enumerate(hostile(HEADS, number(1_000_000, 3_000), seed=5)):
        try:
            found = parse(head, BODY * (i % 2))
        except Refused as reason:
            refused.add(reason.response.status)
            continue
        taken += 1
        assert len(found.headers) <= HEADERS_MOST
        assert 0 <= found.length <= (BODY if found.method == "POST" else 0)
        assert found.path.startswith("/")
    assert refused <= {400, 405, 411, 413, 431}
    assert taken > 30, "the heads are so broken that nothing is tried"


def test_a_body_is_messages_or_refused() -> None:
    """Unpacked it is no larger than allowed, however well it was packed; what it holds is cut, and says so."""
    config: Any = SimpleNamespace(_config=SimpleNamespace(http=SimpleNamespace(body=BODY)))
    messages = refused = 0
    for i, body in enumerate(hostile(BODIES, number(1_000_000, 3_000), seed=6)):
        headers = {"content-encoding": "gzip"} if body.startswith(b"\x1f\x8b") else {}
        try:
            plain = Posts._unpacked(config, Request("POST", "/in/w", {}, headers, len(body), body))
        except Refused as reason:
            refused += reason.response.status in (400, 413)
            continue
        assert len(plain) <= max(BODY, len(body) * (not headers))
        post = Post(i, "w", plain, "", "", is_one=i % 3 == 0)
        for part in _split(SOURCES[i % len(SOURCES)], post):
            found = _message(post, part, PAYLOAD)
            assert len(found.payload) <= PAYLOAD
            assert found.whole == (len(part) if len(part) > PAYLOAD else 0)
            messages += 1
    assert messages > 30
    assert refused > 30


def test_lines_are_the_same_however_they_are_cut() -> None:
    """Of a file that grows and of standard input: each line once, with its length, and its end where it is too long."""
    chance = random.Random(7)
    for data in hostile([*PLAIN, b"\n" * 9, b"\r\n \t\n"], number(1_000_000, 3_000), seed=7):
        lines, found = Lines("w", PAYLOAD), list[tuple[int, Message | None]]()
        for piece in pieces(data, chance):
            found += lines.cut(piece)
            assert len(lines._begun) <= PAYLOAD + 1
        found += lines.last()
        *ended, rest = data.split(b"\n")
        assert [length for length, _ in found] == [len(line) + 1 for line in ended] + [len(rest)] * bool(rest)
        assert [message for _, message in found] == [read(line) for line in [*ended, *([rest] if rest else [])]]


def pieces(data: bytes, chance: random.Random) -> Iterator[bytes]:
    """As a file or pipe gives them."""
    while data:
        at = chance.randrange(1, len(data) + 1)
        yield data[:at]
        data = data[at:]


def read(line: bytes) -> Message | None:
    """A line as a message: without blanks at its ends, cut where it is too long."""
    line = line if len(line) > PAYLOAD + 1 else line.strip()
    if not line:
        return None
    return Message("w", line[:PAYLOAD], 0, 0, len(line) if len(line) > PAYLOAD else 0)


def test_a_row_of_a_table_is_a_message(reader: Callable[..., Reader]) -> None:
    """A row that is none goes on as it is, to be a dead letter."""
    one = reader(suffix="csv", format="json", time="at", time_format="s", streams={"x": "x", "y": "y z"})
    one.file.write_text('at,x,"y z"\n1,2,3\n')
    one.read()
    tail = one.tail
    read_as_rows = 0
    good = [b"1700000000,1.5,-2", b'1,"2,5","a ""b"""', b",,", b"1,2,3,4,5"]
    for row in hostile(good, number(1_000_000, 3_000), seed=8):
        found = tail._row(Message("meter", row, 0, 0))
        assert found is not None
        read_as_rows += found.payload.startswith(b"{")
    assert read_as_rows > 30
