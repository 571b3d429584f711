"""The agent killed at the steps between its outbox and a gateway: each reading is there exactly once, in its place."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from chunked import target
from killing import RECEIVE_MAXIMUM, Work, check_target, in_child, live, lose_pubacks, work

from gateway import Gateway, databases
from sluicegate_agent import faults
from sluicegate_agent.sync import Target
from sluicegate_agent.sync.aside import Aside

pytestmark = [pytest.mark.faults, pytest.mark.slow]
KILLS, FIRST = 5, 3


def laid_out(gateway: Gateway, folder: Path) -> Path:
    """The gateway's documents as the directory target would have written them, for the check that both share."""
    (folder / "chunks").mkdir(parents=True, exist_ok=True)
    for name, body in gateway.documents_of(databases.TELEMETRY).items():
        (folder / "chunks" / f"{name}.json").write_text(json.dumps(body))
    return folder


def steps(folder: Path, made: Work, to: Callable[[], Target]) -> list[tuple[int, str]]:
    """The steps from sealing to settling in a run that nothing disturbs: the first of each name, with its number.

    An answer that is pending is asked for again and again, as often as it takes: only by name is a step the same one.
    """
    trace: list[str] = []
    folder.mkdir()
    try:
        live(folder, made, 0, trace, to=to)
    finally:
        faults.disarm()
    counted = Counter(name for name in trace if name.partition(":")[0] in ("seal", "put", "settle"))
    return [(at, name) for name, count in sorted(counted.items()) for at in range(1, min(count, FIRST) + 1)]


def test_killed_between_outbox_and_gateway(gateway: Gateway, tmp_path: Path) -> None:
    """Sealed, put, answered or settled, and then dead: what follows sends the same documents, which is success."""
    made, rng = work(120, seed=3), random.Random(3)

    def to() -> Target:
        return Aside(target(gateway.public_url, databases.TELEMETRY))

    found = steps(tmp_path / "whole", made, to)
    check_target(laid_out(gateway, tmp_path / "whole"), made)
    killed = 0
    for at, name in sorted(rng.sample(found, KILLS)):
        if gateway.real:
            gateway.purge()  # type: ignore[union-attr]
        else:
            gateway.databases[databases.TELEMETRY].documents.clear()  # type: ignore[union-attr]
            gateway.databases[databases.TELEMETRY].log.clear()  # type: ignore[union-attr]
        folder = tmp_path / f"killed-{at}-{name.replace(': ', '-')}"
        folder.mkdir()
        # How many documents there are goes by the link's pace: a run with fewer of them passes no such step.
        killed += not in_child(folder, made, at, to=to, only=name)
        lose_pubacks(folder, 0, rng.randint(0, RECEIVE_MAXIMUM // 2))
        in_child(folder, made, rng.randint(1, 40), to=to)
        assert in_child(folder, made, to=to)
        check_target(laid_out(gateway, folder), made)
        assert {rev[:2] for rev in gateway.revisions_of(databases.TELEMETRY).values()} == {"1-"}
    assert killed >= KILLS // 2
