"""A small stand-in for a Sync Gateway, for machines without one: the public and admin REST calls that we use.

It behaves as was seen of the real one (4.0, Community Edition); the suites run on both, so that this stays true. What
it took survives `kill`, as with the real one on disk.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import secrets
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from gateway import databases, rule
from gateway.feed import changes

LARGEST = 20 << 20


class Stop(Exception):  # noqa: N818  an answer on its way out
    """The status and body to answer with."""

    def __init__(self, status: int, error: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.body = status, {"error": error, "reason": reason}


class Database:
    """Documents with their revision, channels and sequence; users and their sessions."""

    def __init__(self, function: rule.Rule, users: dict[str, Any], roles: dict[str, Any]) -> None:
        self.function, self.users, self.roles = function, users, roles
        self.documents: dict[str, dict[str, Any]] = {}
        self.log: dict[str, tuple[int, str, list[str]]] = {}
        self.sessions: dict[str, str] = {}
        self.sequence = len(users)  # making a user takes one too
        self.lock = threading.Condition()

    def channels_of(self, user: str) -> set[str]:
        """What a user may read."""
        found = self.users[user]
        holders = [found, *(self.roles.get(role, {}) for role in found.get("admin_roles", []))]
        return {channel for holder in holders for channel in holder.get("admin_channels", [])}

    def described(self, user: str | None) -> dict[str, Any]:
        """A session: the channels of the user itself, not those of its roles."""
        mine = self.users[user].get("admin_channels", []) if user else ["*"]
        return {"ok": True, "userCtx": {"name": user, "channels": dict.fromkeys([*mine, "!"], 1)}}

    def delete(self, name: str) -> dict[str, Any]:
        """Leave a tombstone, at the feed's end."""
        with self.lock:
            del self.documents[name]
            self.sequence += 1
            self.log[name] = self.sequence, "2-0", self.log.pop(name)[2]
        return {"id": name, "ok": True, "rev": "2-0"}

    def may_read(self, user: str | None, name: str) -> bool:
        """Whether a user may read a document; None is the administrator."""
        mine = {"*"} if user is None else self.channels_of(user)
        return "*" in mine or bool(mine & set(self.log[name][2]))

    def store(self, user: str | None, document: Any, largest: int) -> dict[str, Any]:
        """The row of `_bulk_docs` for one document."""
        name = document.get("_id", "")
        if not name or name.startswith("_"):
            return _row(name, "Bad Request", 400, "_id is not allowed")
        if len(json.dumps(document, separators=(",", ":"))) > largest:
            return _row(name, "document too large!", "413", "Document too large!")
        with self.lock:
            if name in self.documents and document.get("_rev") != self.log[name][1]:
                return _row(name, "conflict", 409, "Document exists")
            if name in self.documents and self.function is rule.telemetry:
                return _row(name, "Forbidden", 403, "a chunk is written once and never changed")
            try:
                channels = self.function(document, user, self.channels_of(user) if user else {"*"})
            except rule.Forbidden as forbidden:
                return _row(name, "Forbidden", 403, str(forbidden))
            body = {key: value for key, value in document.items() if key[:1] != "_"}
            self.sequence += 1
            revision = "1-" + hashlib.md5(json.dumps(body).encode(), usedforsecurity=False).hexdigest()
            self.documents[name] = body
            self.log[name] = self.sequence, revision, channels
            self.lock.notify_all()
        return {"id": name, "rev": revision}


def _row(name: str, error: str, status: int | str, reason: str) -> dict[str, Any]:
    return {"id": name, "error": error, "status": status, "reason": reason}


def _listed(database: Database, user: str | None, name: str) -> dict[str, Any]:
    """A row of `_all_docs`."""
    if name not in database.documents:
        return {"key": name, "error": "not_found", "status": 404}
    if not database.may_read(user, name):
        return {"key": name, "error": "forbidden", "status": 403}
    return {"key": name, "id": name, "value": {"rev": database.log[name][1]}}


