"""A Sync Gateway as a sync target: chunks by `_bulk_docs`, each with a verdict of its own, never another revision.

A request has as many bytes as the link carries in a few seconds (`pace`). After one that was not answered the gateway
is asked which of its documents it has before any is sent again. What is there already is fetched and compared: the
same content is success, other content is refused for good, which is an alarm. What a person has to mend at the gateway
(a password, a right, its sync function) only waits. A document that is too large goes in two halves (`splitting`).
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from sluicegate_agent.sync import answers
from sluicegate_agent.sync.access import access
from sluicegate_agent.sync.answers import Verdict
from sluicegate_agent.sync.connection import SHORT_ANSWER, Answer, Connection, Unanswered, tls
from sluicegate_agent.sync.contract import Document, Outcome, unfit
from sluicegate_agent.sync.files import OTHER_BYTES
from sluicegate_agent.sync.pace import Pace
from sluicegate_agent.sync.splitting import content, halves, missing

if TYPE_CHECKING:
    from sluicegate_agent.config import Config

#: Seconds after which a put ends with what was accepted so far, though documents are left.
ENOUGH = 5.0
#: Bytes of an answer for each document that it is about.
_ROW = 4096
_COOKIE = re.compile(r"[!-~]{1,4096}", re.ASCII)


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
            self._cookie = str(answer.headers.get("Set-Cookie") or "").partition(";")[0]
            if not _COOKIE.fullmatch(self._cookie):
                self._cookie = ""
                raise Refused(f"{connection.place}: a session without a cookie; is this a Sync Gateway?")
        return {"Cookie": self._cookie}

    def renew(self) -> bool:
        """Forget the cookie; whether there was one."""
        had, self._cookie = self._cookie, ""
        return bool(had)


class SyncGatewayTarget:
    """Chunks into a gateway's database, as the user that `login` stands for."""

    def __init__(self, connection: Connection, login: Login) -> None:
        self.connection, self.login = connection, login
        self.pace = Pace()
        self._unknown: set[str] = set()

    def put(self, documents: Sequence[Document]) -> Outcome:
        """Store each document; where the gateway does not answer or refuses for now, the rest waits."""
        accepted: list[str] = []
        rejected: dict[str, str] = {}
        end = time.monotonic() + ENOUGH
        try:
            for name, reason in self._settled([*dict.fromkeys(documents)]):
                if reason is None:  # between two requests
                    if time.monotonic() >= end and (accepted or rejected):
                        break
                elif reason:
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

    def _settled(self, documents: Sequence[Document]) -> Iterator[tuple[str, str | None]]:
        """Each document's id with why the gateway will never take it, empty where it has it now; None after each
        request."""
        fit = []
        for document in documents:
            if reason := unfit(document):
                yield document.id, reason
            else:
                fit.append(document)
        while fit:
            group = _first(fit, self.pace.bytes)
            del fit[: len(group)]
            yield from self._group(group)
            yield "", None

    def _group(self, group: list[Document]) -> Iterator[tuple[str, str | None]]:
        there = self._looked([each for each in group if each.id in self._unknown])
        new = [each for each in group if each.id not in there]
        if len(new) == 1 and self.pace.is_slow and (parts := self._parts(new[0])):
            rows: dict[str, Verdict] | None = {}
            yield new[0].id, self._all(parts)
            group = [each for each in group if each.id in there]
        else:
            rows = self._posted(new) if new else {}
        if rows is None and len(new) > 1:
            yield from self._group(new[: len(new) // 2])
            yield from self._group(new[len(new) // 2 :])
            group = [each for each in group if each.id in there]
        waits: Refused | None = None
        for document in group:
            try:
                if document.id in there:
                    yield document.id, self._compared(document)
                else:
                    large = Verdict(document.id, status=413)
                    yield document.id, self._verdict(document, large if rows is None else rows.get(document.id))
            except Refused as refused:
                waits = refused
        if waits is not None:
            raise waits

    def _looked(self, documents: list[Document]) -> set[str]:
        """Which of these the gateway has: they were sent, and nothing was heard of it."""
        if not documents:
            return set()
        ids = [each.id for each in documents]
        most = SHORT_ANSWER + _ROW * len(ids)
        answer = self._asked("POST", "/_all_docs", [json.dumps({"keys": ids}).encode()], most)
        self._unknown.difference_update(ids)
        return answers.present(answer.body) & {*ids} if answer.status == 200 else set()

    def _parts(self, document: Document) -> tuple[Document, Document] | None:
        """The halves of a document that is too long for so slow a link; None where it is not, or has none."""
        return halves(document) if len(document.data) > 2 * self.pace.bytes else None

    def _posted(self, group: list[Document]) -> dict[str, Verdict] | None:
        """The gateway's verdict on each id; None where the request is too large for it."""
        begun, size = time.monotonic(), sum(len(each.data) for each in group)
        most = SHORT_ANSWER + _ROW * len(group)
        try:
            answer = self._asked("POST", "/_bulk_docs", [*_bulk(group)], most)
        except Unanswered:
            self._unknown.update(each.id for each in group)
            self.pace.silent()
            raise
        self.pace.took(size, time.monotonic() - begun)
        if answer.status == 413:
            return None
        if answer.status != 201:
            raise _refused(answer, self.connection)
        rows = answers.verdicts(answer.body)
        if rows is None:
            raise Refused(f"{self.connection.place}: an answer that is none of a Sync Gateway; check sync.url")
        return rows

    def _verdict(self, document: Document, row: Verdict | None) -> str:
        status = "" if row is None else str(row.status)  # a number, but "413" is a text
        if row is not None and row.rev and not status:
            return ""
        if status == "409":
            return self._compared(document)
        if status == "413":
            parts = halves(document)
            alone = f"{len(document.data)} bytes in one bucket are more than the gateway takes"
            return alone if parts is None else self._all(parts)
        reason = (row and (row.reason or row.error)[:200]) or "no verdict on it"
        raise Refused(f"the gateway does not take {document.id} (status {status or '-'}: {reason}); {_HINTS[403]}")

    def _compared(self, document: Document) -> str:
        """What the gateway has under the id: the same, the first part of it, or something else."""
        most = SHORT_ANSWER + 2 * len(document.data)  # it writes keys and numbers in its own way
        answer = self._asked("GET", "/" + quote(document.id, safe=""), (), most)
        if answer.status != 200:
            raise _refused(answer, self.connection)
        rest = missing(document, content(answer.body))
        return OTHER_BYTES if rest is None else self._all(rest)

    def _all(self, parts: Iterable[Document]) -> str:
        """Store all parts of a document; the first reason why one is never taken."""
        return next((reason for _, reason in self._settled([*parts]) if reason), "")

    def _asked(self, method: str, path: str, pieces: Sequence[bytes] = (), most: int = SHORT_ANSWER) -> Answer:
        """The answer; a session that has expired is renewed once."""
        answer = self.connection.ask(method, path, pieces, self.login.headers(self.connection), most)
        if answer.status == 401 and self.login.renew():
            answer = self.connection.ask(method, path, pieces, self.login.headers(self.connection), most)
        return answer


_HINTS = {
    401: "check user and password (sync.credentials_file, or sync.username), and the database's name in the URL: a "
    "gateway may answer so for one that it does not have",
    403: "check the user's name and channels, and the database's sync function",
    404: "check sync.url: it ends with the database's name",
    429: "it is busy",
    503: "it is starting, or its database is offline",
}


def _refused(answer: Answer, connection: Connection) -> Refused:
    hint = _HINTS.get(answer.status, "see the gateway's log")
    said = f"{connection.place}: refused with {answer.status}{answers.reason(answer.body)}; {hint}"
    return Refused(said, answers.retry_after(answer.headers))


def _bulk(group: Sequence[Document]) -> Iterator[bytes]:
    """The body of `_bulk_docs`: each document's own bytes, with its id before them."""
    before = b'{"docs":['
    for document in group:
        yield before + b'{"_id":' + json.dumps(document.id).encode() + (b"" if document.data == b"{}" else b",")
        yield document.data[1:]
        before = b","
    yield b"]}"


def _first(documents: Sequence[Document], most: int) -> list[Document]:
    """The first documents, as many as have so many bytes; one at least."""
    group: list[Document] = []
    for document in documents:
        most -= len(document.data)
        if group and most < 0:
            break
        group.append(document)
    return group


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
