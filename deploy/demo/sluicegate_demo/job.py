"""The main job in its two halves: edge (readings, agents, faults) and cloud (merge, report, comparison, verdict)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

from sluicegate_demo import checks, proof
from sluicegate_demo.agents import HOUR, WINDOWS
from sluicegate_demo.edge import Edge, EdgeRun
from sluicegate_demo.places import place, require_parts
from sluicegate_demo.readings import Feed, from_csv, weather
from sluicegate_demo.truth import Streams

MARK = ".sluicegate-demo"
LENGTH, SLIDE = 24 * HOUR, HOUR
SHOWN_UNREADABLE, SHOWN_PROBLEMS = 3, 12


class JobError(Exception):
    """Raised where the job cannot start, with what to do; `exit_code` as the command line's table says."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class CheckFailedError(Exception):
    """Raised at the end when a check failed; the table above says which."""

    exit_code = 1


@dataclass(frozen=True)
class Source:
    """Where the readings come from: the weather, or columns of a CSV file."""

    csv_file: str | None = None
    time: str | None = None
    values: tuple[str, ...] = ()
    device: str | None = None
    rows: int | None = None

    @classmethod
    def of(
        cls, csv_file: Path | None, time: str | None, values: tuple[str, ...], device: str | None, rows: int | None
    ) -> Source:
        """The source that the command line names. Raises click.UsageError for options that do not go together."""
        if csv_file is None:
            if time or values or device:
                raise click.UsageError(
                    "--time, --value and --device describe the columns of a file: give --csv FILE too"
                )
            return cls(rows=rows)
        if not time or not values:
            raise click.UsageError(
                "--csv FILE needs --time COLUMN and --value COLUMN, the names in the file's first line; "
                f"for example: --csv {csv_file} --time timestamp --value value"
            )
        if len(set(values)) != len(values) or time in values:
            raise click.UsageError("--time and every --value name different columns")
        return cls(str(csv_file), time, values, device, rows)

    @property
    def whole_weather(self) -> bool:
        """Whether this is the run whose size is promised."""
        return self.csv_file is None and self.rows is None

    def feeds(self) -> list[Feed]:
        """The readings as they are published: a tenth late and shuffled. Raises UnfitFileError, MissingDataError."""
        if self.csv_file is None:
            return [feed.held_up() for feed in weather(self.rows)]
        path, columns = Path(self.csv_file), (str(self.time), self.values)
        return [feed.held_up() for feed in from_csv(path, *columns, device=self.device, rows=self.rows)]


class Job:
    """Both halves work in the folder `out`; the second may run in another process, later."""

    def __init__(self, out: Path, broker: str = "auto", target: str = "directory") -> None:
        self.out, self.broker, self.target = out, broker, target
        self._began = time.monotonic()

    # the edge half

    def edge(self, source: Source) -> None:
        """Publish, run the agents through their faults, and show what they answered on the spot."""
        if self.target != "directory":
            require_parts(self.target)
        feeds = source.feeds()
        self._clear()
        (self.out / "source.json").write_text(json.dumps(asdict(source)) + "\n")
        for line in _describe(feeds):
            self._say(line)
        signal.signal(signal.SIGTERM, _stop)
        out = self.out.resolve()
        run = Edge(feeds, out, place(self.target, out), broker=self.broker, say=self._say, draw=_draw).run()
        run.save(self.out)
        sent = f"{run.messages_sent:,} messages in {run.seconds:.1f} s"
        self._say(f"{sent}; {len(run.results):,} answers of the agents' own windows, the last of each:")
        for line in _answers(run):
            click.echo(line)

    def _clear(self) -> None:
        """Begin with an empty folder; only one that a demo made is emptied."""
        try:
            if self.out.exists() and not (self.out / MARK).exists() and any(self.out.iterdir()):
                raise JobError(
                    f"{self.out}: is not empty and no earlier demo made it; give another folder with --out", 2
                )
            shutil.rmtree(self.out, ignore_errors=True)
            self.out.mkdir(parents=True, exist_ok=True)
            (self.out / MARK).touch()
        except NotADirectoryError:
            raise JobError(f"{self.out}: is a file; give a folder with --out", 2) from None
        except OSError as error:
            raise JobError(f"{self.out}: {error.strerror}; give a folder you may write to with --out", 4) from None

    # the cloud half

    def cloud(self, source: Source | None) -> None:
        """Merge, report, compare, and judge. Raises CheckFailedError."""
        began = time.monotonic()
        run, source = self._edge_run(source)
        from sluicegate_demo.merge import merge, report, window_count, windows

        streams = Streams(source.feeds())
        with place(run.target, self.out.resolve()) as synced:
            os.environ.update(synced.environment)
            merge(synced.source, self.out, LENGTH, SLIDE)
            self._say("comparing every window with a recomputation from the raw rows")
            found = proof.custody(synced.documents(), streams)
        tally = proof.agents(run.results, streams, WINDOWS)
        with click.progressbar(windows(self.out), window_count(self.out), "comparing", file=sys.stderr) as rows:
            tally.add(proof.cloud(rows, streams, LENGTH, SLIDE))
        said = checks.summary(run, found, tally, streams, run.seconds + time.monotonic() - began)
        summary = self.out / "summary.json"
        summary.write_text(json.dumps(said, indent=2) + "\n")
        page = report(self.out, summary)
        verdict = list(checks.checks(said, run, found, tally, whole=source.whole_weather))
        self._show(verdict, found.problems + tally.problems, page, summary)
        if failed := [check.name for check in verdict if check.passed is False]:
            raise CheckFailedError(f"the demo failed: {', '.join(failed)}")

    def _edge_run(self, source: Source | None) -> tuple[EdgeRun, Source]:
        try:
            run = EdgeRun.load(self.out)
            kept = Source(**json.loads((self.out / "source.json").read_text()))
        except (OSError, ValueError, TypeError):
            raise JobError(f"{self.out}: no edge run is here; run `sluicegate demo --edge-only` first", 2) from None
        kept = Source(kept.csv_file, kept.time, tuple(kept.values), kept.device, kept.rows)
        if source is not None and source != kept:
            raise JobError(f"{self.out}: the edge run there had other readings; leave out --csv and its columns", 2)
        return run, kept

    def _show(self, verdict: list[checks.Check], problems: list[str], page: Path, summary: Path) -> None:
        click.echo()
        for line in (*checks.table(verdict), *(f"          {problem}" for problem in problems[:SHOWN_PROBLEMS])):
            click.echo(line)
        click.echo(f"\n  report   {page}\n  summary  {summary}")

    def _say(self, line: str) -> None:
        if sys.stderr.isatty():
            click.echo("\033[K", nl=False, err=True)
        click.secho(f"[{time.monotonic() - self._began:5.1f} s] ", dim=True, nl=False)
        click.echo(line)
        sys.stdout.flush()


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    """Told to end: unwind, so that no agent and no broker is left behind."""
    raise SystemExit(128 + number)


