"""A request is read whole or refused with a reason; two readings of one request are not possible."""

from __future__ import annotations

import contextlib

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from hypothesis import given
from hypothesis import strategies as st

from sluicegate_agent.web.http import HEADERS_MOST, Refused, Request, Response, parse, written


def test_a_request_is_read() -> None:
    """Method, path and parameters decoded, header names in small letters."""
    found = parse(b"GET /api/answers?stream=a%20b&window= HTTP/1.1\r\nHost: localhost\r\nX-A:  1 ")
    assert found == Request("GET", "/api/answers", {"stream": "a b", "window": ""}, {"host": "localhost", "x-a": "1"})


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"", 400),
        (b"GET /", 400),
        (b"GET / HTTP/2", 400),
        (b"GET http://other/ HTTP/1.1", 400),
        (b"POST / HTTP/1.1", 405),
        (b"DELETE / HTTP/1.1", 405),
        (b"GET / HTTP/1.1\r\nContent-Length: 5", 413),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked", 413),
        (b"GET / HTTP/1.1\r\nno colon", 400),
        (b"GET / HTTP/1.1\r\nA : space before the colon", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nhost: other", 400),
        (b"GET / HTTP/1.1\r\nX: a\nHost: other", 400),
        (b"GET /\x00 HTTP/1.1", 400),
        (b"GET /\xff HTTP/1.1", 400),
        (b"GET /?" + b"&".join(b"k%d=" % i for i in range(17)) + b" HTTP/1.1", 400),
        (b"GET / HTTP/1.1" + b"".join(b"\r\nh%d: x" % i for i in range(HEADERS_MOST + 1)), 431),
    ],
)
def test_what_is_no_request_for_reading_is_refused(head: bytes, status: int) -> None:
    """With the status that says why."""
    with pytest.raises(Refused) as refusal:
        parse(head)
    assert refusal.value.response.status == status


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(head: bytes) -> None:
    """Nothing else is raised, whatever a peer sends."""
    with contextlib.suppress(Refused):
        assert parse(head).method in ("GET", "HEAD")


def test_a_response_says_its_length_and_loads_nothing_foreign() -> None:
    """Length, policy and the end of the connection; HEAD has no body."""
    whole = written(Response(200, b"abc"))
    head, _, body = whole.partition(b"\r\n\r\n")
    assert body == b"abc"
    assert b"Content-Length: 3" in head
    assert b"Connection: close" in head
    assert b"default-src 'none'" in head
    assert written(Response(200, b"abc"), head_only=True) == head + b"\r\n\r\n"
    assert b"WWW-Authenticate: Bearer" in written(Response(401, b""))
