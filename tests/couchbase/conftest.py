"""One gateway for all tests here, real and stood in for, and the network before it; each test finds it empty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from gateway.launcher import SyncGateway
from gateway.proxy import Proxy
from gateway.stand_in import StandIn

from gateway import Gateway, databases


@pytest.fixture(scope="session")
def real_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncGateway]:
    """A real Sync Gateway in memory, started once; skips where there is none."""
    if databases.program() is None:
        pytest.skip(databases.MISSING)
    with SyncGateway(tmp_path_factory.mktemp("gateway")) as gateway:
        yield gateway


@pytest.fixture(params=["stand-in", "real"])
def gateway(request: pytest.FixtureRequest) -> Iterator[Gateway]:
    """The promise holds on the real gateway and on the stand-in."""
    if request.param == "stand-in":
        with StandIn() as standing_in:
            yield standing_in
    else:
        real = request.getfixturevalue("real_gateway")
        real.purge()
        yield real


@pytest.fixture
def proxy(gateway: Gateway) -> Iterator[Proxy]:
    """The network before the gateway."""
    with Proxy(gateway.public_url) as proxy:
        yield proxy


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line that says which real parts were not here, so that nothing looks tested on what was stood in for."""
    reasons = {str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", []) if report.longrepr}
    parts = sorted({reason.partition("missing: ")[2] for reason in reasons if "missing: " in reason})
    said = f"not here, so not tested on: {', '.join(parts)}" if parts else "none that was asked for is missing"
    terminalreporter.write_line(f"Real parts: {said}")
