"""What the deployed sync function lets through, on the real gateway and (its Python twin) on the stand-in."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from chunked import document, target
from gateway.rule import shard_of

from gateway import Gateway, databases
from sluicegate_agent.sync.sync_gateway import SyncGatewayTarget


def asked(gateway: Gateway, user: str, body: dict[str, Any], *, new_edits: bool = True) -> Any:
    """The gateway's row for one document that `user` writes by `_bulk_docs`."""
    one = target(gateway.public_url, databases.TELEMETRY, user, basic=True)
    told = json.dumps({"docs": [body], "new_edits": new_edits}).encode()
    answer = one.connection.ask("POST", "/_bulk_docs", [told], one.login.headers(one.connection))
    assert answer.status == 201, answer.body
    rows = json.loads(answer.body)
    return rows[0] if rows else None


def got(gateway: Gateway, user: str, path: str) -> tuple[int, Any]:
    """What `user` reads at a path of the database."""
    one: SyncGatewayTarget = target(gateway.public_url, databases.TELEMETRY, user, basic=True)
    answer = one.connection.ask("GET", path, headers=one.login.headers(one.connection), most=2 << 20)
    return answer.status, json.loads(answer.body)


def body_of(device: str = "board-1", **changed: Any) -> dict[str, Any]:
    """A chunk as a gateway takes it, with keys changed; None takes one out."""
    body = json.loads(document(3, device=device).data)
    body = {"_id": body["id"], **body, **changed}
    return {key: value for key, value in body.items() if value is not None}


def test_a_device_adds_its_own(gateway: Gateway) -> None:
    """Each device under its own name, whatever the stream and the number of buckets."""
    for device in databases.DEVICES:
        sent = [document(n, device=device, stream=stream) for n, stream in ((1, "level"), (40, "flow.in"))]
        one = target(gateway.public_url, databases.TELEMETRY, device)
        assert set(one.put(sent).accepted) == {each.id for each in sent}
    assert len(gateway.documents_of(databases.TELEMETRY)) == 4


@pytest.mark.parametrize("user", ["board-2", databases.READER])
def test_nobody_writes_as_another(gateway: Gateway, user: str) -> None:
    """A device, and a reader, in the name of another device."""
    row = asked(gateway, user, body_of("board-1"))
    assert row["status"] == 403
    assert gateway.documents_of(databases.TELEMETRY) == {}


def test_an_id_does_not_hide_another_device(gateway: Gateway) -> None:
    """Its own name inside, another's in the id, and the other way round."""
    theirs = body_of("board-2")
    for body in (body_of(_id=theirs["_id"]), body_of(id=theirs["id"], _id=theirs["_id"]), body_of(device="board-2")):
        assert asked(gateway, "board-1", body)["status"] == 403
    assert gateway.documents_of(databases.TELEMETRY) == {}


def test_nothing_is_changed_or_deleted(gateway: Gateway) -> None:
    """By its own device neither: with the right revision, as a deletion, or as a revision made up elsewhere."""
    before = body_of()
    assert "rev" in asked(gateway, "board-1", before)
    _, stored = got(gateway, "board-1", "/" + before["_id"])
    revision = stored["_rev"]
    tries = [before | {"_rev": revision, "gap": 1}]
    if gateway.real:
        tries.append({"_id": before["_id"], "_rev": revision, "_deleted": True})
    for body in tries:
        assert asked(gateway, "board-1", body)["status"] == 403
    assert asked(gateway, "board-1", before | {"gap": 1})["status"] == 409
    if gateway.real:
        revisions = {"start": 2, "ids": ["ab" * 16, revision.partition("-")[2]]}
        forged = before | {"_rev": "2-" + "ab" * 16, "_revisions": revisions, "gap": 1}
        assert asked(gateway, "board-1", forged, new_edits=False)["status"] == 403
    assert got(gateway, "board-1", "/" + before["_id"])[1] == stored


def raw(gateway: Gateway, user: str, method: str, path: str, data: bytes) -> tuple[int, Any]:
    """What `user` is answered who sends these very bytes."""
    one: SyncGatewayTarget = target(gateway.public_url, databases.TELEMETRY, user, basic=True)
    headers = one.login.headers(one.connection) | {"Content-Type": "application/json"}
    answer = one.connection.ask(method, path, [data], headers)
    return answer.status, json.loads(answer.body) if answer.body else None


DIGITS, NESTED = "9" * 5_000, "[" * 980 + "]" * 980


@pytest.mark.parametrize("value", [DIGITS, "9" * 20, NESTED], ids=["5,000 digits", "20 digits", "980 deep"])
def test_no_number_or_nest_comes_in_that_a_reader_cannot_read(real_gateway: Gateway, value: str) -> None:
    """Bytes that Python's JSON reader refuses: they would stop whoever reads a page of the feed with them."""
    real_gateway.purge()  # type: ignore[attr-defined]
    body = body_of(health={"a": "@"})
    told = json.dumps(body).replace('"@"', value).encode()
    status, answer = raw(real_gateway, "board-1", "PUT", "/" + body["_id"], told)
    assert (status, "sluicegate: health" in answer["reason"]) == (403, True)
    assert real_gateway.documents_of(databases.TELEMETRY) == {}


def test_a_reader_of_a_device_s_name_writes_nothing(real_gateway: Gateway) -> None:
    """The administrator named a reader as a board is named: it reads all, and adds no chunk of that board."""
    gateway = real_gateway
    gateway.purge()  # type: ignore[attr-defined]
    user = {"password": databases.PASSWORD, "admin_roles": ["reader"]}
    gateway.admin("PUT", f"/{databases.TELEMETRY}/_user/board-9", user)  # type: ignore[attr-defined]
    row = asked(gateway, "board-9", body_of("board-9"))
    assert (row["status"], gateway.documents_of(databases.TELEMETRY)) == (403, {})


