"""What we build on of a Sync Gateway's REST interface, held on a real one; the stand-in has to behave the same."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import threading
import time
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from gateway import Gateway, databases

READER, DEVICE, OTHER = databases.READER, *databases.DEVICES


class Client:
    """Requests to the `plain` database as one user, or to the admin interface."""

    def __init__(self, gateway: Gateway) -> None:
        self.port = urlsplit(gateway.public_url).port

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        user: str | None = DEVICE,
        password: str = databases.PASSWORD,
        database: str = databases.PLAIN,
        **headers: str,
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, decoded answer, headers; a body of bytes goes as it is, anything else as JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} if data is not None else {}
        if user is not None:
            sent["Authorization"] = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        sent |= {key.replace("_", "-"): value for key, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, f"/{database}{path}", data, sent)
            response = connection.getresponse()
            answer = response.read()
            if response.getheader("Content-Encoding") == "gzip":
                answer = gzip.decompress(answer)
            return response.status, json.loads(answer) if answer else None, dict(response.getheaders())
        finally:
            connection.close()

    def bulk(self, *documents: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
        """The rows of `_bulk_docs`."""
        status, rows, _ = self.ask("POST", "/_bulk_docs", {"docs": documents}, **options)
        assert status == 201
        return list(rows)

    def changes(self, query: str = "", **options: Any) -> tuple[list[dict[str, Any]], str]:
        """The rows of `_changes` without the user's own, and `last_seq`."""
        status, answer, _ = self.ask("GET", f"/_changes?{query}", **options)
        assert status == 200
        return [row for row in answer["results"] if _asked_for(row["id"], **options)], answer["last_seq"]

    def fed(self, count: int, query: str = "", **options: Any) -> list[dict[str, Any]]:
        """The rows of `_changes` once there are `count`: a real gateway feeds a moment after it has stored."""
        end = time.monotonic() + 60
        while len(rows := self.changes(query, **options)[0]) < count and time.monotonic() < end:
            time.sleep(0.05)
        return rows


def _asked_for(name: str, database: str = databases.PLAIN, **_: Any) -> bool:
    """Neither the user's own row nor, where all may write, what a target's test left on its way when it ended."""
    return name.startswith("a::b::c::") if database == databases.PLAIN else not name.startswith("_")


@pytest.fixture
def client(gateway: Gateway) -> Client:
    """Of either gateway, with nothing stored."""
    return Client(gateway)


def doc(name: str, **fields: Any) -> dict[str, Any]:
    """A document."""
    return {"_id": f"a::b::c::{name}", "n": 1, **fields}


def test_each_document_has_a_verdict_of_its_own(client: Client) -> None:
    """201 for the request; a new one has a revision, a known one 409, one that cannot be 400; the others are stored."""
    (first,) = client.bulk(doc("1"))
    assert first["id"] == "a::b::c::1"
    assert first["rev"].startswith("1-")
    assert "status" not in first
    known, bad, new = client.bulk(doc("1", n=2), {"_id": "_no", "n": 1}, doc("2"))
    assert (known["error"], known["status"], known["id"]) == ("conflict", 409, "a::b::c::1")
    assert bad["status"] == 400
    assert new["rev"].startswith("1-")
    assert client.ask("GET", "/" + quote("a::b::c::1", safe=""))[1]["n"] == 1


def test_the_same_again_is_a_conflict_too(client: Client) -> None:
    """The gateway does not compare: the sender has to."""
    client.bulk(doc("1"))
    assert client.bulk(doc("1"))[0]["status"] == 409


def test_gzip_is_taken_and_given(client: Client) -> None:
    """A deflated request body."""
    packed = gzip.compress(json.dumps({"docs": [doc("1", text="x" * 5000)]}).encode())
    status, rows, _ = client.ask("POST", "/_bulk_docs", packed, Content_Encoding="gzip")
    assert (status, rows[0]["id"]) == (201, "a::b::c::1")
    client.fed(1)
    query = "/_changes?include_docs=true"
    status, answer, _ = client.ask("GET", query, Accept_Encoding="gzip")
    assert [row["doc"]["text"] for row in answer["results"] if "text" in row.get("doc", {})] == ["x" * 5000]


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [(b'{"docs":[', "application/json", {400}), (b'{"docs":[]}', "text/plain", {400, 415})],
)
def test_what_is_no_json_is_refused(client: Client, body: bytes, kind: str, expected: set[int]) -> None:
    """Cut short, or said to be something else."""
    assert client.ask("POST", "/_bulk_docs", body, Content_Type=kind)[0] in expected