def _draw(sent: int, messages: int) -> None:
    """How far the publishers are, on one line of a terminal that the next line overwrites."""
    if sys.stderr.isatty():
        bar = "█" * (24 * sent // max(messages, 1))
        click.echo(f"\r\033[K  publishing ▕{bar:<24}▏ {sent:,} of {messages:,} messages\r", nl=False, err=True)


def _describe(feeds: list[Feed]) -> Iterator[str]:
    rows, readings = sum(len(feed.rows) for feed in feeds), sum(feed.readings for feed in feeds)
    devices = ", ".join(feed.device for feed in feeds[:5]) + (" …" if len(feeds) > 5 else "")
    yield f"{rows:,} rows of {devices}: {readings:,} readings of {', '.join(feeds[0].metrics)}"
    late = sum(b[0] < a[0] for feed in feeds for a, b in pairwise(feed.rows))
    yield f"{late:,} messages are published after later ones: a tenth is held up on the way"
    absent, unreadable = sum(feed.absent for feed in feeds), [line for feed in feeds for line in feed.unreadable]
    if absent:
        yield f"{absent:,} cells have no value (NA): published as null, no reading"
    if unreadable:
        more = " …" if len(unreadable) > SHOWN_UNREADABLE else ""
        shown = "; ".join(unreadable[:SHOWN_UNREADABLE]) + more
        yield f"{len(unreadable):,} cells cannot be read and are left out: {shown}"


def _answers(run: EdgeRun) -> Iterator[str]:
    """The newest answer of every window, as a table: value, and the band in which the exact result certainly lies."""
    newest: dict[tuple[str, str, str], dict[str, Any]] = {}
    for result in run.results:
        newest[result["device"], result["stream"], result["window"]] = result
    streams = list(dict.fromkeys(key[:2] for key in newest))
    shown = streams[: 2 * os.get_terminal_size().lines if sys.stdout.isatty() else 100]
    width = max((len(f"{device} {stream}") for device, stream in shown), default=0)
    yield f"  {'':{width}}{'mean of 24 hours':>34}{'maximum of 7 days':>34}"
    for device, stream in shown:
        cells = "".join(f"{_band(newest.get((device, stream, window))):>34}" for window in WINDOWS)
        yield f"  {device + ' ' + stream:{width}}{cells}"


def _band(result: dict[str, Any] | None) -> str:
    if result is None or result["value"] is None:
        return "-"
    value, low, high = (f"{round(result[key], 2) + 0.0:.2f}" for key in ("value", "low", "high"))  # + 0.0: never -0.00
    return f"{value} exactly" if result["exact"] else f"{value} in [{low}, {high}]"
