"""The feed's pages promise every row once, in pages that fit, from any sequence on; its rows tell what is no chunk."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from scripted import Answer, Scripted, scripted
from test_feed_client import reader  # noqa: F401  (the environment's credentials)

from sluicegate.format import chunk as chunks
from sluicegate.format.bucket import Bucket
from sluicegate_cloud.errors import GatewayError
from sluicegate_cloud.feed import access, changes, client, rows
from sluicegate_cloud.feed.client import Client
from sluicegate_cloud.feed.gateway import Gateway
from sluicegate_cloud.feed.source import FeedStreamReader

Row = dict[str, Any]


def feed(held: list[Row], asked: list[int] | None = None) -> Callable[[dict[str, str]], Answer]:
    """A feed of `held` as a gateway answers it: after `since`, `limit` rows, the last one's sequence."""

    def answer(query: dict[str, str]) -> Answer:
        after = changes.order(query["since"])
        shown = [row for row in held if changes.order(row["seq"]) > after][: int(query["limit"])]
        if asked is not None:
            asked.append(len(shown))
        return Answer({"results": shown, "last_seq": str(shown[-1]["seq"]) if shown else query["since"]}, chunked=True)

    return answer


def row(number: int, size: int = 10, **more: Any) -> Row:
    """A row of the feed with a document of about `size` bytes."""
    return {"seq": number, "id": f"d::s::0::{number}", "doc": {"data": "x" * size}, "changes": [], **more}


def read(server: Scripted, since: str = "0", until: str | None = None, **options: bool) -> tuple[list[Any], str]:
    """The sequences that come, and the one to go on from."""
    with Client(Gateway.at(server.url), 2) as client:
        pages = list(changes.pages(client, "shard-03", since, until, **options))
    return [one["seq"] for page in pages for one in page.rows], pages[-1].last


def test_every_row_comes_once_from_where_it_is_asked() -> None:
    """Over many pages; from any sequence on exactly what follows; the request names channel, sequence and limit."""
    held = [row(number) for number in range(3, 1_003)]
    with scripted(feed(held)) as server:
        assert read(server) == ([*range(3, 1_003)], "1002")
        assert read(server, "900") == ([*range(901, 1_003)], "1002")
        assert read(server, "1002") == ([], "1002")
    path, query, _ = server.asked[0]
    assert path == "/telemetry/_changes"
    assert query["filter"] == "sync_gateway/bychannel"
    assert query["channels"] == "shard-03"
    assert query["include_docs"] == "true"


def test_between_two_sequences_the_same_rows_come_whatever_followed() -> None:
    """A replay after more was written, or after a row was deleted, stops where the first one did."""
    held = [row(number) for number in range(1, 200)]
    with scripted(feed(held)) as server:
        assert read(server, "10", "20")[0] == [*range(11, 21)]
        held[:] = [one for one in held if one["seq"] != 20]
        assert read(server, "10", "20")[0] == [*range(11, 20)]
        assert read(server, "10", "10")[0] == []


def test_pages_stay_near_what_they_aim_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small documents come by the hundred, large ones by the few."""
    monkeypatch.setattr(changes, "AIM", 100_000)
    for size, least, most in ((10, 1_000, 1_400), (20_000, 4, 6)):
        shown: list[int] = []
        with scripted(feed([row(number, size) for number in range(1, 2_500 if size < 100 else 200)], shown)) as server:
            read(server)
        assert least <= max(shown[2:]) <= most


def test_a_page_over_its_bound_is_asked_for_in_smaller_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is passed over; a single row whose document is too large comes without it, to be asked for by itself."""
    monkeypatch.setattr(changes, "MOST", 50_000)
    with scripted(feed([row(number, 20_000) for number in range(1, 30)])) as server:
        assert read(server)[0] == [*range(1, 30)]
    large = row(1, 60_000)
    alone = Answer({"results": [{"seq": 1, "id": large["id"]}], "last_seq": "1"})
    end = Answer({"results": [], "last_seq": "1"})
    with scripted(feed([large]), feed([large]), feed([large]), feed([large]), alone, end) as server:
        assert read(server)[0] == [1]
        assert [query["limit"] for _, query, _ in server.asked[:5]] == ["64", "16", "4", "1", "1"]
        assert "include_docs" not in server.asked[4][1]


