"""Makes the pictures of a running agent: its page as headless Chromium shows it, and the screen of `sluicegate top`.

python deploy/site/agent_pictures.py weather_3stations.csv [--out docs/pictures]

An agent takes two stations' readings by POST, a day a look, and is looked at as often; the page then shows the looks.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from sluicegate_agent.live.top import Top
from sluicegate_agent.web.routes import PAGE
from sluicegate_demo.ports import free_port

WEB = Path(__file__).parents[2] / "agent/sluicegate_agent/web"
LOOKS, DAY = 60, 24
METRICS = ("temp", "humid")
CONFIGURATION = """
device.id = "greenhouse-1"
state.path = "state"
http.listen = "127.0.0.1:{post}"
metrics.listen = "127.0.0.1:{look}"
[[source]]
topic = "weather"
input = "http"
time = "time"
key = "station"
keys = {{ most = 4 }}
streams = {{ temp = "temp", humid = "humid" }}
[[window]]
name = "week"
policy = {{ time = "7d" }}
aggregate = ["mean", "max"]
buckets = 16
"""
BROWSER = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
           "--virtual-time-budget=4000"]  # fmt: skip


def days(path: Path) -> Iterator[list[dict[str, Any]]]:
    """A day of messages after the other."""
    with path.open(encoding="utf-8") as handle:
        rows = [row for row in csv.DictReader(handle) if row["origin"] in ("EWR", "JFK") and row["month"] in "56"]
    rows.sort(key=lambda row: row["time_hour"])
    found = [{"time": row["time_hour"], "station": row["origin"].lower(), **_numbers(row)} for row in rows]
    for begin in range(0, len(found), 2 * DAY):
        yield found[begin : begin + 2 * DAY]


def _numbers(row: dict[str, str]) -> dict[str, float | None]:
    return {name: None if row[name] == "NA" else float(row[name]) for name in METRICS}


def looks_at(readings: Path) -> list[dict[str, Any]]:
    """What an agent says of itself after each day."""
    with tempfile.TemporaryDirectory() as name:
        post, look = free_port(), free_port()
        file = Path(name) / "agent.toml"
        file.write_text(CONFIGURATION.format(post=post, look=look))
        process = subprocess.Popen([sys.executable, "-m", "sluicegate", "run", str(file)])
        try:
            _wait(f"http://127.0.0.1:{look}/ready")
            found = []
            for _, day in zip(range(LOOKS), days(readings), strict=False):
                body = "".join(json.dumps(each) + "\n" for each in day).encode()
                urllib.request.urlopen(f"http://127.0.0.1:{post}/in/weather", body, timeout=30).close()
                time.sleep(1.1)  # answers come once a second
                with urllib.request.urlopen(f"http://127.0.0.1:{look}/api/status", timeout=30) as answer:
                    found.append(json.load(answer))
            return found
        finally:
            process.terminate()
            process.wait(60)


def _wait(address: str) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(address, timeout=5).close()  # noqa: S310  this machine's own
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"{address} never answered")


def page_of(looks: list[dict[str, Any]], out: Path, width: int, height: int) -> None:
    """The page after all looks. A stream of events that goes on would keep the browser: this one ends, as 204 says."""
    from PIL import Image

    script = (
        (WEB / "page.js").read_text().replace('events.onerror = () => state("the agent does not answer", true);', "")
    )
    events = [b"data: %s\n\n" % json.dumps(each).encode() for each in looks]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name, kind = PAGE.get(self.path, ("", "text/event-stream"))
            body = script.encode() if name == "page.js" else (WEB / name).read_bytes() if name else b"".join(events)
            self.send_response(200 if body else 204)
            if not name:
                events.clear()
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        shot = Path(profile) / "shot.png"
        options = [f"--user-data-dir={profile}", f"--window-size={width},{height}", f"--screenshot={shot}"]
        subprocess.run([*BROWSER, *options, f"http://127.0.0.1:{server.server_port}/"], check=True, timeout=120)
        Image.open(shot).convert("RGB").quantize(64).save(out, optimize=True)
    server.shutdown()


def top_of(looks: list[dict[str, Any]], out: Path) -> None:
    """The screen after all looks, as SVG without fonts of other sites."""

    async def run() -> str:
        app = Top(lambda: looks[-1], every=3600.0)
        async with app.run_test(size=(116, 26)) as pilot:
            for each in looks:
                app.show(each)
            await pilot.pause(0.5)
            return app.export_screenshot(title="sluicegate top")

    out.write_text(re.sub(r"@font-face \{.*?\}\s*", "", asyncio.run(run()), flags=re.DOTALL), "utf-8")


def main() -> None:
    """Page and screen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readings", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"))
    options = parser.parse_args()
    looks = looks_at(options.readings)
    page_of(looks, options.out / "page.png", 1100, 760)
    top_of(looks, options.out / "top.svg")


if __name__ == "__main__":
    main()