def test_what_no_sync_function_can_refuse_is_as_the_page_says(real_gateway: Gateway) -> None:
    """gateway.md, "What a gateway cannot refuse": should one day any of it be refused, the page is wrong."""
    body = body_of()
    held = json.dumps({"a": "x" * 1_000_000}).encode()
    assert raw(real_gateway, "board-1", "PUT", "/_local/mine", held)[0] == 201
    status, found = got(real_gateway, "board-2", "/_local/mine")
    assert (status, found["_rev"]) == (200, "0-1")
    assert raw(real_gateway, "board-2", "PUT", "/_local/mine", json.dumps({"_rev": "0-1"}).encode())[0] == 201
    assert raw(real_gateway, databases.READER, "DELETE", "/_local/mine?rev=0-2", b"")[0] == 200
    real_gateway.purge()  # type: ignore[attr-defined]
    attached = body | {"_attachments": {"x": {"data": "QUJD" * 250_000}}}
    assert raw(real_gateway, "board-1", "PUT", "/" + body["_id"], json.dumps(attached).encode())[0] == 201


MALFORMED: dict[str, dict[str, Any]] = {
    "another type": {"type": "note"},
    "a newer format": {"format": 4, "codec": "columns-4"},
    "another codec": {"codec": "columns-9"},
    "a key too many": {"colour": "red"},
    "no data": {"data": None},
    "no center": {"center": None},
    "data that is no base64": {"data": "{}{}"},
    "data of another length": {"data": "abc"},
    "a text for a number": {"readings": "12"},
    "a part of a reading": {"readings": 12.5},
    "no bucket": {"buckets": 0},
    "more buckets than readings": {"buckets": 65, "readings": 64},
    "too many buckets": {"buckets": 65537, "readings": 99999999},
    "times that go back": {"t_first": 5, "t_last": 4},
    "a checksum out of range": {"crc32": 2**32},
    "health that is a list": {"health": [1]},
    "health nested deeply": {"health": {"a": {"a": {"a": {"a": {"a": 1}}}}}},
    "health of many values": {"health": {str(n): n for n in range(1025)}},
    "a long text in health": {"health": {"a": "x" * 1025}},
    "a key that is none": {"format": 3, "codec": "columns-2", "key": "mine"},
    "a key before format 3": {"key": "0" * 32},
    "a first that is not the id's": {"first": 8},
    "an incarnation that is not the id's": {"incarnation": "0" * 16},
    "a stream that is not the id's": {"stream": "flow"},
}


@pytest.mark.parametrize("what", MALFORMED)
def test_nothing_malformed_comes_in(gateway: Gateway, what: str) -> None:
    """Only the shape of docs/reference/format.md, each field of it."""
    row = asked(gateway, "board-1", body_of(**MALFORMED[what]))
    assert row["status"] == 403, row
    assert gateway.documents_of(databases.TELEMETRY) == {}


def test_no_device_lets_its_chunks_expire(real_gateway: Gateway) -> None:
    """How long a chunk stays is the sync function's to say."""
    real_gateway.purge()  # type: ignore[union-attr]
    body = body_of(_exp=60)
    assert "rev" in asked(real_gateway, "board-1", body)
    _, stored = real_gateway.admin("GET", f"/{databases.TELEMETRY}/{body['_id']}?show_exp=true")  # type: ignore[union-attr]
    assert "_exp" not in stored


def test_readers_read_by_shard_and_devices_their_own(gateway: Gateway) -> None:
    """Each chunk is in its device's channel and in one shard; a device sees nothing of another."""
    sent = [document(1, first=8 * n, device=device) for n in range(20) for device in databases.DEVICES]
    for device in databases.DEVICES:
        mine = [each for each in sent if each.id.startswith(device)]
        assert len(target(gateway.public_url, databases.TELEMETRY, device).put(mine).accepted) == 20
    end = time.monotonic() + 60
    while len(seen := _in_shards(gateway)) < len(sent) and time.monotonic() < end:
        time.sleep(0.05)  # a real gateway feeds a moment after it has stored
    assert sorted(seen) == sorted(each.id for each in sent)
    assert got(gateway, "board-2", "/" + sent[0].id)[0] == 403
    assert got(gateway, "board-1", "/" + sent[0].id)[0] == 200
    _, answer = got(gateway, "board-2", "/_changes")
    assert {row["id"].partition("::")[0] for row in answer["results"]} - {"_user/board-2"} == {"board-2"}


def _in_shards(gateway: Gateway) -> list[str]:
    """What the reader sees, shard after shard."""
    seen: list[str] = []
    for shard in databases.SHARDS:
        query = f"/_changes?filter=sync_gateway/bychannel&channels={shard}&include_docs=true"
        _, answer = got(gateway, databases.READER, query)
        rows = [row for row in answer["results"] if not row["id"].startswith("_user/")]
        assert {shard_of(row["id"]) for row in rows} <= {shard}
        assert all(row["doc"]["id"] == row["id"] for row in rows)
        seen += [row["id"] for row in rows]
    return seen


def test_shards_are_about_equally_full() -> None:
    """One stream of one device spreads over all shards: reading it in parallel pays."""
    names = [f"board-1::level::00060a24181e4000::{n * 4096:016d}" for n in range(4000)]
    counts = [sum(shard_of(name) == shard for name in names) for shard in databases.SHARDS]
    assert 0.7 * 250 < min(counts) <= max(counts) < 1.4 * 250
