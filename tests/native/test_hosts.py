"""This machine is an address of its loopback or exactly `localhost`; a name that looks like one is anybody's."""

from __future__ import annotations

import pytest

from sluicegate.hosts import is_loopback


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.255.3.4", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"]
)
def test_this_machine(host: str) -> None:
    """RFC 1122 gives 127.0.0.0/8 to the loopback, RFC 4291 ::1; RFC 6761 the name."""
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1.evil.example", "127.evil.example", "localhost.evil.example", "LOCALHOST.", "127.1", "127.0.0.1 ",
        "0127.0.0.1", "128.0.0.1", "0.0.0.0", "::",  # noqa: S104  nothing is bound to it
        "::2", "::ffff:10.0.0.1", "10.0.0.1", "broker", "", "[::1]",
    ],
)  # fmt: skip
def test_another_machine(host: str) -> None:
    """Whatever is not certainly this machine is another: what would be a mistake then is only encrypted."""
    assert not is_loopback(host)
