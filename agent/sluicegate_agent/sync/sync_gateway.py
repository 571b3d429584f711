"""A Sync Gateway as a sync target: chunks by `_bulk_docs`, each with a verdict of its own, never another revision.

What is there already is fetched and compared: the same content is success, other content is refused for good, which is
an alarm. What a person has to mend at the gateway (a password, a right, its sync function) only waits. A document that
is too large goes in two halves (`splitting`).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from sluicegate_agent.sync.access import access
from sluicegate_agent.sync.connection import Answer, Connection, Unanswered, tls
from sluicegate_agent.sync.contract import Document, Outcome, unfit
from sluicegate_agent.sync.splitting import content, halves, missing

if TYPE_CHECKING:
    from sluicegate_agent.config import Config

#: Bytes of documents in one request, about: a gateway holds it whole, and a slow link should see progress.
GROUP = 1 << 20
OTHER_BYTES = "other bytes are there under this id"


class Refused(Exception):  # noqa: N818  the gateway refused for now; a person may have to look
    """The gateway answered, and did not take it: for now."""

    def __init__(self, reason: str, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class Login(Protocol):
    """How a request says who asks."""

    def headers(self, connection: Connection) -> Mapping[str, str]:
        """What to send along. Raises Refused, Unanswered."""
        ...

    def renew(self) -> bool:
        """It was not accepted: whether trying anew may help."""
        ...


class Basic:
    """Name and password with every request; nothing where there is no password (a gateway's guest)."""

    def __init__(self, name: str, secret: str | None) -> None:
        told = base64.b64encode(f"{name}:{secret}".encode()).decode()
        self._headers = {} if secret is None else {"Authorization": f"Basic {told}"}

    def headers(self, connection: Connection) -> Mapping[str, str]:
        """The same each time."""
        return self._headers

    def renew(self) -> bool:
        """Another time would say the same."""
        return False


class Session:
    """Name and password once, for a cookie that stands for them until it expires."""

    def __init__(self, name: str, secret: str) -> None:
        self._told = json.dumps({"name": name, "password": secret}).encode()
        self._cookie = ""

    def headers(self, connection: Connection) -> Mapping[str, str]:
        """The cookie, fetched where there is none."""
        if not self._cookie:
            answer = connection.ask("POST", "/_session", [self._told])
            if answer.status != 200:
                raise _refused(answer, connection)
            self._cookie = answer.headers.get("Set-Cookie", "").partition(";")[0]
        return {"Cookie": self._cookie}

    def renew(self) -> bool:
        """Forget the cookie; whether there was one."""
        had, self._cookie = self._cookie, ""
        return bool(had)


class SyncGatewayTarget:
    """Chunks into a gateway's database, as the user that `login` stands for."""

    def __init__(self, connection: Connection, login: Login) -> None:
        self.connection, self.login = connection, login

    def put(self, documents: Sequence[Document]) -> Outcome:
        """Store each document; where the gateway does not answer or refuses for now, the rest waits."""
        accepted: list[str] = []
        rejected: dict[str, str] = {}
        try:
            for name, reason in self._settled([*dict.fromkeys(documents)]):
                if reason:
                    rejected[name] = reason
                else:
                    accepted.append(name)
        except Refused as refused:
            return Outcome(tuple(accepted), rejected, refused.retry_after, str(refused))
        except Unanswered as unanswered:
            return Outcome(tuple(accepted), rejected, 0.0, str(unanswered))
        return Outcome(tuple(accepted), rejected)

    def close(self) -> None:
        """Let the connection go."""
        self.connection.close()

    def _settled(self, documents: Sequence[Document]) -> Iterator[tuple[str, str]]:
        """Each document's id with why the gateway will never take it, empty where it has it now."""
        fit = []
        for document in documents:
            if reason := unfit(document):
                yield document.id, reason
            else:
                fit.append(document)
        for group in _groups(fit):
            yield from self._group(group)

    def _group(self, group: list[Document]) -> Iterator[tuple[str, str]]:
        rows = self._posted(group)
        if rows is None and len(group) > 1:
            yield from self._group(group[: len(group) // 2])
            yield from self._group(group[len(group) // 2 :])
            return
        waits: Refused | None = None
        for document in group:
            try:
                row = {"status": 413} if rows is None else rows.get(document.id, {})
                yield document.id, self._verdict(document, row)
            except Refused as refused:
                waits = refused
        if waits is not None:
            raise waits

    def _posted(self, group: list[Document]) -> dict[str, Any] | None:
        """The gateway's answer for each id; None where the request is too large for it."""
        answer = self._asked("POST", "/_bulk_docs", [*_bulk(group)])
        if answer.status == 413:
            return None
        if answer.status != 201:
            raise _refused(answer, self.connection)
        try:
            return {row["id"]: row for row in json.loads(answer.body)}
        except (ValueError, KeyError, TypeError):
            raise Unanswered(f"{self.connection.place}: an answer that is none of a Sync Gateway") from None

    def _verdict(self, document: Document, row: dict[str, Any]) -> str:
        status = str(row.get("status", ""))  # a number, but "413" is a text
        if "rev" in row and not status:
            return ""
        if status == "409":
            return self._compared(document)
        if status == "413":
            parts = halves(document)
            alone = f"{len(document.data)} bytes in one bucket are more than the gateway takes"
            return alone if parts is None else self._all(parts)
        reason = row.get("reason") or row.get("error") or "no verdict on it"
        raise Refused(f"the gateway does not take {document.id} (status {status or '-'}: {reason}); {_HINTS[403]}")

    def _compared(self, document: Document) -> str:
        """What the gateway has under the id: the same, the first part of it, or something else."""
        answer = self._asked("GET", "/" + quote(document.id, safe=""))
        if answer.status != 200:
            raise _refused(answer, self.connection)
        rest = missing(document, content(answer.body))
        return OTHER_BYTES if rest is None else self._all(rest)

    def _all(self, parts: Iterable[Document]) -> str:
        """Store all parts of a document; the first reason why one is never taken."""
        return next((reason for _, reason in self._settled([*parts]) if reason), "")

    def _asked(self, method: str, path: str, pieces: Sequence[bytes] = ()) -> Answer:
        """The answer; a session that has expired is renewed once."""
        while True:
            answer = self.connection.ask(method, path, pieces, self.login.headers(self.connection))
            if answer.status != 401 or not self.login.renew():
                return answer


_HINTS = {
    401: "check sync.username and the password",
    403: "check the user's name and channels, and the database's sync function",
    404: "check sync.url: it ends with the database's name",
    429: "it is busy",
    503: "it is starting, or its database is offline",
}


def _refused(answer: Answer, connection: Connection) -> Refused:
    reason = _said(answer.body)
    hint = _HINTS.get(answer.status, "see the gateway's log")
    asked = answer.headers.get("Retry-After", "")
    wait = float(asked) if asked.isdigit() else 0.0
    return Refused(f"{connection.place}: refused with {answer.status}{reason}; {hint}", min(wait, 3600.0))


def _said(body: bytes) -> str:
    """The reason in an answer's body, short, for people; a proxy's page says nothing to them."""
    try:
        found = json.loads(body)
        return f" ({str(found['reason'])[:200]})"
    except (ValueError, KeyError, TypeError):
        return ""


def _bulk(group: Sequence[Document]) -> Iterator[bytes]:
    """The body of `_bulk_docs`: each document's own bytes, with its id before them."""
    before = b'{"docs":['
    for document in group:
        yield before + b'{"_id":' + json.dumps(document.id).encode() + (b"" if document.data == b"{}" else b",")
        yield document.data[1:]
        before = b","
    yield b"]}"


def _groups(documents: Iterable[Document]) -> Iterator[list[Document]]:
    group: list[Document] = []
    held = 0
    for document in documents:
        if group and held + len(document.data) > GROUP:
            yield group
            group, held = [], 0
        group.append(document)
        held += len(document.data)
    if group:
        yield group


def from_config(config: Config) -> SyncGatewayTarget:
    """The target that [sync] describes; a replicator's URL stands for its REST one.

    Raises EnvironmentRefused for a missing secret or certificate.
    """
    sync, url, name, secret = access(config)
    context, pin = tls(sync.tls.ca_file, sync.tls.pin_file) if sync.uses_tls else (None, None)
    connection = Connection(rest_url(url), context, pin, sync.timeout.seconds)
    login = Session(name, secret) if sync.auth == "session" and secret is not None else Basic(name, secret)
    return SyncGatewayTarget(connection, login)


def rest_url(url: str) -> str:
    """The REST address of a replicator's: the same host, port and database."""
    scheme, separator, rest = url.partition("://")
    return {"wss": "https", "ws": "http"}.get(scheme, scheme) + separator + rest
