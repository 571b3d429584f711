"""Messages that wait in `agent.keep` promise: a poller that is killed loses none, whatever it was doing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from test_handing import Listener

from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.polling import kept as module
from sluicegate_agent.polling.handing import Handing
from sluicegate_agent.polling.kept import Kept

#: A poller of one device that is never answered, or only now and then; it says how many messages it was told to hold.
POLLER = """
import asyncio, sys
from pathlib import Path
from sluicegate_agent.polling import handing
from sluicegate_agent.polling.handing import Handing
from sluicegate_agent.polling.kept import Kept
handing._FIRST_WAIT = handing._LONGEST_WAIT = 0.0005
class Listener:
    count = 0
    def post(self, topic, body):
        self.count += 1
        if self.count % 3:
            raise ConnectionRefusedError
        with open("taken", "ab") as file:
            file.write(body + b"\\n")
        return 200, b'{"refused": 0}'
async def main():
    made = Handing(Listener(), "press", 10**6, sys.argv[1], Kept(Path("held"), "press"))
    task = asyncio.create_task(made.run())
    for number in range(10**6):
        made.put(number, {"x": float(number)})
        print(number + 1, flush=True)
        if number % 5 == 0:
            await asyncio.sleep(0.001)
asyncio.run(main())
"""


def handed_on(folder: Path, most: int = 10**6) -> list[dict[str, object]]:
    """What a process that comes after finds, and an agent then takes."""

    async def main() -> list[dict[str, object]]:
        listener, kept = Listener(), Kept(folder / "held", "press")
        made = Handing(listener, "press", most, "later", kept)  # type: ignore[arg-type]
        made.put(7, {"x": -1.0})
        task = asyncio.create_task(made.run())
        async with asyncio.timeout(60):
            while not made.is_empty:
                await asyncio.sleep(0.001)
        task.cancel()
        kept.close()
        return listener.taken

    return asyncio.run(main())


def test_a_poller_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    """At instants that chance chooses, again and again: each message that was to be held is handed on, under its own
    number."""
    told: dict[str, int] = {}
    for boot in range(8):
        poller = subprocess.Popen([sys.executable, "-c", POLLER, str(boot)], cwd=tmp_path, stdout=subprocess.PIPE)
        assert poller.stdout is not None
        poller.stdout.readline()
        time.sleep(0.02 * boot)
        os.kill(poller.pid, signal.SIGKILL)
        told[str(boot)] = len(poller.stdout.read().splitlines()) + 1
        poller.wait()
    after = handed_on(tmp_path)
    taken = [json.loads(line) for line in (tmp_path / "taken").read_bytes().splitlines()] + after
    for boot, count in told.items():
        numbers = {message["seq"]: message["values"]["x"] for message in taken if message["boot"] == boot}
        assert set(range(1, count + 1)) <= numbers.keys()
        assert all(value == number - 1 for number, value in numbers.items())
    assert after[-1]["boot"] == "later"
    assert handed_on(tmp_path)[0]["boot"] == "later", "what the agent has waits no more"


def test_a_message_that_was_cut_is_left_out(tmp_path: Path) -> None:
    """A power cut in the middle of a line, or of the file: what is whole is handed on."""
    kept = Kept(tmp_path / "held", "press")
    for number in range(1, 4):
        kept.add(json.dumps({"boot": "a", "seq": number, "values": {}}).encode())
    kept.close()
    (file,) = (tmp_path / "held").iterdir()
    file.write_bytes(b'{"boot": \0\0\0\n' + file.read_bytes()[:-5])
    assert [message["seq"] for message in handed_on(tmp_path)] == [1, 2, 1]


def test_the_file_holds_about_what_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While some always waits, too; of more than may be held the newest are found."""
    monkeypatch.setattr(module, "_DONE_MOST", 10)
    kept = Kept(tmp_path / "held", "press")
    waiting: list[bytes] = []
    for number in range(500):
        waiting.append(json.dumps({"boot": "a", "seq": number, "values": {}}).encode())
        kept.add(waiting[-1])
        waiting = waiting[-20:]
        kept.done(len(waiting), waiting)
        (file,) = (tmp_path / "held").iterdir()
        assert waiting == file.read_bytes().splitlines()[-len(waiting) :]
        assert len(file.read_bytes().splitlines()) <= 2 * 20 + 10 + 1
    kept.close()
    assert [message["seq"] for message in handed_on(tmp_path, most=6)][-6:] == [495, 496, 497, 498, 499, 1]


def test_an_agent_that_is_away_for_long_fills_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes room for newer messages leaves the file as well."""
    monkeypatch.setattr(module, "_DONE_MOST", 10)
    handing = Handing(Listener(), "press", 20, "a", Kept(tmp_path / "held", "press"))  # type: ignore[arg-type]
    for number in range(500):
        handing.put(number, {"bar": 1.0})
        (file,) = (tmp_path / "held").iterdir()
        assert len(file.read_bytes().splitlines()) <= 2 * 20 + 10 + 1
    assert handing.counters.dropped == 480


def test_one_process_a_device(tmp_path: Path) -> None:
    """A second poller with the same folder would hand on the first one's messages; another device is free."""
    kept = Kept(tmp_path / "held", "press")
    with pytest.raises(EnvironmentRefused, match="another process polls press"):
        Kept(tmp_path / "held", "press")
    Kept(tmp_path / "held", "oven").close()
    kept.done(0, ())
    kept.add(b"{}")
    kept.close()
    Kept(tmp_path / "held", "press").close()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """By the key's name."""
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentRefused, match=r"agent\.keep"):
        Kept(tmp_path / "file", "press")
