"""`check` says what a configuration that is right will meet all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from click.testing import CliRunner

from sluicegate_agent.commands.check import check

AGENT = """
[device]
id = "gw-1"
[state]
path = "state"
[[source]]
topic = "plant/{machine}/state"
DEVICES
streams = { temp = "temp" }
[sync]
target = "sync-gateway"
url = "https://gateway.example:4984/telemetry"
"""


@pytest.mark.parametrize("several", [False, True])
def test_a_gateway_takes_no_documents_of_other_devices(tmp_path: Path, several: bool) -> None:
    """Its rule lets a user write for the device of its name alone: all else would wait for ever."""
    file = tmp_path / "agent.toml"
    file.write_text(AGENT.replace("DEVICES", 'device = "{machine}"\ndevices = "press-[0-9]+"' if several else ""))
    said = CliRunner().invoke(check, [str(file)])
    assert said.exit_code == 0, said.output
    assert ("Warning: source[1].device: a Sync Gateway takes documents of gw-1 alone" in said.output) == several
