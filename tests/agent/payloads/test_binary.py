"""CBOR and MessagePack: what JSON cannot say, and lengths that promise more than there is."""

from __future__ import annotations

import datetime
import tracemalloc
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
import msgspec

pytest.importorskip("cbor2", reason="needs the extra `cbor`")
import cbor2

from sluicegate_agent.config.model import LimitsConfig
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.messages import Decoded, Message, Unreadable
from sluicegate_agent.payloads import decode

WRITERS = {"cbor": cbor2.dumps, "msgpack": msgspec.msgpack.encode}


def read(form: str, payload: bytes, **keys: Any) -> Decoded:
    """Decode one payload of a source with two streams."""
    source = SourceConfig(**({"subscribed": "w", "streams": {"x": "x"}, "format": form} | keys))
    return decode(source, Message("w", payload, 1, 1), 5, LimitsConfig())


@pytest.mark.parametrize("form", WRITERS)
def test_keys_may_be_numbers(form: str) -> None:
    """SenML and many sensors name their fields by small numbers, below zero too."""
    assert read(form, WRITERS[form]({2: {-1: 4.5}}), streams={"x": "2.-1"}).readings == [("x", 5, 4.5)]


@pytest.mark.parametrize("form", WRITERS)
def test_a_time_may_be_a_time(form: str) -> None:
    """Both formats have a type for it: it needs no `time_format`."""
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5, 250_000, tzinfo=datetime.UTC)
    found = read(form, WRITERS[form]({"x": 1, "at": moment}), time="at", time_format="s")
    assert found.time_us == round(moment.timestamp() * 1e6)


@pytest.mark.parametrize(
    ("form", "payload"),
    [
        *[("msgpack", head) for head in (b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff")],
        *[("cbor", head) for head in (b"\x9a\xff\xff\xff\xff", b"\xbb\x7f" + b"\xff" * 7, b"\x5a\xff\xff\xff\xff")],
        ("cbor", b"\x81" * 60_000),
        ("msgpack", b"\x91" * 60_000),
    ],
)
def test_a_length_allocates_nothing_before_its_bytes_are_there(form: str, payload: bytes) -> None:
    """A header that promises gigabytes costs a refusal, as nesting without end does."""
    with pytest.raises(Unreadable):
        read(form, b"\x01")  # what the library imports at its first use is not the payload's doing
    tracemalloc.start()
    try:
        with pytest.raises(Unreadable):
            read(form, payload)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "payload",
    [
        b"\xd8\x23\x65(a+)+",  # a pattern
        b"\xd8\x24\x64mail",
        b"\xd8\x1c\x81\xd8\x1d\x00",  # a list that is in itself
        b"\xc4\x82\x1a\x3b\x9a\xca\x00\x01",  # 10 to the power of a milliard
        b"\xd8\x1e\x82\x01\x00",  # 1 of 0
        cbor2.dumps({"x": 1}) + b"\x00",
    ],
)
def test_tags_that_no_reading_needs_are_refused(payload: bytes) -> None:
    """Nothing is compiled, raised to a power or read into for the sake of a tag; nor is what follows passed over."""
    with pytest.raises(Unreadable, match="CBOR"):
        read("cbor", payload)


def test_large_numbers_are_out_of_range() -> None:
    """A whole number of any size is a value or a refusal, never an error."""
    assert read("cbor", cbor2.dumps({"x": 1 << 100})).readings == [("x", 5, float(1 << 100))]
    with pytest.raises(Unreadable, match="range of a double"):
        read("cbor", cbor2.dumps({"x": 1 << 2000}))