@pytest.mark.parametrize(("user", "password"), [(None, ""), (DEVICE, "wrong"), ("nobody", "letmein")])
def test_who_is_not_known_is_401(client: Client, user: str | None, password: str) -> None:
    """No credentials, wrong ones, an unknown user: the same status, before anything is looked at."""
    for method, path, body in (("POST", "/_bulk_docs", {"docs": [doc("1")]}), ("GET", "/a", None)):
        assert client.ask(method, path, body, user=user, password=password)[0] == 401


def test_a_session_stands_for_its_user(client: Client) -> None:
    """A cookie for name and password; a wrong password is 401, a cookie made up too."""
    told = {"name": DEVICE, "password": databases.PASSWORD}
    status, _, headers = client.ask("POST", "/_session", told, user=None)
    assert status == 200
    cookie = headers["Set-Cookie"].partition(";")[0]
    assert cookie.startswith("SyncGatewaySession=")
    status, rows, _ = client.ask("POST", "/_bulk_docs", {"docs": [doc("1")]}, user=None, Cookie=cookie)
    assert (status, rows[0]["id"]) == (201, "a::b::c::1")
    assert client.ask("POST", "/_session", {**told, "password": "wrong"}, user=None)[0] == 401
    assert client.ask("GET", "/x", user=None, Cookie="SyncGatewaySession=" + "0" * 40)[0] == 401


def test_what_is_not_there(client: Client) -> None:
    """404 for a document; for a database, with or without a user there."""
    status, answer, _ = client.ask("GET", "/nothing")
    assert (status, answer["reason"]) == (404, "missing")
    assert client.ask("GET", "/x", database="nowhere")[0] in (401, 404)


def test_another_channel_is_403(gateway: Gateway, client: Client) -> None:
    """Reading needs the channel, by id and in the feed."""
    from chunked import document

    told = json.loads(document(1).data)
    client.bulk({"_id": told["id"], **told}, database=databases.TELEMETRY)
    at = "/" + quote(told["id"], safe="")
    asked = {"database": databases.TELEMETRY}
    assert [client.ask("GET", at, user=user, **asked)[0] for user in (DEVICE, OTHER, READER)] == [200, 403, 200]
    assert [len(client.fed(count, user=user, **asked)) for user, count in ((DEVICE, 1), (READER, 1), (OTHER, 0))] == [
        1,
        1,
        0,
    ]


def test_the_feed_is_read_in_pages_and_resumed(client: Client) -> None:
    """`limit` and `since` give each document once, in order of sequence; `last_seq` is a text."""
    client.bulk(*(doc(f"{n:02d}") for n in range(25)))
    client.fed(25)
    seen, since = [], "0"
    while True:
        rows, last = client.changes(f"since={since}&limit=10")
        assert isinstance(last, str)
        if not rows:
            break
        assert len(rows) <= 10
        seen += [row["id"] for row in rows]
        since = last
    assert seen == [f"a::b::c::{n:02d}" for n in range(25)]
    client.bulk(doc("99"))
    rows = client.fed(1, f"since={since}&include_docs=true")
    assert [(row["id"], row["doc"]["n"], row["doc"]["_id"]) for row in rows] == [("a::b::c::99", 1, "a::b::c::99")]


def test_the_feed_waits_for_what_comes(client: Client) -> None:
    """`feed=longpoll` answers when there is something after `since`."""
    _, since = client.changes()
    found: list[Any] = []
    waiting = threading.Thread(
        target=lambda: found.append(client.changes(f"since={since}&feed=longpoll&timeout=60000"))
    )
    waiting.start()
    time.sleep(0.2)
    assert not found
    client.bulk(doc("1"))
    waiting.join(60)
    assert [row["id"] for row in found[0][0]] == ["a::b::c::1"]


def test_users_are_made_over_the_admin_interface(gateway: Gateway) -> None:
    """201 for a new one, 200 for a change, its channels in the answer, never its password."""
    admin = Client(gateway)
    admin.port = urlsplit(gateway.admin_url).port
    name = f"made-{time.monotonic_ns()}"
    path = f"/_user/{name}"
    assert admin.ask("GET", path, user=None)[0] == 404
    told = {"name": name, "password": "letmein", "admin_channels": ["one"]}
    assert [admin.ask("PUT", path, told, user=None)[0] for _ in range(2)] == [201, 200]
    _, found, _ = admin.ask("GET", path, user=None)
    assert found["admin_channels"] == ["one"]
    assert "password" not in found
    assert Client(gateway).changes(user=name)[0] == []
    assert admin.ask("PUT", path + "x", {**told, "name": name + "x", "password": "ab"}, user=None)[0] == 400
