"""Free ports promise that nobody else is given them while who asked lives, whoever asks and however often."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import suppress

from sluicegate_demo.ports import free_port, free_ports

ASK = "from sluicegate_demo.ports import free_ports; print(*free_ports(60), flush=True); input()"


def test_processes_at_once_have_ports_of_their_own() -> None:
    """Four beside this one, which bind none of theirs."""
    told: dict[str, object] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    asking = [subprocess.Popen([sys.executable, "-c", ASK], **told) for _ in range(4)]  # type: ignore[call-overload]
    try:
        given = [int(port) for each in asking for port in each.stdout.readline().split()] + free_ports(60)
    finally:
        for each in asking:
            with suppress(BrokenPipeError):
                each.communicate("\n", timeout=60)
    assert len(given) == 5 * 60
    assert len({*given}) == len(given)


def test_one_that_was_given_is_not_given_again_soon_nor_one_that_is_used() -> None:
    """Though who asked has not bound it yet."""
    first = free_port()
    with socket.create_server(("127.0.0.1", used := free_port())):
        later = [free_port() for _ in range(100)]
    assert not {first, used} & {*later}
    assert len({*later}) == 100
