"""The demo's broker alone: exact flow control, back-pressure instead of loss, bounds, and faults at numbered steps."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from patience import until

from sluicegate_demo.broker import Broker, Fault
from sluicegate_demo.broker.packets import LARGEST_PACKET, Body, Reason, RefusedError, split, varint

Make = Callable[..., Any]


def test_each_puback_lets_exactly_one_more_through(client: Make) -> None:
    """The window in flight never exceeds Receive Maximum, at any moment."""
    with Broker() as broker:
        taker, giver = client(broker.port, "taker", receive_maximum=5), client(broker.port, "giver")
        taker.subscribe("t")
        giver.send("t", *range(30))
        for done in range(25):
            assert until(lambda: len(taker.got) >= 5 + done)  # noqa: B023
            assert len(taker.got) == 5 + done
            taker.ack(taker.got[done])


def test_a_full_subscriber_holds_the_publisher_back(client: Make) -> None:
    """With room for 10, a publisher of 100 to an absent subscriber waits until it comes: nothing is lost."""
    with Broker(queue=10) as broker:
        taker, giver = client(broker.port, "taker"), client(broker.port, "giver")
        taker.subscribe("t")
        taker.leave()
        sender = threading.Thread(target=giver.send, args=("t", *range(100)))
        sender.start()
        assert until(lambda: broker.waiting("taker") == 10)
        time.sleep(0.1)
        assert sender.is_alive()
        assert broker.waiting("taker") == 10
        back = client(broker.port, "taker")
        assert until(lambda: len(back.got) == 100)
        sender.join()
        assert back.payloads() == [str(number) for number in range(100)]


def test_bytes_bound_the_queue_too(client: Make) -> None:
    """Few large messages fill a queue as surely as many small ones."""
    with Broker(queue_bytes=100_000) as broker:
        taker, giver = client(broker.port, "taker"), client(broker.port, "giver")
        taker.subscribe("t")
        taker.leave()
        sender = threading.Thread(target=giver.send, args=("t", *["x" * 40_000] * 8))
        sender.start()
        assert until(lambda: broker.waiting("taker") == 3)
        time.sleep(0.1)
        assert broker.waiting("taker") == 3
        back = client(broker.port, "taker")
        assert until(lambda: len(back.got) == 8)
        sender.join()


def test_a_subscriber_to_its_own_topic_does_not_wait_for_itself(client: Make) -> None:
    """A client that publishes to what it takes is never dead-locked by its own full queue."""
    with Broker(queue=5) as broker:
        both = client(broker.port, "both", receive_maximum=2)
        both.subscribe("t")
        both.send("t", *range(50))
        assert broker.waiting("both") == 50


def test_an_expired_session_lets_its_publishers_go(client: Make) -> None:
    """A publisher that waits for a session does not wait for ever: the session's end ends the wait."""
    with Broker(queue=5) as broker:
        taker, giver = client(broker.port, "taker", expiry=1), client(broker.port, "giver")
        taker.subscribe("t")
        began = time.monotonic()
        taker.leave()
        giver.send("t", *range(20))
        assert time.monotonic() - began > 0.9


def test_is_reachable_on_loopback_only() -> None:
    """The listening socket is bound to 127.0.0.1."""
    with Broker() as broker:
        assert broker._server.sockets[0].getsockname()[0] == "127.0.0.1"


def test_a_packet_over_the_limit_is_refused_before_it_is_buffered() -> None:
    """The length alone is enough to refuse."""
    with pytest.raises(RefusedError) as refused:
        split(bytearray(b"\x30" + varint(LARGEST_PACKET + 1)))
    assert refused.value.reason == Reason.TOO_LARGE


@pytest.mark.parametrize("value", [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455])
def test_variable_byte_integers_round_trip(value: int) -> None:
    """Every length comes back, at each edge of a byte."""
    assert Body(varint(value)).varint() == value


def test_packets_split_at_every_offset() -> None:
    """However the network cuts two packets, they come out whole."""
    data = b"\x30\x05\x00\x01aXY" + b"\xc0\x00"
    for cut in range(len(data)):
        buffer, out = bytearray(), []
        for piece in (data[:cut], data[cut:]):
            buffer += piece
            while (packet := split(buffer)) is not None:
                out.append(packet)
        assert out == [(0x30, b"\x00\x01aXY"), (0xC0, b"")]


@pytest.mark.parametrize("step", ["receive", "keep"])
@pytest.mark.parametrize("number", [1, 7, 20])
def test_cut_at_the_publisher(client: Make, step: str, number: int) -> None:
    """A publisher cut off before its PUBACK sends again: at least once, and twice only what had been kept."""
    with Broker(faults=[Fault(step, number, "cut", "giver")]) as broker:
        taker, giver = client(broker.port, "taker"), client(broker.port, "giver")
        taker.subscribe("t")
        giver.send("t", *range(20))
        assert until(lambda: set(taker.payloads()) == {str(one) for one in range(20)})
        again = [payload for payload in taker.payloads() if taker.payloads().count(payload) > 1]
        kept = number if step == "keep" else number - 1
        assert {int(payload) for payload in again} <= set(range(kept))
        assert [fault.step for fault in broker.faults.fired] == [step]


