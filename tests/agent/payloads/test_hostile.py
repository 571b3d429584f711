"""Whatever a peer sends, each format answers with readings or with the one refusal; 10^6 inputs in a whole run."""

from __future__ import annotations

import json
import math

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
import msgspec
from hostile import hostile
from thorough import number

from sluicegate_agent.config.formats import BUILT_IN, payload_of
from sluicegate_agent.config.model import LimitsConfig
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.messages import Message, Unreadable
from sluicegate_agent.naming.plugins import UnknownName
from sluicegate_agent.payloads import decode, parts_of

LIMITS = LimitsConfig(readings=64)
OBJECT = {"at": 1_700_000_000_000, "seq": 7, "boot": "b1", "temp": 1.5, "air": {"wind": 3, "all": [1, None, "NA"]}}
LIST = {"seq": 3, "data": [OBJECT, OBJECT | {"seq": 8}, 5, [1, 2], None]}
LINES = (
    b'weather,place=a\\ b,no=1 temp=21.5,wind=3i,up=t,"q"="x\\"y" 1700000000000000000\n',
    b"# a comment\nweather temp=1e3\nweather,a=b temp=-1.5,wind=4u 1700000000000000001",
)
OF_DOCUMENTS = {"temp": "temp", "wind": "air.wind"}


def good_of(name: str) -> list[bytes]:
    """Good payloads of a format."""
    if name == "line":
        return [*LINES]
    if name == "number":
        return [b"21.5", b"-1e5", b"NA"]
    documents = [OBJECT, LIST, LIST["data"], 5]
    if name.startswith("cbor"):
        cbor2 = pytest.importorskip("cbor2", reason="needs the extra `cbor`")
        import datetime

        moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
        return [*map(cbor2.dumps, [*documents, OBJECT | {"at": moment}, OBJECT | {"temp": 1 << 70}])]
    encode = msgspec.msgpack.encode if name.startswith("msgpack") else msgspec.json.encode
    return [encode(each) for each in documents]


def sources_of(name: str) -> list[SourceConfig]:
    """A format in the ways in which it may be configured."""
    if name == "number":
        return [SourceConfig(subscribed="w", streams={"temp": ""}, format=name)]
    if name == "line":
        line = SourceConfig(subscribed="w", streams={"temp": "weather.temp", "wind": "*.wind", "up": "up"}, format=name)
        return [payload_of(name).implied(line), line]
    plain = SourceConfig(
        subscribed="w", streams=OF_DOCUMENTS, format=name, time="at", time_format="ms",
        items="data" if payload_of(name).has_items else "",
    )  # fmt: skip
    numbered = msgspec.structs.replace(plain, sequence="seq", epoch="boot")
    return [plain, numbered, msgspec.structs.replace(numbered, time=None, sequence_in="message")]


@pytest.mark.parametrize("name", BUILT_IN)
def test_nothing_but_readings_or_a_refusal(name: str) -> None:
    """No exception beside Unreadable, no value that is not finite, no more readings than a message may have."""
    if name.startswith("sparkplug"):
        pytest.skip("has a test of its own: it needs what was said before")
    try:
        sources, good = sources_of(name), good_of(name)
    except UnknownName as missing:
        pytest.skip(str(missing))
    taken = longest = 0
    for i, payload in enumerate(hostile(good, number(1_000_000, 3_000), seed=23)):
        source = sources[i % len(sources)]
        try:
            for part in parts_of(source, Message("w", payload, 1, 1), LIMITS):
                found = decode(source, part, 1_700_000_000_000_000, LIMITS)
                assert len(found.readings) <= LIMITS.readings
                assert all(math.isfinite(value) and isinstance(time, int) for _, time, value in found.readings)
                taken += len(found.readings)
        except Unreadable as reason:
            longest = max(longest, len(str(reason)))
    assert longest < 2_000
    assert taken > 30, "the payloads are so broken that nothing is tried"


@pytest.mark.parametrize("name", BUILT_IN)
def test_good_payloads_are_read(name: str) -> None:
    """Those that the hostile ones are made of have readings."""
    if name.startswith("sparkplug"):
        pytest.skip("has a test of its own")
    source = sources_of(name)[0]
    found = [decode(source, part, 1, LIMITS) for part in parts_of(source, Message("w", good_of(name)[0], 1, 1), LIMITS)
             if not payload_of(name).has_items]  # fmt: skip
    assert payload_of(name).has_items or found[0].readings


def test_the_same_document_gives_the_same_readings_in_each_format() -> None:
    """JSON, CBOR and MessagePack differ in their bytes alone."""
    pytest.importorskip("cbor2", reason="needs the extra `cbor`")
    found = []
    for name in ("json", "cbor", "msgpack"):
        source = sources_of(name)[0]
        found.append(decode(msgspec.structs.replace(source, items=""), Message("w", good_of(name)[0], 1, 1), 1, LIMITS))
    assert found[0] == found[1] == found[2]
    assert found[0].readings == [("temp", 1_700_000_000_000_000, 1.5), ("wind", 1_700_000_000_000_000, 3.0)]
    assert json.loads(good_of("json")[0]) == OBJECT
