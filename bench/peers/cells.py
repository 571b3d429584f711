"""The cells of the comparison: each runs one tool behind a broker of its own, and gives a row."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.peers.publish import Broker, publish
from bench.peers.subjects import Subject, Told

_TICKS = os.sysconf("SC_CLK_TCK")
SETTLES = 8.0  # seconds without a change of what was answered: then all that will come has come
PATIENCE = 90.0
Row = dict[str, Any]


def cost(subject: Subject, count: int) -> Row:
    """Processor a message where readings come as fast as the broker takes them; memory before and at most."""

    def run(folder: Path, broker: Broker, process: subprocess.Popen[bytes]) -> Row:
        idle, before = _resident(process.pid, "VmRSS"), _processor(process.pid)
        publish(broker.port, count, rate=0)
        _settled(subject, folder, count)
        spent = _processor(process.pid) - before
        return {
            "us_a_message": round(1e6 * spent / count, 1),
            "idle_MiB": idle, "most_MiB": _resident(process.pid, "VmHWM"),
        }  # fmt: skip

    return _behind(subject, count, run)


def killed(subject: Subject, count: int, rate: float) -> Row:
    """Its own kill −9 in the middle; started again half a second later."""

    def run(folder: Path, broker: Broker, process: subprocess.Popen[bytes]) -> Row:
        lives = [process]

        def at_half() -> None:
            lives[-1].send_signal(signal.SIGKILL)
            lives[-1].wait()
            time.sleep(0.5)
            lives.append(subject.start(folder, broker.port))

        publish(broker.port, count, rate, at_half)
        _settled(subject, folder, count)
        return {"_process": lives[-1]}

    return _behind(subject, count, run)


def broker_killed(subject: Subject, count: int, rate: float) -> Row:
    """The broker's kill −9 in the middle; it begins again half a second later with what it had saved."""

    def run(folder: Path, broker: Broker, process: subprocess.Popen[bytes]) -> Row:
        def at_half() -> None:
            broker.kill()
            time.sleep(0.5)
            broker.start()

        publish(broker.port, count, rate, at_half)
        _settled(subject, folder, count)
        return {}

    return _behind(subject, count, run)


def late(subject: Subject, count: int, rate: float) -> Row:
    """Every tenth reading comes 3 s after its time."""

    def run(folder: Path, broker: Broker, process: subprocess.Popen[bytes]) -> Row:
        publish(broker.port, count, rate, late=3.0)
        _settled(subject, folder, count)
        return {}

    return _behind(subject, count, run)


def _behind(subject: Subject, count: int, run: Callable[[Path, Broker, subprocess.Popen[bytes]], Row]) -> Row:
    """A row: what `run` found, and what is lost of `count` readings and what is there oftener than once."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        broker, folder = Broker(Path(name) / "broker"), Path(name) / "subject"
        folder.mkdir()
        broker.start()
        process = subject.start(folder, broker.port)
        try:
            broker.subscribed()
            row = run(folder, broker, process)
            process = row.pop("_process", process)
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                row["ended"] = "by SIGKILL: SIGTERM did not end it in 30 s"
                process.kill()
                process.wait()
            return row | _missing(subject.told(folder), count)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            broker.close()


def _missing(told: Told, count: int) -> Row:
    """Where the tool tells numbers, each is looked for; else the total alone says what is too little or too much."""
    if told.numbers is None:
        found = {"lost": max(count - told.total, 0), "twice": max(told.total - count, 0), "by": "total"}
    else:
        lost = sum(number not in told.numbers for number in range(count))
        found = {
            "lost": lost,
            "twice": sum(times - 1 for number, times in told.numbers.items() if number < count),
            "by": "numbers",
        }
    return found | ({"unsure": told.unsure} if told.unsure else {})


def _settled(subject: Subject, folder: Path, count: int) -> None:
    """Waits until all is answered, or nothing has changed for a while."""
    seen, changed = -1, time.monotonic()
    end = changed + PATIENCE
    while time.monotonic() < end:
        total = subject.told(folder).total
        if total != seen:
            seen, changed = total, time.monotonic()
        if total >= count or time.monotonic() > changed + SETTLES:
            break
        time.sleep(0.5)


def _resident(process: int, field: str) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024, 1)


def _processor(process: int) -> float:
    """Of the process, its threads and the children that it has waited for."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(int(each) for each in fields[11:15]) / _TICKS