@pytest.mark.parametrize("step", ["connect", "subscribe", "deliver", "acknowledge"])
@pytest.mark.parametrize("number", [1, 2, 9])
def test_cut_at_the_subscriber(client: Make, step: str, number: int) -> None:
    """A subscriber cut off at any step gets, after it is back, everything it did not acknowledge."""
    faults = [Fault(step, number + 1, "cut", "taker")] if step == "connect" else [Fault(step, number, "cut", "taker")]
    with Broker(faults=faults) as broker:
        taker, giver = client(broker.port, "taker"), client(broker.port, "giver")
        taker.paho.on_connect = lambda c, *_: c.subscribe("t", 1)
        taker.paho.subscribe("t", 1)
        assert until(lambda: taker.suback)
        taker.paho.on_message = lambda c, _u, message: (taker.got.append(message), c.ack(message.mid, message.qos))
        giver.send("t", *range(20))
        assert until(lambda: len(set(taker.payloads())) == 20)
        assert until(lambda: broker.waiting("taker") == 0)
        order = list(dict.fromkeys(taker.payloads()))
        assert order == [str(one) for one in range(20)]


def test_duplicate_delivery_carries_dup_and_the_same_id(client: Make) -> None:
    """A duplicated delivery is the same packet again, and its second PUBACK harms nothing."""
    with Broker(faults=[Fault("deliver", 3, "duplicate")]) as broker:
        taker, giver = client(broker.port, "taker"), client(broker.port, "giver")
        taker.subscribe("t")
        giver.send("t", *range(5))
        assert until(lambda: len(taker.got) == 6)
        assert taker.payloads() == ["0", "1", "2", "2", "3", "4"]
        assert [message.dup for message in taker.got] == [False, False, False, True, False, False]
        assert taker.got[2].mid == taker.got[3].mid
        taker.ack(*taker.got)
        assert until(lambda: broker.waiting("taker") == 0)
        assert broker.counts["acknowledged_again"] == 1


def test_stall_is_silence_and_then_everything(client: Make) -> None:
    """A stalled link says nothing for its time and loses nothing."""
    for seconds, silent in ((3600.0, True), (0.6, False)):
        with Broker(faults=[Fault("deliver", 4, "stall", seconds=seconds)]) as broker:
            taker, giver = client(broker.port, "taker"), client(broker.port, "giver")
            taker.subscribe("t")
            began = time.monotonic()
            giver.send("t", *range(10))
            assert until(lambda: len(taker.got) >= (4 if silent else 10))  # noqa: B023
            if silent:
                time.sleep(0.1)
                assert len(taker.got) == 4
            else:
                assert time.monotonic() - began > 0.6
                assert taker.payloads() == [str(one) for one in range(10)]


def test_forgotten_session_is_told_so(client: Make) -> None:
    """A forgotten session comes back as new: session present 0, no subscription, nothing in flight."""
    with Broker(faults=[Fault("deliver", 4, "forget", "taker")]) as broker:
        taker, giver = client(broker.port, "taker"), client(broker.port, "giver")
        taker.subscribe("t")
        taker.present = None
        giver.send("t", *range(10))
        assert until(lambda: taker.present is not None)
        assert taker.present is False
        assert broker.waiting("taker") == 0


@pytest.mark.parametrize(
    ("step", "number", "action"), [("sleep", 1, "cut"), ("deliver", 0, "cut"), ("keep", 1, "duplicate")]
)
def test_a_fault_that_cannot_be_is_refused(step: str, number: int, action: str) -> None:
    """A misspelt plan fails at once instead of never firing."""
    with pytest.raises(ValueError, match="step"):
        Fault(step, number, action)


def test_random_bytes_never_end_the_broker(client: Make) -> None:
    """A thousand connections of noise, some behind a valid CONNECT: the broker serves on.

    Of a connection that is reset it may read nothing, so every third one waits until the broker has hung up.
    """
    import random

    rng = random.Random(5)
    hello = bytes.fromhex("100d00044d51545404020000000173")
    with Broker() as broker:
        for number in range(1000):
            with socket.create_connection(("127.0.0.1", broker.port), timeout=120) as raw:
                raw.sendall((hello if rng.random() < 0.7 else b"") + rng.randbytes(rng.randrange(1, 80)))
                if number % 3 == 0:
                    raw.shutdown(socket.SHUT_WR)
                    with suppress(ConnectionResetError):
                        while raw.recv(1000):
                            pass
                    continue
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        taker, giver = client(broker.port, "taker"), client(broker.port, "giver")
        taker.subscribe("t")
        giver.send("t", "alive")
        assert until(lambda: taker.payloads() == ["alive"])
        assert broker.counts["refused"] > 100
