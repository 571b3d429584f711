"""Readings by POST: answered when they are durable, counted once however often they are sent, refused with a reason."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from posting import Receiver


def lines(*values: float) -> str:
    """JSON lines with a time each."""
    return "".join(json.dumps({"t": 1_600_000_000 + value, "x": value}) + "\n" for value in values)


def test_lines_are_counted_and_answered(receiver: Callable[..., Receiver]) -> None:
    """Each line is a message; what it came to is in the answer, and it is durable then."""
    one = receiver()
    assert one.post("/in/timed", lines(1, 2) + "{}\n") == (200, {"accepted": 2, "duplicates": 0, "refused": 1})
    one.killed()
    assert one.desk.sums() == {"x": (3.0, 2)}
    assert one.post("/in/timed", lines(2, 3)) == (200, {"accepted": 1, "duplicates": 1, "refused": 0})
    assert one.post("/in/timed", "x")[0] == 422


def test_one_document_over_several_lines(receiver: Callable[..., Receiver]) -> None:
    """Content-Type application/json: the whole body is the message."""
    one = receiver()
    body = json.dumps({"t": 1, "x": 5}, indent=2)
    assert one.post("/in/timed", body, Content_Type="application/json")[1]["accepted"] == 1


def test_a_key_makes_any_request_count_once(receiver: Callable[..., Receiver]) -> None:
    """Numbers say nothing of themselves: with the same key they are the same, through a kill; without, each counts."""
    one = receiver()
    assert one.post("/in/bare", "1\n1\n2", Idempotency_Key="a")[1]["accepted"] == 3
    assert one.post("/in/bare", "1\n1\n2", Idempotency_Key="a")[1] == {"accepted": 0, "duplicates": 3, "refused": 0}
    one.killed()
    assert one.post("/in/bare", "1\n1\n2", Idempotency_Key="a")[1]["duplicates"] == 3
    assert one.post("/in/bare", "1", Idempotency_Key="b")[1]["accepted"] == 1
    assert one.post("/in/bare", "1")[1]["accepted"] == 1
    assert one.desk.sums() == {"y": (6.0, 5)}


def test_a_key_of_another_body_is_refused(receiver: Callable[..., Receiver]) -> None:
    """A sender that gives all its requests one key is told so, also after a kill: what they bring is not a repeat."""
    one = receiver()
    assert one.post("/in/bare", "1\n2", Idempotency_Key="a")[0] == 200
    one.killed()
    for body in ("3\n4", "1\n2\n3"):
        status, told = one.post("/in/bare", body, Idempotency_Key="a")
        assert (status, told["accepted"], told["duplicates"], told["refused"]) == (422, 0, 0, 1)
    assert one.desk.state.counters["refused.idempotency_key"] == 2
    assert one.post("/in/other_than", "1", Idempotency_Key="a")[0] == 404
    assert one.post("/in/bare", "1\n2", Idempotency_Key="a")[1]["duplicates"] == 2
    assert one.desk.sums() == {"y": (3.0, 2)}


def test_a_retry_while_commits_fail_counts_once(receiver: Callable[..., Receiver]) -> None:
    """503 asks for it again; what was taken into memory is known then."""
    one = receiver()
    status, told = one.post("/in/bare", "4\n5", commit=False, Idempotency_Key="k")
    assert (status, told["error"]) == (503, "the state cannot be written (disk full): send it again")
    assert one.post("/in/bare", "4\n5", Idempotency_Key="k")[0] == 200
    assert one.desk.sums() == {"y": (9.0, 2)}


def test_a_retry_of_a_sensor_with_a_coarse_clock_is_in_doubt(receiver: Callable[..., Receiver]) -> None:
    """Two equal messages of one request are two readings; those of another may be what the sender sends again."""
    one = receiver()
    assert one.post("/in/coarse", lines(1, 1))[1]["accepted"] == 2
    assert one.desk.state.counters["undecidable"] == 0
    assert one.post("/in/coarse", lines(1, 1))[1]["accepted"] == 2
    assert one.desk.state.counters["undecidable"] == 2


def test_a_packed_body_of_several_members(receiver: Callable[..., Receiver]) -> None:
    """As who packs each batch and sends them together; one that is cut is refused whole, and may be sent again."""
    one = receiver()
    body = gzip.compress(b"1\n2\n") + gzip.compress(b"3\n4\n")
    for cut in range(1, len(body)):
        if cut != len(body) // 2:
            assert one.post("/in/bare", body[:cut], Content_Encoding="gzip")[0] == 400
    assert one.post("/in/bare", body, Content_Encoding="gzip")[1]["accepted"] == 4
    assert one.desk.sums() == {"y": (10.0, 4)}


def test_line_protocol_as_its_senders_send_it(receiver: Callable[..., Receiver]) -> None:
    """InfluxDB's paths, packed or not; more lines than one message may have."""
    one = receiver()
    body = "".join(f"m,host=a z={n} {n}\n" for n in range(1500)).encode()
    told = one.post("/api/v2/write?org=o&bucket=lines&precision=s", gzip.compress(body), Content_Encoding="gzip")
    assert told == (200, {"accepted": 1500, "duplicates": 0, "refused": 0})
    assert one.post("/write?db=lines", body[:1000].rpartition(b"\n")[0])[1]["accepted"] == 0
    assert one.post("/write?db=lines&precision=ms", b"m z=1 9000")[0] == 400, "its source reads seconds"
    assert one.desk.sums() == {"z": (float(sum(range(1500))), 1500)}