class StandIn:
    """A gateway of two databases, with the attributes of `SyncGateway`.

    largest       bytes of a document, beyond which it is 413
    largest_body  bytes of a whole request, as a proxy before a gateway limits it
    rude          a request over largest_body is answered without being read, and the connection closed
    busy          so many requests are answered with 503
    lost_answers  so many requests are carried out, and the connection closed instead of answering
    """

    real = False

    def __init__(self, folder: Path | None = None, *, disk: bool = True, tls: tuple[Path, Path] | None = None) -> None:
        """`tls`: certificate and key of both interfaces."""
        self._tls = tls
        shards = {"reader": {"admin_channels": databases.SHARDS}}
        self.databases = {
            databases.TELEMETRY: Database(rule.telemetry, databases.users(), shards),
            databases.PLAIN: Database(rule.plain, databases.plain_users(), {"any": {"admin_channels": ["*"]}}),
        }
        self.largest, self.largest_body, self.busy, self.lost_answers = LARGEST, 1 << 40, 0, 0
        self.rude = False
        self.requests: list[str] = []
        self._ports = [0, 0]
        self._servers: list[ThreadingHTTPServer] = []
        self.public_url = self.admin_url = ""

    def start(self) -> Self:
        """Listen, at the same ports as before."""
        self._servers = [_Server(("127.0.0.1", port), self, admin) for admin, port in enumerate(self._ports)]
        self._ports = [server.server_address[1] for server in self._servers]
        scheme = "https" if self._tls else "http"
        self.public_url, self.admin_url = (f"{scheme}://127.0.0.1:{port}" for port in self._ports)
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def kill(self) -> None:
        """Stop listening; connections end with their request."""
        for server in self._servers:
            server.shutdown()
            server.server_close()
        self._servers = []

    def documents_of(self, database: str) -> dict[str, dict[str, Any]]:
        """Every document of a database by id."""
        return dict(self.databases[database].documents)

    def revisions_of(self, database: str) -> dict[str, str]:
        """The current revision of every document, by id."""
        return {name: revision for name, (_, revision, _) in self.databases[database].log.items()}

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], gateway: StandIn, admin: int) -> None:
        self.gateway, self.admin = gateway, bool(admin)
        super().__init__(address, _Handler)
        if gateway._tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*gateway._tls)
            # The handshake belongs to the connection's own thread: one that hangs must not hold the others up.
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, request: Any, address: Any) -> None:
        """A client that goes away, or does not trust us, is no error here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def _any(self) -> None:
        gateway = self.server.gateway
        try:
            length = int(self.headers.get("Content-Length") or 0)
            if gateway.rude and length > gateway.largest_body:
                return self._turn_away()
            body = self.rfile.read(length)
            gateway.requests.append(f"{self.command} {self.path}")
            if gateway.busy:
                gateway.busy -= 1
                return self._answer(503, {"error": "Service Unavailable", "reason": "busy"}, {"Retry-After": "7"})
            status, answer, headers = self._routed(gateway, body)
        except Stop as stop:
            status, answer, headers = stop.status, stop.body, {}
        if gateway.lost_answers:
            gateway.lost_answers -= 1
            self.close_connection = True
            return None
        return self._answer(status, answer, headers)

    def _turn_away(self) -> None:
        self._answer(413, {"error": "Request Entity Too Large", "reason": "too large"}, {"Connection": "close"})
        self.wfile.flush()
        self.close_connection = True

    do_GET = do_POST = do_PUT = do_DELETE = _any  # noqa: N815  the names that http.server calls

    def _answer(self, status: int, answer: Any, headers: dict[str, str]) -> None:
        data = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(status)
        if "gzip" in self.headers.get("Accept-Encoding", "") and len(data) > 1000:
            data = gzip.compress(data, 1)
            self.send_header("Content-Encoding", "gzip")
        for key, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)

    def _routed(self, gateway: StandIn, body: bytes) -> tuple[int, Any, dict[str, str]]:
        parts = urlsplit(self.path)
        name, _, rest = parts.path.lstrip("/").partition("/")
        if not name:
            return 200, {"couchdb": "Welcome"}, {}
        database = gateway.databases.get(name)
        if database is None:
            raise Stop(404, "not_found", "no such database")
        if len(body) > gateway.largest_body:
            raise Stop(413, "Request Entity Too Large", "too large")
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if self.command == "POST" and rest == "_session":
            return self._session(database, self._json(body))
        user = None if self.server.admin else self._user(database)
        if rest in ("", "_session"):
            return 200, database.described(user) if rest else {"db_name": name, "update_seq": database.sequence}, {}
        if self.command == "DELETE" and self.server.admin:
            return 200, database.delete(unquote(rest)), {}
        if self.command == "POST" and rest == "_bulk_docs":
            documents = self._json(body).get("docs", [])
            return 201, [database.store(user, document, gateway.largest) for document in documents], {}
        if self.command == "POST" and rest == "_all_docs":
            return 200, {"rows": [_listed(database, user, name) for name in self._json(body).get("keys", [])]}, {}
        if self.server.admin and rest.startswith(("_user/", "_role/")):
            return self._principal(database, rest, body)
        if rest == "_changes":
            return 200, changes(database, user, query), {}
        return self._document(database, user, unquote(rest))

    def _json(self, body: bytes) -> Any:
        if "json" not in self.headers.get("Content-Type", ""):
            raise Stop(415, "Unsupported Media Type", "Invalid content type")
        try:
            packed = self.headers.get("Content-Encoding") == "gzip"
            return json.loads(gzip.decompress(body) if packed else body)
        except (ValueError, OSError, EOFError):
            raise Stop(400, "Bad Request", "Bad JSON") from None

    def _session(self, database: Database, asked: Any) -> tuple[int, Any, dict[str, str]]:
        user = database.users.get(asked.get("name"))
        if user is None or user["password"] != asked.get("password"):
            raise Stop(401, "Unauthorized", "Invalid login")
        token = secrets.token_hex(16)
        database.sessions[token] = asked["name"]
        cookie = {"Set-Cookie": f"SyncGatewaySession={token}; Path=/; HttpOnly"}
        return 200, {"ok": True, "userCtx": {"name": asked["name"]}}, cookie

    def _user(self, database: Database) -> str:
        for cookie in self.headers.get("Cookie", "").split("; "):
            name, _, token = cookie.partition("=")
            if name == "SyncGatewaySession" and token in database.sessions:
                return database.sessions[token]
        kind, _, told = self.headers.get("Authorization", "").partition(" ")
        name, _, password = base64.b64decode(told).decode().partition(":") if kind == "Basic" else ("", "", "")
        if name not in database.users or database.users[name]["password"] != password:
            raise Stop(401, "Unauthorized", "Invalid login" if kind else "Login required")
        return name

    def _document(self, database: Database, user: str | None, name: str) -> tuple[int, Any, dict[str, str]]:
        if self.command != "GET":
            raise Stop(405, "Method Not Allowed", "not of this stand-in")
        if name not in database.documents:
            raise Stop(404, "not_found", "missing")
        if not database.may_read(user, name):
            raise Stop(403, "Forbidden", "forbidden")
        return 200, {"_id": name, "_rev": database.log[name][1], **database.documents[name]}, {}

    def _principal(self, database: Database, rest: str, body: bytes) -> tuple[int, Any, dict[str, str]]:
        kind, _, name = unquote(rest).partition("/")
        table = database.users if kind == "_user" else database.roles
        if self.command == "GET":
            if name not in table:
                raise Stop(404, "not_found", "missing")
            return 200, {"name": name, **{key: table[name][key] for key in table[name] if key != "password"}}, {}
        status = 200 if name in table else 201
        asked = self._json(body)
        if len(asked.get("password", "xxx")) < 3:
            raise Stop(400, "Bad Request", "passwords must be at least three 3 characters")
        table[name] = table.get(name, {}) | asked
        return status, None, {}
