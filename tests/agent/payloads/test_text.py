"""Every message becomes readings or a reason; no bytes whatever raise anything else."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from hypothesis import given
from hypothesis import strategies as st

from sluicegate_agent.config.model import LimitsConfig
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.messages import Decoded, Message, Unreadable
from sluicegate_agent.payloads import decode

ARRIVAL = 1_700_000_000_000_000
OBJECT = SourceConfig(
    subscribed="w", streams={"temp": "temp", "wind": "air.wind"}, time="at", sequence="seq", epoch="boot"
)
NUMBER = SourceConfig(subscribed="n", streams={"temp": ""}, format="number")
ARRAY = SourceConfig(subscribed="a", streams={"x": "x"}, format="array", items="data", time="t", time_format="ms")


def read(source: SourceConfig, payload: Any, limits: LimitsConfig | None = None) -> Decoded:
    """Decode a payload, given as bytes or as what JSON is made of."""
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return decode(source, Message(source.topic, raw, 1, 1), ARRIVAL, limits)


def reason(source: SourceConfig, payload: Any, limits: LimitsConfig | None = None) -> str:
    """Why a payload cannot be read."""
    with pytest.raises(Unreadable) as caught:
        read(source, payload, limits)
    return str(caught.value)


def whole(**fields: Any) -> dict[str, Any]:
    """A good object, with fields replaced."""
    return {"at": "2013-01-01T06:00:00Z", "seq": 7, "boot": "b1", "temp": 1.5, "air": {"wind": 3}} | fields


def test_an_object_gives_its_metrics_with_time_and_identity() -> None:
    """Paths reach into the object; values keep the order of the configuration."""
    at = 1_357_020_000_000_000
    assert read(OBJECT, whole()) == Decoded("w", 7, "b1", at, [("temp", at, 1.5), ("wind", at, 3.0)], 0, ())


@pytest.mark.parametrize("nothing", [None, "NA", ""])
def test_a_metric_without_a_value_is_no_error(nothing: Any) -> None:
    """null, "NA" and an absent key are counted as absent; the rest of the message counts."""
    found = read(OBJECT, whole(temp=nothing, air={}))
    assert (found.readings, found.absent, found.sequence) == ([], 2, 7)


@pytest.mark.parametrize(
    ("value", "part"),
    [(True, "true or false"), ("warm", "a text"), ([1], "a list"), ({}, "an object"), (10**18 * 10**300, "range")],
)
def test_a_bad_value_costs_itself_only(value: Any, part: str) -> None:
    """One metric that is no number is refused with a reason; its neighbours count; alone it makes a dead letter."""
    found = read(OBJECT, whole(temp=value))
    assert [stream for stream, *_ in found.readings] == ["wind"]
    assert part in found.refused[0][1]
    assert part in reason(OBJECT, whole(temp=value, air={}))


@pytest.mark.parametrize(
    ("payload", "part"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b'{"temp": NaN}', "not JSON"),
        (b'{"temp": 1e999}', "not JSON"),
        (b"[" * 60_000, "nested too deeply"),
        (b"3", "not a JSON object"),
        (whole(seq=True), "seq (the sequence) is true or false"),
        (whole(seq=-1), "seq (the sequence)"),
        (whole(seq=1.5), "seq (the sequence)"),
        (whole(seq=2**63), "seq (the sequence)"),
        (whole(boot=None), "boot (the epoch)"),
        (whole(boot="x" * 65), "boot (the epoch)"),
        (whole(at=None), "at (the time) is missing"),
        (whole(at=5), "not an ISO 8601 time such as 2026-03-01T10:00:00Z; of a number set time_format"),
        (whole(at="0001-01-01T00:00:00+23:00"), "at is"),
    ],
)
def test_what_cannot_be_read_says_why(payload: Any, part: str) -> None:
    """The reason names the path and what stands there."""
    assert part in reason(OBJECT, payload)


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("1970-01-01", 0),
        ("1970-01-01 00:00:01", 1_000_000),
        ("1970-01-01T01:00:00.000001+01:00", 1),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("8999-12-31T23:59:59.999999", 221_845_391_999_999_999),
    ],
)
def test_iso_times_are_exact_to_the_microsecond(text: str, us: int) -> None:
    """A time without an offset is UTC."""
    assert read(OBJECT, whole(at=text)).time_us == us


@pytest.mark.parametrize(("form", "value", "us"), [("s", 1.000001, 1_000_001), ("ms", 5, 5_000), ("us", -7, -7)])
def test_numeric_times(form: Any, value: Any, us: int) -> None:
    """Seconds, milliseconds and microseconds since 1970, whole or not."""
    source = SourceConfig(subscribed="w", streams={"temp": "temp"}, time="at", time_format=form)
    assert read(source, {"at": value, "temp": 1}).time_us == us
    for wrong in ("5", True, 1e300, [1]):
        assert "at" in reason(source, {"at": wrong, "temp": 1})


def test_without_a_time_path_the_arrival_counts() -> None:
    """A source that says no time is read at its arrival."""
    assert read(SourceConfig(subscribed="w", streams={"temp": "temp"}), {"temp": 1}).time_us == ARRIVAL


@pytest.mark.parametrize(("payload", "value"), [(b" 21.5\n", 21.5), (b"-.5e1", -5.0), (b"+7", 7.0)])
def test_a_plain_number(payload: bytes, value: float) -> None:
    """The payload itself is the value."""
    assert read(NUMBER, payload).readings == [("temp", ARRIVAL, value)]


def test_a_plain_number_that_is_none() -> None:
    """An empty payload and NA are no reading; anything else is refused, infinity too."""
    assert [read(NUMBER, payload).absent for payload in (b"", b"NA", b"null")] == [1, 1, 1]
    for payload in (b"nan", b"inf", b"1_000", b"0x1", b"1,5", b"1e999", b"1" * 65, "٣".encode()):
        assert reason(NUMBER, payload)


def test_an_array_of_readings_with_their_times() -> None:
    """Items that cannot be read are refused by their number; the others count."""
    found = read(
        ARRAY, {"data": [{"t": 1, "x": 1}, {"x": 2}, {"t": 3, "x": "NA"}, {"t": 4, "x": False}, {"t": 5, "x": 5}]}
    )
    assert found.readings == [("x", 1000, 1.0), ("x", 5000, 5.0)]
    assert (found.time_us, found.absent) == (1000, 1)
    assert found.refused == (("x", "item 1: t (the time) is missing"), ("x", "x is true or false, not a number"))


def test_arrays_of_numbers_and_of_pairs() -> None:
    """An item may be the value itself, or a list of time and value."""
    plain = SourceConfig(subscribed="a", streams={"x": ""}, format="array")
    assert read(plain, [1, 2.5]).readings == [("x", ARRIVAL, 1.0), ("x", ARRIVAL, 2.5)]
    pairs = SourceConfig(subscribed="a", streams={"x": "1"}, format="array", time="0", time_format="us")
    assert read(pairs, [[10, 1], [20, 2]]).readings == [("x", 10, 1.0), ("x", 20, 2.0)]
    assert read(plain, []).readings == []


def test_sizes_are_bounded() -> None:
    """A payload beyond limits.payload, whole or cut by the link, and a list beyond limits.readings are refused."""
    limits = LimitsConfig(readings=3)
    plain = SourceConfig(subscribed="a", streams={"x": ""}, format="array")
    assert "limits.readings (3)" in reason(plain, [1, 2, 3, 4], limits)
    assert "limits.payload (65536)" in reason(OBJECT, b" " * 65537)
    with pytest.raises(Unreadable, match="payload of 70000 bytes"):
        decode(OBJECT, Message("w", b"{}", 1, 1, whole=70_000), ARRIVAL)


_KEYS = st.sampled_from(["at", "seq", "boot", "temp", "air", "t", "x", "data", "wind"])
_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
_json = st.recursive(_LEAVES, lambda i: st.lists(i, max_size=3) | st.dictionaries(_KEYS, i), max_leaves=12)


@given(st.binary(max_size=60) | _json.map(lambda value: json.dumps(value).encode()))
def test_no_bytes_raise_anything_else(payload: bytes) -> None:
    """Whatever arrives, the answer is readings that are finite and in range, or Unreadable."""
    for source in (OBJECT, NUMBER, ARRAY):
        try:
            found = read(source, payload)
        except Unreadable:
            continue
        assert all(math.isfinite(value) and abs(time) < 2**62 for _, time, value in found.readings)
