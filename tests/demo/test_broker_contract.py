"""The contract the agent relies on: the same suite on the demo's broker and on the real Mosquitto."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from patience import until

Make = Callable[..., Any]


def acknowledge_all(taker: Any, count: int) -> None:
    """Acknowledge as messages come, until `count` of them have."""
    done = 0
    while done < count:
        assert until(lambda: len(taker.got) > done), f"{done} of {count} came"  # noqa: B023
        taker.paho.ack(taker.got[done].mid, taker.got[done].qos)
        done += 1


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1])
def test_delivers_in_order(port: int, client: Make, version: int, qos: int) -> None:
    """What is published arrives, whole and in order, in both protocol versions."""
    taker, giver = client(port, "taker", version=version), client(port, "giver", version=version)
    taker.subscribe("a/b")
    giver.send("a/b", *range(50), "ü" * 40_000, qos=qos)
    acknowledge_all(taker, 51)
    assert taker.payloads() == [*map(str, range(50)), "ü" * 40_000]
    assert {message.qos for message in taker.got} == {qos}
    assert not any(message.dup for message in taker.got)


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("home/+/temp", {"home/x/temp", "home/y/temp"}),
        ("home/#", {"home", "home/x/temp", "home/y/temp", "home/x/deep/er"}),
        ("+", {"home"}),
        ("#", {"home", "home/x/temp", "home/y/temp", "home/x/deep/er", "/"}),
        ("+/+", {"/"}),
        ("home/x/temp", {"home/x/temp"}),
    ],
)
def test_topic_filters(port: int, client: Make, name: str, taken: set[str]) -> None:
    """`+` stands for one level, `#` for all that follow."""
    taker, giver = client(port, "taker"), client(port, "giver")
    taker.subscribe(name)
    taker.subscribe("end")
    for topic in ("home", "home/x/temp", "home/y/temp", "home/x/deep/er", "/", "end"):
        giver.send(topic, "x")
    assert until(lambda: any(message.topic == "end" for message in taker.got))
    assert {message.topic for message in taker.got} - {"end"} == taken


def test_unsubscribe_stops_delivery(port: int, client: Make) -> None:
    """After UNSUBACK nothing more of the filter comes."""
    taker, giver = client(port, "taker"), client(port, "giver")
    taker.subscribe("one")
    taker.subscribe("two")
    taker.unsubscribe("one")
    giver.send("one", 1)
    giver.send("two", 2)
    assert until(lambda: taker.got)
    assert taker.payloads() == ["2"]


@pytest.mark.parametrize("version", [4, 5])
def test_session_keeps_messages_while_away(port: int, client: Make, version: int) -> None:
    """A persistent session finds on return, in order, what was published in between, and is told it was kept."""
    taker, giver = client(port, "taker", version=version), client(port, "giver", version=version)
    assert taker.present is False
    taker.subscribe("t")
    taker.leave()
    giver.send("t", *range(200))
    back = client(port, "taker", version=version)
    assert back.present is True
    acknowledge_all(back, 200)
    assert back.payloads() == [str(number) for number in range(200)]


@pytest.mark.parametrize("goodbye", [True, False])
def test_unacknowledged_comes_again_with_dup(port: int, client: Make, goodbye: bool) -> None:
    """After a reconnect exactly what was not acknowledged comes again, in order, marked DUP, before anything new."""
    taker, giver = client(port, "taker"), client(port, "giver")
    taker.subscribe("t")
    giver.send("t", *range(10))
    assert until(lambda: len(taker.got) == 10)
    taker.ack(*taker.got[:4])
    taker.leave() if goodbye else taker.vanish()
    giver.send("t", "new")
    back = client(port, "taker")
    assert back.present is True
    assert until(lambda: len(back.got) == 7)
    assert back.payloads() == ["4", "5", "6", "7", "8", "9", "new"]
    assert [message.dup for message in back.got] == [True] * 6 + [False]


def test_receive_maximum_holds_back_a_client_that_does_not_answer(port: int, client: Make) -> None:
    """Receive Maximum messages come and no more until a PUBACK; then the rest comes, in order, and nothing is lost.

    Mosquitto 2.0.11 lets a whole new Receive Maximum through at one PUBACK; that the demo's broker lets exactly one
    through is in test_broker_faults.py.
    """
    taker, giver = client(port, "taker", receive_maximum=5), client(port, "giver")
    taker.subscribe("t")
    giver.send("t", *range(40))
    assert until(lambda: len(taker.got) == 5)
    time.sleep(0.2)
    assert len(taker.got) == 5
    acknowledge_all(taker, 40)
    assert taker.payloads() == [str(number) for number in range(40)]


def test_late_acknowledgements_lose_nothing(port: int, client: Make) -> None:
    """3,000 messages with a commit every 0.1 s and an explicit Receive Maximum: all arrive, once."""
    taker, giver = client(port, "taker", receive_maximum=500), client(port, "giver")
    taker.subscribe("t")
    sender = threading.Thread(target=giver.send, args=("t", *range(3000)))
    sender.start()
    done = 0
    while done < 3000:
        assert until(lambda: len(taker.got) > done), f"{done} of 3000 came"  # noqa: B023
        time.sleep(0.1)
        batch = taker.got[done:]
        for message in batch:
            taker.paho.ack(message.mid, message.qos)
        done += len(batch)
    sender.join()
    assert taker.payloads() == [str(number) for number in range(3000)]


def test_expiry_zero_ends_the_session_with_the_connection(port: int, client: Make) -> None:
    """A session that asked for no life after the connection has none."""
    taker, giver = client(port, "taker", expiry=0), client(port, "giver")
    taker.subscribe("t")
    taker.leave()
    giver.send("t", 1)
    back = client(port, "taker", expiry=0)
    assert back.present is False
    time.sleep(0.2)
    assert back.got == []


def test_session_expires_after_its_time(port: int, client: Make) -> None:
    """One second after the connection a one-second session is gone."""
    taker, other = client(port, "taker", expiry=1), client(port, "other")
    taker.subscribe("t")
    taker.leave()
    other.send("u", 1)  # answered: the broker knows that the taker has left
    time.sleep(2.6)  # Mosquitto looks once a second
    other.send("u", 2)  # answered: it has looked
    assert client(port, "taker", expiry=1).present is False


@pytest.mark.parametrize("version", [4, 5])
def test_clean_start_forgets(port: int, client: Make, version: int) -> None:
    """A clean start throws the old session away."""
    taker, giver = client(port, "taker", version=version), client(port, "giver")
    taker.subscribe("t")
    taker.leave()
    giver.send("t", 1)
    back = client(port, "taker", version=version, clean=True)
    assert back.present is False
    time.sleep(0.2)
    assert back.got == []


def connect_raw(port: int) -> socket.socket:
    """A bare socket that said CONNECT as "taker" (MQTT 5, session kept 300 s) and was let in."""
    raw = socket.create_connection(("127.0.0.1", port), timeout=120)
    raw.sendall(bytes.fromhex("101700044d5154540500003c05110000012c0005") + b"taker")
    head = raw.recv(2)
    assert head[0] == 0x20
    raw.recv(head[1])
    return raw


def test_second_connection_takes_the_session_over(port: int, client: Make) -> None:
    """Two connections of one client id: the older is closed, the newer has the session."""
    giver = client(port, "giver")
    with connect_raw(port) as older:
        older.sendall(bytes.fromhex("8207000100000174") + b"\1")
        assert older.recv(100) == bytes.fromhex("900400010001")
        with connect_raw(port) as newer:
            while older.recv(100):
                pass
            giver.send("t", "for the newer")
            assert b"for the newer" in newer.recv(200)


def test_retained_message_greets_a_newcomer(port: int, client: Make) -> None:
    """A retained message waits for subscribers and is cleared by an empty one."""
    giver = client(port, "giver")
    giver.send("state", "up", retain=True)
    early = client(port, "early")
    early.subscribe("state")
    assert until(lambda: early.payloads() == ["up"])
    assert early.got[0].retain
    giver.send("state", "", retain=True)
    late = client(port, "late")
    late.subscribe("state")
    time.sleep(0.2)
    assert late.got == []


def test_will_is_published_when_a_client_vanishes(port: int, client: Make) -> None:
    """A dropped connection publishes the will; a goodbye does not."""
    watcher = client(port, "watcher")
    watcher.subscribe("will/#")
    client(port, "polite", will="will/polite").leave()
    client(port, "sudden", will="will/sudden").vanish()
    assert until(lambda: watcher.got)
    time.sleep(0.2)
    assert [message.topic for message in watcher.got] == ["will/sudden"]


def test_silent_client_is_dropped_after_its_keep_alive(port: int) -> None:
    """One and a half times the keep-alive without a packet ends the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as raw:
        began = time.monotonic()
        raw.sendall(bytes.fromhex("100d00044d51545404020001000173"))
        assert raw.recv(4) == bytes.fromhex("20020000")
        assert raw.recv(1) == b""
        assert time.monotonic() - began > 0.9


GARBAGE = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "zeros": bytes(64),
    "endless length": b"\x10\xff\xff\xff\xff\xff",
    "truncated connect": bytes.fromhex("1003000400"),
    "wrong name": bytes.fromhex("100d00044d51545804020001000173"),
    "publish first": bytes.fromhex("30050001610000"),
    "string past the end": bytes.fromhex("100d00044d51545404020001ffff73"),
    "bad UTF-8 id": bytes.fromhex("100d00044d515454040200010001ff"),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_ends_only_its_connection(port: int, client: Make, garbage: bytes) -> None:
    """A peer that does not speak MQTT is thrown out; everyone else is served on."""
    taker, giver = client(port, "taker"), client(port, "giver")
    taker.subscribe("t")
    with socket.create_connection(("127.0.0.1", port)) as raw:
        raw.settimeout(120)
        raw.sendall(garbage)
        with contextlib.suppress(OSError):  # the broker may have hung up before
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(1000):
                pass
    giver.send("t", "still here")
    assert until(lambda: taker.payloads() == ["still here"])
