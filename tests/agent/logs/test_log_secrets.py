"""Secrets planted wherever a log line could take them from come out of none, whatever form the line has."""

from __future__ import annotations

import base64
import io
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

pytest.importorskip("structlog", reason="the agent's tests need the extra `agent`")
from peers import Counts, config, peer
from sluicegate_agent.config import credentials
from sluicegate_agent.link import Link
from sluicegate_agent.logs import secrets
from sluicegate_agent.logs.setting import LONGEST, set_up
from sluicegate_agent.passwords import password

#: With what JSON, URLs and Python's own notation write in another way.
SECRET = 'hünter2 "&\\/%-swordfish'  # noqa: S105  that is the point


@pytest.fixture(params=["json", "text"])
def lines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What is logged from now on, in either form."""
    root = logging.getLogger()
    handlers, level, raising = root.handlers[:], root.level, logging.raiseExceptions
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(secrets, "_VALUES", set())
    form: Literal["json", "text"] = request.param
    set_up("debug", form)
    yield shown
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.raiseExceptions = raising


def test_a_secret_that_was_read_is_in_no_line(lines: io.StringIO, tmp_path: Path) -> None:
    """By file, environment's way of it and credentials file; as message, argument, extra, exception and nested."""
    (tmp_path / "secret").write_text(f"{SECRET}\n", encoding="utf-8")
    assert password("mqtt", tmp_path / "secret", None) == SECRET
    horse = "corréct-horse"
    other = {"url": "https://h/d", "user": "board", "password": horse}
    (tmp_path / "login.json").write_text(json.dumps(other))
    assert credentials.read(tmp_path / "login.json").password == horse
    log = logging.getLogger("sluicegate.test")
    for value in (SECRET, horse):
        basic = base64.b64encode(value.encode()).decode()
        log.info("it is %s", value)
        log.info("it is %r in %s", value, {"deep": [value, {"er": value}]})
        log.warning("with more", extra={"detail": {"list": [value], "bytes": basic}})
        log.error("body %s", json.dumps({"x": value}))
        try:
            try:
                raise ValueError(f"bad login: {value}")
            except ValueError as error:
                raise RuntimeError(f"could not say {value!r}") from error
        except RuntimeError:
            log.exception("failed with %s", value)
        logging.getLogger("paho").debug("sent %s", basic)
    for piece in ("swordfish", "hünter2", "h\\u00fcnter2", "corréct", "corr\\u00e9ct-horse"):
        assert piece not in lines.getvalue()
    assert base64.b64encode(SECRET.encode()).decode() not in lines.getvalue()
    assert lines.getvalue().count("***") >= 12


PLANTED = [
    "GET https://board:PLANTED@gateway.example/d?x=1",
    "mqtt://PLANTED@broker.example",
    "https://a:b@PLANTED@c.example/",
    "Authorization: Basic UExBTlRFRA==PLANTED",
    "{'Authorization': 'Bearer PLANTED.abc'}",
    '{"password": "PLANTED", "user": "board"}',
    "password=PLANTED&user=board",
    "the token: PLANTED",
    "api_key = 'PLANTED'",
    "Cookie: SyncGatewaySession=PLANTED; Path=/d",
    "SyncGatewaySession=PLANTED;",
    "session_id=PLANTED",
    "-----BEGIN RSA PRIVATE KEY-----\nPLANTED\n-----END RSA PRIVATE KEY-----",
    "client_secret=PLANTED passphrase: PLANTED",
    '\\"password\\": \\"PLANTED\\"',
]


@pytest.mark.parametrize("text", PLANTED)
def test_what_looks_like_a_secret_is_none(text: str, lines: io.StringIO) -> None:
    """One that nobody told us of is known by its place: URL, header, key; also inside an exception."""
    log = logging.getLogger("urllib3.test")
    log.info("%s", text)
    try:
        raise OSError(text)
    except OSError:
        log.exception("failed")
    log.info("more", extra={"password": "PLANTED", "nested": {"auth_token": "PLANTED", "text": text}})
    assert "PLANTED" not in lines.getvalue()
    assert "***" in lines.getvalue()


def test_what_helps_stays(lines: io.StringIO) -> None:
    """Names of files and keys, and addresses, are no secrets."""
    kept = "mqtt.password_file = /run/secrets/mqtt: https://gateway.example:4984/d, check the password"
    logging.getLogger("sluicegate").info(kept)
    assert kept in lines.getvalue()


def test_lines_have_their_parts(lines: io.StringIO) -> None:
    """Time with zone, level, logger, event; one line each, whatever a peer puts into a topic, and of bounded length."""
    log = logging.getLogger("sluicegate.mqtt")
    log.warning("topic %s", "a\n2026-01-01T00:00:00Z ERROR forged: \x1b[31m")
    log.info("long %s", "x" * 100_000)
    log.info("%s %s", "one argument is missing")
    forged, long, *_ = lines.getvalue().splitlines()
    assert len(lines.getvalue()) < 3 * LONGEST
    if forged.startswith("{"):
        told: dict[str, Any] = json.loads(forged)
        assert list(told) == ["timestamp", "level", "logger", "event"]
        assert (told["level"], told["logger"]) == ("warning", "sluicegate.mqtt")
        assert told["timestamp"].endswith("Z")
        assert json.loads(long)["level"] == "info"
    else:
        time, level, logger, *_ = forged.split(" ")
        assert (level, logger) == ("WARNING", "sluicegate.mqtt:")
        assert time.endswith("Z")
        assert "\x1b" not in forged
        assert "\\n2026" in forged


def test_a_connection_with_a_password_tells_none(lines: io.StringIO, tmp_path: Path) -> None:
    """A peer that hears our CONNECT and answers with it: the password is not in what we say of that."""
    (tmp_path / "secret").write_text("swordfish-77\n")

    def mirror(connection: Any) -> None:
        connection.sendall(connection.recv(65536))

    with peer(mirror) as broker:
        link = Link(config(broker.port, username="u", password_file=str(tmp_path / "secret")), Counts())
        while link.status()["failed_in_a_row"] == 0:
            link.poll(0.05, 10)
        link.close()
    assert "127.0.0.1" in lines.getvalue()
    assert "swordfish" not in lines.getvalue()
