"""A file of `sluicegate poll` is refused before anything is asked, each finding with its key and what to do."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from sluicegate_agent.config import ConfigError, build
from sluicegate_agent.polling.config import load
from sluicegate_agent.polling.sources import sources

GOOD = """
[[modbus]]
topic = "press"
host = "127.0.0.1"
values.temperature = { address = 100, type = "float32" }
values.running = { address = 3, kind = "coil" }
[[opcua]]
topic = "oven"
url = "opc.tcp://127.0.0.1:4840"
security = "none"
values = { heat = "ns=2;s=Oven.Heat" }
"""


def test_the_sources_that_it_prints_are_what_an_agent_takes(tmp_path: Path) -> None:
    """Each device is a source with its number and start."""
    (tmp_path / "poll.toml").write_text(GOOD)
    head = '[device]\nid = "d"\n[state]\npath = "s"\n[http]\nlisten = "127.0.0.1:9465"\n'
    text = head + sources(load(tmp_path / "poll.toml"))
    config = build(tomllib.loads(text), tmp_path / "agent.toml")
    assert [source.topic for source in config.sources] == ["press", "oven"]
    assert {source.sequence for source in config.sources} == {"seq"}


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("address = 100", "address = 65535", "temperature.address = 65535: expected 0 to 65535"),
        ('"float32"', '"float"', 'expected "int16" or'),
        ('kind = "coil"', 'kind = "coils"', 'expected "holding" or'),
        ('"oven"', '"press"', "another device has it"),
        ("opc.tcp://", "http://", "expected opc.tcp"),
        ('security = "none"\n', "", r"opcua\[1\].security: is required"),
        ('security = "none"', 'security = "sign_and_encrypt"', "needs `certificate`, `key`"),
        ('security = "none"', 'security = "none"\npassword_file = "p"', "a password needs"),
        ("[[modbus]]", '[agent]\nurl = "http://192.168.0.1:9465"\n[[modbus]]', "in the clear: use https"),
        ('host = "127.0.0.1"', 'host = "127.0.0.1"\nevery = "1ms"', 'expected at least "10ms"'),
        ('host = "127.0.0.1"', 'host = "127.0.0.1"\nperiod = "1s"', "there is no such key"),
        ("values.running", 'values."a b"', "expected a name of letters"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, old: str, new: str, part: str) -> None:
    """The first words of each finding."""
    assert old in GOOD
    (tmp_path / "poll.toml").write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ConfigError, match=part):
        load(tmp_path / "poll.toml")


def test_the_page_shows_a_file_that_is_taken(tmp_path: Path) -> None:
    """The example of the how-to."""
    page = Path(__file__).parents[3] / "docs/how-to/ask-plcs.md"
    (tmp_path / "poll.toml").write_text(page.read_text().partition("```toml\n")[2].partition("```")[0])
    assert [device.topic for device in load(tmp_path / "poll.toml").devices] == ["press", "oven"]


def test_a_file_without_a_device_is_refused(tmp_path: Path) -> None:
    """It says what to write."""
    (tmp_path / "poll.toml").write_text("")
    with pytest.raises(ConfigError, match="name a device to ask"):
        load(tmp_path / "poll.toml")
