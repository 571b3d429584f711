"""deploy/mosquitto in the real Mosquitto: who comes in, who may do what, and what survives a restart of the broker."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from sluicegate_demo.ports import free_ports

FOLDER = Path(__file__).resolve().parents[2] / "deploy/mosquitto"
BROKER = FOLDER.parent / "compose/broker.sh"
MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
CLIENTS = all(map(shutil.which, ("mosquitto_pub", "mosquitto_sub", "mosquitto_passwd", "openssl")))
pytestmark = pytest.mark.skipif(
    not (MOSQUITTO and CLIENTS), reason="mosquitto, its clients or openssl are not installed"
)


class Place(NamedTuple):
    """A folder with the configuration, and the ports that it names now."""

    folder: Path
    tls: int
    plain: int

    def ask(
        self, program: str, user: str | None, *arguments: str, tls: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a client as a user (each one's password is its name)."""
        command = [program, "-h", "localhost", *arguments, "-p", str(self.tls if tls else self.plain)]
        command += ["--cafile", str(self.folder / "ca.pem")] if tls else []
        command += ["-u", user, "-P", user] if user else []
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The files as README.md puts them, with this test's folders and ports."""
    folder = tmp_path_factory.mktemp("mosquitto")
    place = Place(folder, *free_ports(2))
    subprocess.run([FOLDER / "certificates.sh", folder, "localhost"], check=True, capture_output=True)
    shutil.copy(FOLDER / "acl", folder)
    (folder / "passwords").touch(mode=0o600)
    for user in ("greenhouse-1", "sensors", "dashboard"):
        subprocess.run(["mosquitto_passwd", "-b", folder / "passwords", user, user], check=True, capture_output=True)
    text = _listening(place, (FOLDER / "sluicegate.conf").read_text())
    text = text.replace("/etc/mosquitto/sluicegate", str(folder)).replace("/var/lib/mosquitto/", f"{folder}/")
    (folder / "mosquitto.conf").write_text(f"user {_owner(folder)}\n{text}")
    return place


def _listening(place: Place, text: str) -> str:
    return text.replace("listener 8883", f"listener {place.tls} 127.0.0.1").replace(
        "1883 127.0.0.1", f"{place.plain} 127.0.0.1"
    )


def _owner(folder: Path) -> str:
    return folder.owner()


@contextmanager
def broker(place: Place, *command: str | Path) -> Iterator[None]:
    """Mosquitto by that configuration, or as a command starts it, until the end of the block."""
    with subprocess.Popen(
        command or [str(MOSQUITTO), "-c", str(place.folder / "mosquitto.conf")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            _until(lambda: process.poll() is not None or _listens(place.tls))
            assert process.poll() is None, process.communicate()[0]
            yield
        finally:
            process.terminate()


def _until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not done() and time.monotonic() < end:
        time.sleep(0.02)


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_only_who_is_known_comes_in(place: Place) -> None:
    """A stranger and a client that trusts another authority are refused; plain text is for loopback alone."""
    with broker(place):
        hello = ("-t", "greenhouse/1/climate", "-m", "{}", "-q", "1")
        assert place.ask("mosquitto_pub", "sensors", *hello).returncode == 0
        assert place.ask("mosquitto_pub", "sensors", *hello, tls=False).returncode == 0
        assert "not authorised" in place.ask("mosquitto_pub", None, *hello).stderr.lower()
        assert "not authorised" in place.ask("mosquitto_pub", "stranger", *hello).stderr.lower()
        subprocess.run(
            [FOLDER / "certificates.sh", place.folder / "other", "localhost"], check=True, capture_output=True
        )
        foreign = place._replace(folder=place.folder / "other")
        assert foreign.ask("mosquitto_pub", "sensors", *hello).returncode != 0
    assert "listener 1883 127.0.0.1" in (FOLDER / "sluicegate.conf").read_text()


def test_what_waits_for_an_agent_survives_a_restart(place: Place) -> None:
    """A session that is away gets what came meanwhile, over an end of the broker; what is not allowed stays out."""
    session = ("-i", "agent", "-c", "-q", "1", "-t", "greenhouse/#")
    with broker(place):
        place.ask("mosquitto_sub", "greenhouse-1", *session, "-E")
        for number in (1, 2):
            place.ask("mosquitto_pub", "sensors", "-q", "1", "-t", "greenhouse/1/climate", "-m", f'{{"seq": {number}}}')
        place.ask("mosquitto_pub", "dashboard", "-q", "1", "-t", "greenhouse/1/climate", "-m", "forged")
        place.ask("mosquitto_pub", "sensors", "-q", "1", "-t", "greenhouse/1/climate", "-m", "x" * 80_000)
    with broker(place):
        got = place.ask("mosquitto_sub", "greenhouse-1", *session, "-W", "1").stdout
    assert got.split("\n") == ['{"seq": 1}', '{"seq": 2}', ""]


def test_an_agent_speaks_under_its_own_name(place: Place) -> None:
    """Its answers reach a dashboard; what it says under another name does not."""
    with broker(place):
        for topic in ("sluicegate/greenhouse-2/results", "sluicegate/greenhouse-1/results"):
            place.ask("mosquitto_pub", "greenhouse-1", "-q", "1", "-r", "-t", topic, "-m", topic)
        got = place.ask("mosquitto_sub", "dashboard", "-t", "sluicegate/#", "-W", "1").stdout
    assert got.split() == ["sluicegate/greenhouse-1/results"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a broker that gives up root")
def test_a_broker_in_a_container_reads_and_keeps_what_root_made(place: Place, tmp_path: Path) -> None:
    """The compose's broker starts with a key that is root's alone, and has its queue after a restart."""
    for each in (tmp_path, *tmp_path.parents[:2]):  # those that pytest made for this user alone
        each.chmod(0o755)
    for source, name in ((FOLDER / "sluicegate.conf", "mosquitto/config/mosquitto.conf"), (BROKER, "broker.sh")):
        text = re.sub(r'(?<=[ "])/(?=(etc|var|site|mosquitto)/)', f"{tmp_path}/", source.read_text())
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(_listening(place, text).replace("exec mosquitto", f"exec {MOSQUITTO}"))
    for folder in ("etc/mosquitto", "var/lib/mosquitto"):  # a new volume is root's
        (tmp_path / folder).mkdir(parents=True)
    shutil.copytree(place.folder, tmp_path / "site", ignore=shutil.ignore_patterns("*.db", "other"))
    subprocess.run(["chown", "-R", "root:", tmp_path / "site"], check=True)
    hello = ("-t", "greenhouse/1/climate", "-q", "1")
    with broker(place, "sh", tmp_path / "broker.sh"):
        assert place.ask("mosquitto_pub", "sensors", *hello, "-r", "-m", "kept").returncode == 0
    with broker(place, "sh", tmp_path / "broker.sh"):
        assert place.ask("mosquitto_sub", "greenhouse-1", *hello, "-C", "1", "-W", "5").stdout == "kept\n"
