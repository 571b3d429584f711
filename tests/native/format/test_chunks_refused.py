"""What is no chunk is refused with its reason, before anything of its size is allocated."""

from __future__ import annotations

import base64
import json
import math
import random
import tracemalloc
import zlib
from array import array
from dataclasses import replace
from typing import Any

import pytest
from test_chunks import KEY, doubted, older_chunk, stream
from thorough import number

from sluicegate.format import chunk as chunks
from sluicegate.format.chunk import Chunk, ChunkError, columns, decode, encode


def document(chunk: Chunk | None = None, **changes: Any) -> bytes:
    """A real document with header fields changed; None removes one."""
    parsed = json.loads(encode(chunk or stream(6, 12)))
    parsed.update(changes)
    return json.dumps({key: value for key, value in parsed.items() if value is not None}).encode()


REFUSED = [
    (b"", "no JSON"),
    (b"\xff\xfe", "no JSON"),
    (b"[1, 2]", "no chunk of Sluicegate"),
    (b"[" * 100_000, "no JSON"),
    (b'{"type":"sluicegate.chunk","format":NaN}', "no JSON"),
    (document(type="other"), "no chunk of Sluicegate"),
    (document(format=6, codec="columns-4"), "newer"),
    (document(format=3, codec="columns-4"), "codec"),
    (document(format=3), "has a key, tags, or readings in doubt"),
    (document(key=KEY), "unknown"),
    (document(replace(stream(6, 12), key=KEY), key="0" * 32), "crc32"),
    (document(replace(stream(6, 12), key=KEY), key=KEY.upper()), "32 lower-case hex"),
    (document(replace(stream(6, 12), key=KEY), key=""), "32 lower-case hex"),
    (document(replace(stream(6, 12), key=KEY), key=7), "32 lower-case hex"),
    (document(replace(stream(6, 12), key=KEY), codec="columns-3"), "crc32"),
    (document(format=2), "codec"),
    (document(older_chunk(stream(22, 6, mean=40, at_hand=0.0)), format=2, codec="columns-2"), "cut short"),
    (document(stream(22, 6, mean=40, at_hand=0.0), format=1, codec="columns-1"), "bytes too many"),
    (document(format=0), "expected 1"),
    (document(format="1"), "expected 1"),
    (document(format=True), "expected 1"),
    (document(codec="columns-2"), "codec"),
    (document(gap=None), "missing"),
    (document(colour="red"), "unknown"),
    (document(first="0"), "type"),
    (document(readings=1.0), "type"),
    (document(health=[1]), "type"),
    (document(center=math.inf), "no JSON"),
    (document(center=1e300), "out of range"),
    (document(t_first=2**200), "out of range"),
    (document(buckets=0), "buckets"),
    (document(buckets=2**16 + 1, readings=2**20), "buckets"),
    (document(buckets=10_000, readings=9_999), "buckets"),
    (document(device="other"), "id"),
    (document(device="a::b"), "printable"),
    (document(incarnation="0" * 15), "incarnation"),
    (document(first=1, id="edge/1::weather.temp::0006282d3d4b8c00::0000000000000001"), "crc32"),
    (document(crc32=1), "crc32"),
    (document(center=20.5), "crc32"),
    (document(gap=99), "crc32"),
    (document(data="***"), "damaged"),
    (document(data=""), "cut short"),
    (document(data=base64.b64encode(b"no deflate").decode()), "damaged|cut short"),
    (b" " * (8 * 2**20 + 1), "at most"),
]


@pytest.mark.parametrize(("data", "reason"), REFUSED, ids=[f"{i}-{reason}" for i, (_, reason) in enumerate(REFUSED)])
def test_what_is_no_chunk_is_refused_with_its_reason(data: bytes, reason: str) -> None:
    """Foreign, newer, incomplete, contradicting or oversized: ChunkError names what is wrong, for both readers."""
    for read in (decode, columns):
        with pytest.raises(ChunkError, match=reason):
            read(data)


def forged(payload: bytes, **changes: Any) -> bytes:
    """A document around any payload, with a crc32 that matches."""
    header = json.loads(encode(stream(6, 1))) | changes
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    header["data"] = base64.b64encode(packer.compress(payload) + packer.flush()).decode()
    header["crc32"] = chunks._crc32(header, payload)
    return json.dumps(header).encode()