def test_the_largest_answer_fits_into_a_worker() -> None:
    """Whatever a device put into its documents: nothing takes more memory for its length than empty objects."""
    body = b"[" + b"{}," * 50_000 + b"{}]"
    tracemalloc.start()
    try:
        client._parsed(body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert chunks.MAX_DOCUMENT * 2 < changes.MOST
    assert peak / len(body) * changes.MOST < 768 << 20


def test_a_users_own_row_is_no_document() -> None:
    """It is left out, and the feed goes on behind it."""
    held = [
        row(1),
        {"seq": 2, "id": "_user/spark", "changes": []},
        {"seq": "3:2", "id": "_role/r", "changes": []},
        row(4),
    ]
    with scripted(feed(held)) as server:
        assert read(server) == ([1, 4], "4")


def test_sequences_are_handed_back_as_they_came() -> None:
    """A compound one says that earlier writes may appear: only the gateway knows how to go on from it."""
    page = {"results": [row(1) | {"seq": "5::7"}], "last_seq": "5::7"}
    with scripted(Answer(page), Answer({"results": [], "last_seq": "5::7"})) as server:
        assert read(server) == (["5::7"], "5::7")
        assert read(server, "5::7")[1] == "5::7"
    assert server.asked[-1][1]["since"] == "5::7"


def test_the_order_of_sequences() -> None:
    """Plain, with a low sequence, and triggered by a grant of access, which comes just before the grant's own."""
    ordered = ["0", "1", 2, "1::3", "9:1", "9:4", "2:9:7", "9", "5::10", "11"]
    assert sorted({*ordered}, key=changes.order) == ordered
    with pytest.raises(GatewayError, match="is none"):
        changes.order("one")


def test_where_a_channel_ends_is_found_without_its_documents() -> None:
    """All of it, or as many rows as are asked for."""
    with scripted(feed([row(number) for number in range(1, 50)])) as server, Client(Gateway.at(server.url)) as client:
        assert changes.newest(client, "shard-00", "0") == "49"
        assert changes.newest(client, "shard-00", "0", most=10) == "10"
        assert changes.newest(client, "shard-00", "45", most=10) == "49"
        assert changes.newest(client, "shard-00", "49", most=10) == "49"
        assert all("include_docs" not in query for _, query, _ in server.asked)


@pytest.mark.parametrize("body", [[], {"rows": []}, {"results": [{"id": 3}], "last_seq": 1}, {"results": []}])
def test_what_is_no_feed_is_refused(body: Any) -> None:
    """JSON of another shape ends the read; nothing is taken from it."""
    with scripted(Answer(body)) as server, pytest.raises(GatewayError, match="no changes feed"):
        read(server)


# rows


def chunk(device: str = "d", center: float = 39.0, **health: Any) -> bytes:
    """A chunk document."""
    buckets = [Bucket.single(value, time, center, time) for time, value in enumerate((1.5, 2.5, 39.0))]
    return chunks.encode(chunks.Chunk(device, "s", "0" * 16, center, buckets, [None] * 3, health or None))


def stored(data: bytes) -> Row:
    """What a database makes of it: keys sorted, whole numbers without a point, keys of its own."""
    body = json.loads(data)
    if body["center"] == int(body["center"]):
        body["center"] = int(body["center"])
    return {key: body[key] for key in sorted(body)} | {"_id": body["id"], "_rev": "1-a", "_cv": "x@y"}


@pytest.mark.parametrize("data", [chunk(), chunk("ö ☂", 0.1), chunk(center=-7.0), chunk(a=1, b="x", c=[1.5, None])])
def test_a_document_comes_back_byte_for_byte(data: bytes) -> None:
    """However a database rewrote it, so that a copy from a folder is known as one."""
    assert rows.restored(stored(data)) == data


def told(client: Client, *found: Row) -> list[Row]:
    """The rows of DOCUMENTS for rows of a feed."""
    batches = rows.batches(client, iter([changes.Page(list(found), "9")]))
    return [one for batch in batches for one in batch.to_pylist()]


def test_what_is_no_chunk_is_a_row_with_its_reason() -> None:
    """Deleted, removed from the channel, another shape, damaged, newer, under another id: each told, none dropped."""
    good = stored(chunk())
    name = good["id"]
    cases: list[tuple[Row, str | None]] = [
        ({"doc": good}, None),
        ({"deleted": True, "doc": {"_deleted": True}}, "deleted at the gateway"),
        ({"removed": ["shard-03"], "doc": {"_removed": True}}, "removed from the channel shard-03"),
        ({"doc": {"type": "something else"}}, "no chunk of Sluicegate"),
        ({"doc": good | {"crc32": 1}}, "crc32 does not match"),
        ({"doc": good | {"format": 9}}, "upgrade it"),
        ({"doc": good | {"extra": 1}}, "unknown: ['extra']"),
        ({"doc": good | {"center": 10**400}}, "out of range"),
        ({"doc": good | {"id": "d::s::1::2"}}, "stored as 'd::s::0000000000000000::0000000000000000'"),
        ({"doc": good | {"device": "\ud800"}}, "utf-8"),
    ]
    with scripted(Answer({})) as server, Client(Gateway.at(server.url)) as client:
        out = told(client, *({"seq": 1, "id": name} | case for case, _ in cases))
    assert len(out) == len(cases)
    for (_, reason), one in zip(cases, out, strict=True):
        assert one["path"] == f"{server.url}/{name}"
        assert (one["reason"] is None) if reason is None else (reason in one["reason"]), one["reason"]
    assert out[0]["id"] == name
    assert out[0]["buckets"] == out[0]["readings"] == 3


def test_a_row_without_its_document_is_asked_for_again() -> None:
    """A gateway leaves out what it could not load just then: it is fetched, or told as gone; never passed over."""
    good = stored(chunk())
    with scripted(Answer(good), Answer({"error": "not_found"}, 404), Answer({}, 503)) as server:
        client = Client(Gateway.at(server.url), 1)
        with client:
            assert told(client, {"seq": 1, "id": good["id"]})[0]["reason"] is None
            assert "the gateway does not" in told(client, {"seq": 1, "id": good["id"]})[0]["reason"]
            with pytest.raises(GatewayError, match="503"):
                told(client, {"seq": 1, "id": good["id"]})
    assert server.asked[0][0] == "/telemetry/d%3A%3As%3A%3A0000000000000000%3A%3A0000000000000000"


def test_a_database_made_anew_is_noticed() -> None:
    """Where its sequences are behind what was read before, going on from there would read nothing for ever."""
    with scripted(Answer({"update_seq": 10})) as server, Client(Gateway.at(server.url)) as client:
        access.require_same_feed(client, ["3", "10", "2::9"])
        with pytest.raises(GatewayError, match="made anew"):
            access.require_same_feed(client, ["3", "11"])


def test_a_stream_of_a_database_made_anew_stops() -> None:
    """What the new one has before the old one's sequences would be passed over in silence."""
    held = [row(number) for number in range(1, 4)]
    answer = feed(held)
    with scripted(lambda query: answer(query) if query else Answer({"update_seq": held[-1]["seq"]})) as server:
        stream = FeedStreamReader({"url": server.url, "rows": "documents", "channels": "one"})
        assert stream.latestOffset({"one": "2"}, ReadAllAvailable()) == {"one": "3"}
        with pytest.raises(GatewayError, match="made anew"):
            stream.latestOffset({"one": "40"}, ReadAllAvailable())


@pytest.mark.parametrize("sequences", [["7"], ["7", "3"], ["7", "9", "3", "7"]])
def test_a_feed_that_goes_round_ends_the_read(sequences: list[str]) -> None:
    """Full pages without end would fill a disk, and one that stays where it is has more than it gives."""
    pages = [
        Answer({"results": [row(number) for number in range(changes.FIRST_ROWS * 80)], "last_seq": last})
        for last in sequences
    ]
    with scripted(*pages, *pages, Answer({"results": [], "last_seq": "0"})) as server:
        with pytest.raises(GatewayError, match="goes round"):
            read(server, documents=False)
        assert len(server.asked) <= len(sequences) + 1


def test_an_empty_feed_is_explained() -> None:
    """Nobody synced or no role; or documents outside the channels asked for."""
    with scripted(Answer({"results": [{"seq": 1, "id": "_user/spark"}], "last_seq": "1"})) as server:
        assert "lacks the role" in access.why_empty(Gateway.at(server.url))
    with scripted(feed([row(1)])) as server:
        assert "is deploy/couchbase/sync.js its sync function" in access.why_empty(Gateway.at(server.url))
