"""The board and the rules ask only for metrics and labels that an agent gives, in PromQL that Prometheus reads."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prometheus_client", reason="the agent's metrics need the extra `agent`")
from sluicegate_agent.messages import Result
from sluicegate_agent.web.commits import CommitTimes
from sluicegate_agent.web.metrics import Exposition

FOLDER = Path(__file__).resolve().parents[2] / "deploy/grafana"
BOARD = json.loads((FOLDER / "agents.json").read_text())
#: Prometheus gives these itself.
_OWN = {"instance", "job", "le"}


def given() -> dict[str, set[str]]:
    """Each metric of an agent that has everything, with its labels."""
    outbox = dict.fromkeys(("buckets", "buckets_most", "bytes", "bytes_most", "chunks_sealed", "chunks_rejected"), 1)
    process = dict.fromkeys(("rss_bytes", "peak_rss_bytes", "planned_bytes", "memory_budget", "uptime_s"), 5)
    stream = {"stream": "s", "readings": 1, "late": 0, "missing": 0, "newest_us": 1, "buckets_waiting": 0}
    seen: dict[str, Any] = process | {
        "device": "d", "versions": {"sluicegate": "1"}, "broker": {"state": "connected", "unacknowledged": 0},
        "target": {"state": "up", "since_us": 1}, "store": {"refuses": ""}, "outbox": outbox, "counters": {},
        "commits": CommitTimes().as_dict(), "streams_in_all": 1, "streams": [stream],
        "windows": [{"stream": "s", "window": "w", "buckets": 1, "limit": 1, "bytes": 1}],
        "answers": [Result("s", "w", "mean", 1, 1, 1.0, 1.0, 1.0, True, 1, 1)],
        "budget": {"used": 1, "limit": 1, "short_since_us": None},
    }  # fmt: skip
    text = Exposition().response(seen).body.decode()
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        if match := re.match(r"(sluicegate_\w+)(?:\{(.*)\})? ", line):
            found.setdefault(match[1], set()).update(re.findall(r"(\w+)=", match[2] or ""))
    return found


GIVEN = given()


def expressions() -> Iterator[tuple[str, str]]:
    """Every PromQL of board and rules, by where it stands."""
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for variable in BOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["definition"]
    yield from re.findall(r"alert: (\w+)\n\s+expr: (.*)", (FOLDER / "alerts.yaml").read_text())


#: Rules on metrics of others: Prometheus, kube-state-metrics.
OTHERS = ("SluicegateAgentDown", "SluicegateReconcileFailed")


@pytest.mark.parametrize(("place", "text"), list(expressions()))
def test_an_expression_names_what_there_is(place: str, text: str) -> None:
    """Each metric is one of an agent's, each label one of that metric's or Prometheus's own."""
    asked = re.findall(r"\b(sluicegate_\w+)(?:\{([^}]*)\})?", text)
    assert asked or place in OTHERS
    for metric, labels in asked:
        assert metric in GIVEN, f"{place}: {metric}"
        assert set(re.findall(r"(\w+)=", labels)) <= GIVEN[metric] | _OWN, f"{place}: {labels}"
    for legend in re.findall(r"\{\{(\w+)\}\}", text):
        assert any(legend in GIVEN[metric] | _OWN for metric, _ in asked)


def test_the_board_has_a_panel_a_place() -> None:
    """Ids are unique, no panel covers another, and each has a target and a data source that is chosen."""
    panels = BOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 10
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    assert all(panel["targets"] and panel["datasource"]["uid"] == "${datasource}" for panel in panels)


def test_promtool_reads_rules_and_expressions(tmp_path: Path) -> None:
    """The rules as they are, and the board's expressions as rules, its variables replaced."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not on PATH (Debian's package prometheus has it)")
    asked = [text.replace("$", "x") for _, text in expressions() if not text.startswith("label_values")]
    rules = [{"record": f"board:{i}", "expr": text} for i, text in enumerate(asked)]
    file = tmp_path / "board.yaml"
    file.write_text(json.dumps({"groups": [{"name": "board", "rules": rules}]}))  # JSON is YAML
    for path in (FOLDER / "alerts.yaml", file):
        ran = subprocess.run([promtool, "check", "rules", str(path)], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
