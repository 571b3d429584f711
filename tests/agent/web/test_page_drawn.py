"""The page as headless Chromium draws it: what the agent says is there as text, and fits a phone's width."""

from __future__ import annotations

import html
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("prometheus_client", reason="the listener needs the extra `agent`")
from sluicegate_agent.web import routes
from sluicegate_agent.web.routes import PAGE

FOLDER = Path(routes.__file__).parent
HOSTILE = "<b>&amp;</script>" + "long-" * 9
WIDTHS = (1280, 390)
#: The page in frames of each width; once it shows a look, how wide each has become stands in a title.
FRAMES = """<!doctype html><body><script>
for (const width of WIDTHS) document.write(`<iframe src="/" width="${width}" height="900" style="border:0"></iframe>`);
const frames = [...document.querySelectorAll("iframe")];
const told = () => frames.map((f) => f.contentDocument.documentElement.scrollWidth).join(" ");
const drawn = (f) => f.contentDocument.querySelectorAll("polyline").length;
const wait = () => frames.every(drawn) ? document.title = told() + " | " + frames[1].contentDocument.body.outerHTML
  : setTimeout(wait, 50);
setTimeout(wait, 50);
</script>""".replace("WIDTHS", str([*WIDTHS]))


def looked(at: int) -> dict[str, Any]:
    """One look at an agent whose names are hostile and long, in trouble."""
    answer = {"stream": HOSTILE, "window": "w", "aggregate": "mean", "value": 2.5 + at, "low": 2.0, "high": 9.0,
              "exact": False, "count": 40, "buckets": 9}  # fmt: skip
    stream = {"stream": HOSTILE, "readings": 1234, "late": 0, "missing": 2, "newest_us": 10**15, "buckets_waiting": 3}
    return {
        "device": HOSTILE, "uptime_s": 90, "rss_bytes": 30 << 20, "planned_bytes": 40 << 20, "commits": {"count": 0},
        "broker": {"broker": "none", "state": "no broker"},
        "target": {"target": "x", "state": "down", "error": HOSTILE},
        "store": {"refuses": "the disk is full"}, "budget": None, "counters": {"accepted": 1234}, "answers": [answer],
        "outbox": {"buckets": 7, "bytes": 900, "bytes_most": 5 << 20}, "streams": [stream], "streams_in_all": 3,
        "windows": [], "errors": [{"at_us": 10**15, "level": "warning", "said": HOSTILE}],
        "alerts": [{"alert": "high", "stream": HOSTILE, "state": "raised"}],
    }  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    """The page's files as they are installed, and two looks; a stream that never ended would keep the browser."""

    protocol_version = "HTTP/1.0"
    frames: ClassVar[bytes] = FRAMES.encode()

    def do_GET(self) -> None:
        """As the listener answers, without its policy: that lets no frame in."""
        if self.path == "/api/events":
            events = b"".join(b"data: %s\n\n" % json.dumps(looked(at)).encode() for at in (0, 1))
            self._answer(events, "text/event-stream")
        elif self.path in PAGE:
            name, kind = PAGE[self.path]
            self._answer((FOLDER / name).read_bytes(), kind)
        else:
            self._answer(self.frames, "text/html")

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    """Of a server of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/frames"
    server.shutdown()


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs a browser to run the page's script")
def test_the_page_is_drawn_and_fits(address: str, tmp_path: Path) -> None:
    """At a desk's and a phone's width: nothing is wider than the screen, the band is there, names stay text."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    options += ["--virtual-time-budget=5000", f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1700,1000"]
    command = ["chromium", *options, "--dump-dom", address]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout
    title = html.unescape(shown.partition("<title>")[2].partition("</title>")[0])
    told, _, body = title.partition(" | ")
    assert [int(width) <= asked for width, asked in zip(told.split(), WIDTHS, strict=True)] == [True, True], told
    assert 'class="band"' in body
    assert "<td>2 to 9</td>" in body
    assert "and 2 more" in body
    assert body.count(html.escape(HOSTILE)) == 5, "device, alert, window, stream, warning: as text"
    assert '<dd class="bad">refuses: the disk is full' in body
    assert "<dd>none: no broker" in body, "nothing is wrong with an agent that needs no broker"