def test_a_bomb_is_not_inflated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data that inflates beyond the limit is refused at the limit, before the memory is taken."""
    bomb = forged(bytes(64 * 2**20))
    monkeypatch.setattr(chunks, "MAX_PAYLOAD", 2**20)
    tracemalloc.start()
    with pytest.raises(ChunkError, match="inflates to more than"):
        decode(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20


def test_a_row_bomb_is_not_unpacked() -> None:
    """A payload that declares billions of single readings in a few bytes is refused by its row count."""
    huge = bytes([0, 10, 2]) + bytes([0]) + b"\x80\x80\x80\x80\x20" + b"\x02" + bytes([0, 0, 2]) + bytes([0, 0, 2]) * 2
    with pytest.raises(ChunkError, match="rows"):
        columns(forged(huge, readings=2**32))


def test_a_well_formed_lie_is_refused() -> None:
    """A payload that unpacks but contradicts its header or itself, or has bytes left over."""
    chunk = stream(8, 1, mean=1, back=0.0)
    kind, n, gap = bytes([0, 10, 2]), bytes([0, 2, 2]), bytes([0, 0, 2])
    single = bytes([0, 0, 2]) + bytes([3]) + bytes(8)
    right: dict[str, Any] = {"readings": 1, "buckets": 1, "t_first": 0, "t_last": 0, "gap": 0}
    assert columns(forged(kind + n + gap + single, **right))["n"] == array("q", [1])
    for payload, changes in [
        (kind + n + gap + single, {"t_last": 5}),
        (kind + n + gap + single + b"\x00", {}),
        (bytes([0, 2, 2]) + n + gap + single, {}),
        (bytes([0, 40, 2]) + n + gap + single, {}),
        (kind + bytes([0, 0, 2]) + gap + single, {}),
    ]:
        with pytest.raises(ChunkError):
            columns(forged(payload, **(right | changes)))
    assert chunk.buckets


def bits(got: dict[str, Any]) -> dict[str, Any]:
    """Columns with their arrays as bytes: NaN equals itself."""
    return {name: of.tobytes() if isinstance(of, array) else of for name, of in got.items()}


def test_damage_anywhere_is_found() -> None:
    """Every truncation, and ten thousand flipped bytes: ChunkError, or a document that means the very same."""
    rng = random.Random(9)
    whole_ones = stream(7, 12, at_hand=0.0, mean=9)
    both = replace(doubted(stream(8, 12, at_hand=0.5), 3), key=KEY)
    for chunk in (stream(6, 12), older_chunk(whole_ones), whole_ones, replace(stream(6, 12), key=KEY), both):
        whole = document(chunk, health=None)
        want = bits(columns(whole))
        for cut in range(len(whole)):
            with pytest.raises(ChunkError):
                columns(whole[:cut])
        for _ in range(5_000):
            at = rng.randrange(len(whole))
            damaged = whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :]
            try:
                assert bits(columns(damaged)) == want
            except ChunkError:
                continue


@pytest.mark.parametrize("seed", range(6))
def test_a_forged_payload_does_no_harm(seed: int) -> None:
    """Bytes changed below a crc32 that matches: ChunkError, never another error, and no bucket that breaks its laws."""
    rng = random.Random(seed)
    chunk = stream(seed, 10, at_hand=0.2, mean=7)
    chunk = older_chunk(chunk) if seed == 3 else doubted(chunk, seed) if seed > 3 else chunk
    header = json.loads(encode(chunk))
    payload = zlib.decompress(base64.b64decode(header["data"]), -15)
    kept = {key: header[key] for key in header if key not in ("data", "crc32")}
    refused = 0
    for _ in range(number(300, 120)):
        at = rng.randrange(len(payload))
        changed = payload[:at] + rng.randbytes(1) + payload[at + rng.randrange(2) :]
        document = forged(changed, **kept)
        for read in (columns, decode):
            try:
                read(document)
            except ChunkError:
                refused += 1
    assert number(200, 80) < refused < number(600, 240)


def test_what_cannot_be_a_chunk_is_not_encoded() -> None:
    """No buckets, a hole in the ordinals, bad names, a center that is no number, health that is no JSON."""
    chunk = stream(1, 3)
    broken: list[dict[str, Any]] = [
        {"buckets": []},
        {"readings": []},
        {"buckets": [chunk.buckets[0], chunk.buckets[2], chunk.buckets[1]]},
        {"device": ""},
        {"device": "a::b"},
        {"stream": "line\nbreak"},
        {"stream": "s" * 300},
        {"incarnation": "xyz"},
        {"center": math.nan},
        {"health": {"load": math.nan}},
        {"health": {"load": object()}},
        {"key": "xyz"},
        {"key": ""},
    ]
    for change in broken:
        names = ("device", "stream", "incarnation", "center", "buckets", "readings", "health", "key")
        with pytest.raises(ChunkError):
            encode(Chunk(**({name: getattr(chunk, name) for name in names} | change)))


def test_a_database_s_own_keys_and_number_forms_do_no_harm() -> None:
    """Keys that begin with an underscore are ignored; 20.0 may come back as 20, in any order of keys."""
    parsed = json.loads(encode(stream(6, 12)))
    changed = {"_rev": "1-a", "_id": "x"} | dict(sorted(parsed.items(), reverse=True)) | {"center": 20}
    assert columns(json.dumps(changed).encode())["center"] == 20.0
