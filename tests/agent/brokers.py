"""A Mosquitto of this machine, a free port and a patient wait, for the tests that need a real broker."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


def until(true: Callable[[], Any], seconds: float = 120.0, told: Callable[[], Any] | None = None) -> None:
    """Wait for something to become true, or fail with what `told` says; only a failure takes so many seconds."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            if true():
                return
        assert time.monotonic() < end, f"it never came true: {told() if told else true}"
        time.sleep(0.01)


@contextlib.contextmanager
def mosquitto(folder: Path, port: int, *lines: str) -> Iterator[int]:
    """A Mosquitto on a port of this machine, with more lines in its configuration."""
    if shutil.which("mosquitto") is None:
        pytest.skip("Mosquitto is not on PATH")
    file = folder / f"mosquitto-{port}.conf"
    file.write_text("\n".join([f"listener {port} 127.0.0.1", "allow_anonymous true", "max_queued_messages 0", *lines]))
    process = subprocess.Popen(["mosquitto", "-c", str(file)], stderr=subprocess.DEVNULL)
    try:
        until(lambda: socket.create_connection(("127.0.0.1", port), 1).close() is None)
        yield port
    finally:
        process.terminate()
        process.wait(60)
