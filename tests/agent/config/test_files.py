"""A configuration in several files, with environment variables: put together, and each finding with its file."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from sluicegate_agent.config import ConfigError, load

MAIN = """
[device]
id = "${PLANT}-gateway"
[state]
path = "state"
[mqtt]
port = "${BROKER_PORT}"
[[source]]
topic = "a"
streams = { a = "v" }
"""
SECOND = """
[mqtt]
host = "broker.local"
tls = { enabled = false }
[[source]]
topic = "b"
streams = { b = "v" }
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file, one more in its folder, and the variables that they name."""
    monkeypatch.setenv("PLANT", "north")
    monkeypatch.setenv("BROKER_PORT", "2883")
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "20-second.toml").write_text(SECOND)
    (tmp_path / "agent.toml").write_text(MAIN)
    return tmp_path / "agent.toml"


def test_files_are_put_together_in_the_order_of_names(file: Path) -> None:
    """Keys of one table come from several files, lists of tables follow each other, and variables are filled in."""
    third = '[[source]]\ntopic = "c"\nstreams = { c = "v" }\n'
    (file.parent / "conf.d" / "10-first.toml").write_text(third)
    config = load(file)
    assert (config.device.id, config.mqtt.host, config.mqtt.port) == ("north-gateway", "broker.local", 2883)
    assert [source.topic for source in config.sources] == ["a", "c", "b"]


def test_a_finding_names_the_file_and_the_place_in_it(file: Path) -> None:
    """The second source of all is the first of its file, and is called so."""
    (file.parent / "conf.d" / "20-second.toml").write_text(
        '[[source]]\ntopic = "b"\nstreams = { b = "v" }\nsequenc = "n"'
    )
    with pytest.raises(ConfigError, match=r"conf\.d/20-second\.toml: source\[1\]\.sequenc"):
        load(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[device]\nid = "x"\n', "device.id: agent.toml has it already"),
        ("[device\n", "20-second.toml: file: is not TOML"),
        ('[mqtt]\nhost = "${NOWHERE}"\n', "20-second.toml: mqtt.host .*: the environment variable NOWHERE is not set"),
    ],
)
def test_what_does_not_fit_together_is_refused(file: Path, text: str, said: str) -> None:
    """One key in two files, a file that is no TOML, and a variable that is not set: each with the file's name."""
    (file.parent / "conf.d" / "20-second.toml").write_text(text)
    with pytest.raises(ConfigError, match=said):
        load(file)


def test_what_a_variable_holds_is_not_shown(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finding shows the text of the file, not what a variable holds: it may be a secret."""
    monkeypatch.setenv("BROKER_PORT", "hunter2")
    with pytest.raises(ConfigError, match=r'mqtt\.port = "\$\{BROKER_PORT\}"') as refused:
        load(file)
    assert "hunter2" not in str(refused.value)


def test_a_dollar_can_be_written_plainly(file: Path) -> None:
    """`$${` is a plain `${`, and a shared subscription's dollar is no variable."""
    file.write_text(MAIN.replace('topic = "a"', 'topic = "$share/g/$${a}"'))
    with pytest.raises(ConfigError, match="a wildcard is a whole level"):
        load(file)
    file.write_text(MAIN.replace('topic = "a"', 'topic = "$share/g/a"'))
    assert load(file).sources[0].topic == "a"
