"""What Prometheus reads: the agent's numbers, labels quoted, and little of the library is loaded."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prometheus_client", reason="the listener's metrics need the extra `agent`")
from sluicegate_agent.messages import Result
from sluicegate_agent.web.commits import CommitTimes
from sluicegate_agent.web.metrics import COUNTED, LABELLED, Exposition


def seen(**more: Any) -> dict[str, Any]:
    """One look at an agent."""
    commits = CommitTimes()
    commits.took(0.002)
    commits.took(20.0)
    outbox = dict.fromkeys(("buckets_most", "bytes", "bytes_most", "chunks_sealed", "chunks_rejected"), 0)
    process = dict.fromkeys(("rss_bytes", "peak_rss_bytes", "planned_bytes", "memory_budget", "uptime_s"), 5)
    found: dict[str, Any] = {
        **process,
        "device": "d",
        "versions": {"sluicegate": "1"},
        "broker": {"state": "connected", "unacknowledged": 3},
        "target": {"state": "down", "since_us": 2_000_000},
        "store": {"refuses": ""},
        "outbox": {"buckets": 7} | outbox,
        "counters": {"messages": 12, "refused.value": 2, "of.tomorrow": 1, "rows.lost.outbox": 4},
        "commits": commits.as_dict(),
        "streams_in_all": 9,
        "streams": [
            {"stream": 'a"b\n', "readings": 8, "late": 1, "missing": 2, "newest_us": 1_500_000, "buckets_waiting": 0},
            {"stream": "new", "readings": 0, "late": 0, "missing": 0, "newest_us": None, "buckets_waiting": 0},
        ],
        "windows": [{"stream": "new", "window": "w", "buckets": 3, "limit": 16, "bytes": 900}],
        "answers": [
            Result("s", "w", "mean", 1, 1, 2.5, 2.0, 3.0, False, 4, 3),
            Result("s", "w", "top_k(2)", 1, 1, [{"value": 1}], None, None, True, 4, 3),
        ],
    }
    return found | more


def text_of(found: dict[str, Any]) -> str:
    """The exposition of a look."""
    return Exposition().response(found).body.decode()


def test_the_numbers_of_a_look() -> None:
    """Counters with `_total`, reasons as a label, answers with their interval, and nothing for an answer with parts."""
    text = text_of(seen())
    for line in (
        "sluicegate_messages_total 12.0",
        'sluicegate_refused_total{reason="value"} 2.0',
        'sluicegate_refused_total{reason="unreadable"} 0.0',
        'sluicegate_store_rows_lost_total{table="outbox"} 4.0',
        "sluicegate_of_tomorrow_total 1.0",
        "sluicegate_broker_up 1.0",
        "sluicegate_target_up 0.0",
        "sluicegate_outbox_buckets 7.0",
        'sluicegate_commit_seconds_bucket{le="0.003"} 1.0',
        'sluicegate_commit_seconds_bucket{le="+Inf"} 2.0',
        "sluicegate_commit_seconds_sum 20.002",
        'sluicegate_stream_readings_total{stream="a\\"b\\n"} 8.0',
        'sluicegate_window_low{aggregate="mean",stream="s",window="w"} 2.0',
        'sluicegate_window_exact{aggregate="mean",stream="s",window="w"} 0.0',
        'sluicegate_agent{device="d",version="1"} 1.0',
    ):
        assert line in text.split("\n")
    assert 'stream_newest_seconds{stream="new"}' not in text
    assert not re.search(r'window_value\{aggregate="top_k', text)


def test_promtool_reads_it() -> None:
    """Without a complaint about names, types or help."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not on PATH (Debian's package prometheus has it)")
    ran = subprocess.run(
        [promtool, "check", "metrics"], input=text_of(seen()), capture_output=True, text=True, check=False, timeout=60
    )
    assert (ran.returncode, ran.stdout + ran.stderr) == (0, "")


def test_the_library_comes_without_its_servers() -> None:
    """Of prometheus-client only what writes text is loaded: no HTTP server, no TLS, no archive."""
    code = (
        "import sys; from sluicegate_agent.web.metrics import Exposition; Exposition()\n"
        "heavy = {'http.server', 'ssl', 'gzip', 'socketserver', 'wsgiref', 'urllib.request', 'email'}\n"
        "sys.exit(' '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_page_says_what_each_counter_counts() -> None:
    """A name that `status` shows is looked up in docs/reference/agent.md."""
    page = (Path(__file__).parents[3] / "docs/reference/agent.md").read_text("utf-8")
    assert [name for name in (*COUNTED, *LABELLED) if f"`{name}" not in page] == []