@pytest.mark.parametrize(
    ("path", "headers", "status", "part"),
    [
        ("/in/nobody", {}, 404, "no [[source]]"),
        ("/in/other", {}, 404, "another input"),
        ("/else", {}, 404, "expected POST"),
        ("/in/timed", {"Content_Encoding": "br"}, 415, "gzip"),
        ("/in/timed", {"Content_Encoding": "gzip"}, 400, "not gzip"),
        ("/in/timed", {"Idempotency_Key": "k" * 200}, 400, "128"),
        ("/in/timed", {"Origin": "http://evil.example"}, 403, "browser"),
        ("/in/timed", {"Host": "evil.example"}, 421, "called"),
    ],
)
def test_what_is_not_taken_says_why(
    receiver: Callable[..., Receiver], path: str, headers: dict[str, str], status: int, part: str
) -> None:
    """Nothing is counted, and nobody else's page or name reaches the listener."""
    one = receiver()
    found, told = one.post(path, lines(1), **headers)
    assert found == status
    assert part in (told["error"] if isinstance(told, dict) else told)
    assert one.desk.sums() == {}


def test_sizes_are_bounded_before_anything_is_held(receiver: Callable[..., Receiver]) -> None:
    """By the length that is told, by what is unpacked, and each message by limits.payload."""
    one = receiver(body="100KiB")
    assert one.send("/in/timed", b"x" * 200_000)[0] == 413
    bomb = gzip.compress(b" " * 50_000_000)
    assert one.post("/in/timed", bomb, Content_Encoding="gzip")[0] == 413
    assert one.post("/in/bare", b"1" * 70_000)[0] == 422
    assert "larger than limits.payload" in one.desk.reasons()[0]
    assert one.send("/in/timed", b"", method="GET")[0] == 405


def test_a_token_is_asked_for_where_there_is_one(receiver: Callable[..., Receiver], tmp_path: Path) -> None:
    """Without it nothing is taken."""
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    one = receiver(token_file=str(token))
    assert one.post("/in/timed", lines(1))[0] == 401
    assert one.post("/in/timed", lines(1), Authorization="Bearer 0123456789abcdef")[0] == 200


def test_a_length_is_needed(receiver: Callable[..., Receiver]) -> None:
    """Chunks without a length are refused, and a client that asks first is told to go on."""
    one = receiver()
    with socket.create_connection(("127.0.0.1", one.port), timeout=5) as sock:
        sock.sendall(b"POST /in/timed HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 411 ")
    with socket.create_connection(("127.0.0.1", one.port), timeout=5) as sock:
        head = b"POST /in/nobody HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        sock.sendall(head)
        assert sock.recv(100).startswith(b"HTTP/1.1 100 ")
