"""Who may read: this machine under its own name, others with the token alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from sluicegate_agent.config import ConfigError, build
from sluicegate_agent.config.outward import MetricsConfig
from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.web.access import Access
from sluicegate_agent.web.http import Refused, Request

TOKEN = "0123456789abcdef-token"  # noqa: S105  no secret


def request(**headers: str) -> Request:
    """A request with these headers."""
    return Request("GET", "/", {}, headers)


@pytest.mark.parametrize("host", ["127.0.0.1:9464", "localhost", "[::1]:9464", "127.1.2.3"])
def test_this_machine_by_its_names(host: str) -> None:
    """Without a token."""
    Access(MetricsConfig(listen="127.0.0.1:9464")).check(request(host=host))


@pytest.mark.parametrize("host", ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:9464"])
def test_a_page_of_another_site_reads_nothing(host: str) -> None:
    """Its name may lead here, but is not ours."""
    with pytest.raises(Refused) as refusal:
        Access(MetricsConfig(listen="127.0.0.1:9464")).check(request(host=host))
    assert refusal.value.response.status == 421


@pytest.mark.parametrize("listen", ["0.0.0.0:9464", "127.0.0.1:9464", "unix:/tmp/x.sock"])
def test_a_token_is_asked_for_where_there_is_one(listen: str, tmp_path: Path) -> None:
    """The right one alone, in the one header."""
    (tmp_path / "token").write_text(TOKEN + "\n")
    access = Access(MetricsConfig(listen=listen, token_file=tmp_path / "token"))
    access.check(request(host="localhost", authorization=f"Bearer {TOKEN}"))
    for given in ("", "Bearer", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer é", f"Bearer {TOKEN[:-1]}"):
        with pytest.raises(Refused) as refusal:
            access.check(request(host="localhost", authorization=given))
        assert refusal.value.response.status == 401
        assert TOKEN.encode() not in refusal.value.response.body


@pytest.mark.parametrize("text", ["", "short", "\n" + TOKEN, "é" * 20])
def test_a_token_that_could_be_guessed_is_refused(text: str, tmp_path: Path) -> None:
    """At the start, with what to do."""
    (tmp_path / "token").write_text(text)
    with pytest.raises(EnvironmentRefused, match="token_file"):
        Access(MetricsConfig(listen="0.0.0.0:9464", token_file=tmp_path / "token"))


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ({"listen": "0.0.0.0:9464"}, "others can reach this address: give a token_file"),
        ({"listen": "192.168.1.5:9464"}, "others can reach this address"),
        ({"listen": "9464"}, "expected address:port"),
        ({"listen": "127.0.0.1"}, "expected address:port"),
        ({"listen": "127.0.0.1:70000"}, "expected address:port"),
        ({"listen": "127.0.0.1:9464/metrics"}, "expected address:port"),
        ({"listen": "me@127.0.0.1:9464"}, "expected address:port"),
        ({"listen": "unix:relative.sock"}, "a whole path"),
        ({"listen": "unix:/" + "x" * 200}, "a whole path"),
        ({"connections": 0}, "expected 1 to 1024"),
        ({"streams_most": -1}, "expected 0 to 100000"),
        ({"token_file": "/none"}, "cannot be read"),
    ],
)
def test_a_listener_that_cannot_work_is_found_by_check(metrics: dict[str, Any], said: str) -> None:
    """Key, value and remedy, before anything starts."""
    raw = {
        "device": {"id": "d"},
        "state": {"path": "s"},
        "source": [{"topic": "t", "streams": {"x": "x"}}],
        "metrics": metrics,
    }
    with pytest.raises(ConfigError, match="metrics") as refusal:
        build(raw, Path("agent.toml"))
    assert said in str(refusal.value)
