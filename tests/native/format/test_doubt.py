"""Doubt and key travel with the buckets, exactly, and cost nothing where there is neither (format.md)."""

from __future__ import annotations

import json
from array import array
from dataclasses import replace
from typing import Any

import buckets_twin as pure
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_chunks import KEY, doubted, fields, older_chunk, same_bucket, stream
from thorough import number

from sluicegate.format import _bucket as compiled
from sluicegate.format.bucket import Bucket
from sluicegate.format.chunk import Chunk, ChunkError, columns, decode, encode

READINGS = st.lists(
    st.tuples(
        st.floats(-(2.0**960), 2.0**960).map(lambda x: x + 0.0),
        st.integers(-(2**61), 2**61),
        st.integers(-3, 3),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=40,
)
CUTS = st.sets(st.integers(0, 39))


def closed(module: Any, readings: list[tuple[float, int, int, int]], cuts: set[int]) -> list[Any]:
    """The buckets of the readings, one closed after each place of `cuts` and after the last."""
    builder, out = module.Builder(1.5), []
    for i, reading in enumerate(readings):
        builder.add(*reading)
        if i in cuts or i == len(readings) - 1:
            out.append(builder.close())
    return out


@given(readings=READINGS, cuts=CUTS)
def test_doubt_is_counted_alike_compiled_and_pure(readings: list[tuple[float, int, int, int]], cuts: set[int]) -> None:
    """The same records to the bit, in all of them as much doubt as was given; merged, the sum."""
    buckets = closed(compiled, readings, cuts)
    assert [b.pack() for b in buckets] == [b.pack() for b in closed(pure, readings, cuts)]
    assert sum(b.doubt for b in buckets) == sum(doubt for *_, doubt in readings)
    whole = buckets[0]
    for bucket in buckets[1:]:
        whole = compiled.merge(whole, bucket)
    assert whole.doubt == sum(doubt for *_, doubt in readings)


@given(readings=READINGS, cuts=CUTS, at_hand=st.booleans(), key=st.none() | st.just(KEY))
def test_any_chunk_with_doubt_comes_back(
    readings: list[tuple[float, int, int, int]], cuts: set[int], at_hand: bool, key: str | None
) -> None:
    """Every bucket's doubt after a document, and the rows the cloud reads have as much in all."""
    buckets = closed(compiled, readings, cuts)
    singles: list[Any] = [None] * len(buckets)
    if at_hand:
        for i, b in enumerate(buckets):
            mine = readings[b.first : b.first + b.n]
            singles[i] = array("q", [time for _, time, *_ in mine]), array("d", [value for value, *_ in mine])
    document = encode(Chunk("d", "s", "0" * 16, 1.5, buckets, singles, None, key))
    back = decode(document)
    assert back.key == key
    assert [(b.first, b.n, b.doubt) for b in back.buckets] == [(b.first, b.n, b.doubt) for b in buckets]
    rows = columns(document)
    assert rows["totals"]["doubt"] == sum(rows["doubt"]) == sum(b.doubt for b in buckets)
    assert all(0 <= doubt <= n for doubt, n in zip(rows["doubt"], rows["n"], strict=True))


@settings(max_examples=number(100, 30))
@given(
    changes=st.dictionaries(
        st.sampled_from(["format", "codec", "key"]),
        st.sampled_from([1, 2, 3, KEY, "", None, "columns-1", "columns-2", "columns-3"]),
    )
)
def test_no_header_says_another_format_of_the_same_payload(changes: dict[str, Any]) -> None:
    """Format, codec and key hold together: another combination is refused, or means the very same."""
    for chunk in (
        stream(1, 4),
        stream(2, 4, at_hand=0.0),
        replace(stream(1, 4), key=KEY),
        doubted(stream(3, 4), 1, 1.0),
    ):
        document = json.loads(encode(chunk))
        changed = document | changes
        try:
            got = columns(json.dumps(changed).encode())
        except ChunkError:
            continue
        assert got == columns(encode(chunk))


@pytest.mark.parametrize("at_hand", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("key", [None, KEY])
def test_doubt_and_key_come_back(at_hand: float, key: str | None) -> None:
    """Each bucket's doubt, stored whole or as readings, and the key; encoded again, the same bytes."""
    for seed in range(number(40, 18)):
        chunk = replace(doubted(stream(seed, 1 + seed, at_hand=at_hand, mean=1 + seed % 9), seed), key=key)
        back = decode(encode(chunk))
        assert back.key == key
        assert all(same_bucket(g, w) for g, w in zip(back.buckets, chunk.buckets, strict=True))
        assert encode(back) == encode(chunk)


def test_a_single_reading_is_in_doubt_or_not() -> None:
    """A bucket whose readings are all in doubt may be stored as those; one with some in doubt is stored whole."""
    chunk = stream(1, 40, mean=2, back=0.0)
    most = replace(chunk, buckets=[Bucket(**fields(b) | {"doubt": b.n}) for b in chunk.buckets])
    some = replace(chunk, buckets=[Bucket(**fields(b) | {"doubt": b.n // 2}) for b in chunk.buckets])
    rows = columns(encode(most))
    assert (set(rows["n"]), set(rows["doubt"])) == ({1}, {1})
    got = decode(encode(some))
    assert all((r is None) == (0 < b.doubt < b.n) for r, b in zip(got.readings, got.buckets, strict=True))
    assert sum(columns(encode(some))["doubt"]) == sum(b.doubt for b in some.buckets)


def test_a_document_without_doubt_or_key_is_what_it_was() -> None:
    """Format 3 only where there is something to say that formats 1 and 2 cannot; a key alone keeps the columns."""
    for at_hand, codec in ((1.0, 1), (0.0, 2)):
        chunk = stream(22, 6, mean=4 if at_hand else 40, at_hand=at_hand)
        plain, named = (json.loads(encode(replace(chunk, key=key))) for key in (None, KEY))
        assert (plain["format"], "key" in plain) == (codec, False)
        assert (named["format"], named["codec"], named["key"]) == (3, f"columns-{codec}", KEY)
        assert named["data"] == plain["data"]
        in_doubt = json.loads(encode(doubted(chunk, 1, 1.0)))
        assert (in_doubt["format"], in_doubt["codec"], "key" in in_doubt) == (3, "columns-3", False)


def test_doubt_in_a_bucket_of_which_little_is_known_comes_back() -> None:
    """An older store's buckets, merged with a reading in doubt, have no column of squares and yet are format 3."""
    chunk = older_chunk(stream(22, 6, mean=40, at_hand=0.0))
    buckets = [Bucket(**fields(b) | {"doubt": 1}) for b in chunk.buckets]
    back = decode(encode(replace(chunk, buckets=buckets))).buckets
    assert all(same_bucket(g, w) for g, w in zip(back, buckets, strict=True))
