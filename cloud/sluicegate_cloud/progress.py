"""What Spark is doing, on one line of the terminal: the step, its tasks done, the seconds it has taken.

With SLUICEGATE_LOG=json a line of JSON instead, when a step begins, each ten seconds and when it ends: for machines.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import click
from pyspark import SparkContext
from pyspark.sql import SparkSession

from sluicegate_cloud.session import is_remote

#: The environment's word for how progress is told.
FORMAT = "SLUICEGATE_LOG"
_BAR, _EVERY_S = 24, 10.0


@contextmanager
def step(what: str, spark: SparkSession | None = None) -> Iterator[None]:
    """Show `what` with a bar of the session's tasks while the block runs, then how long it took (all on stderr)."""
    begun, over, failed = time.monotonic(), threading.Event(), ""
    context = None if spark is None or is_remote(spark) else spark.sparkContext
    as_json = os.environ.get(FORMAT) == "json"
    drawing = threading.Thread(target=_log if as_json else _draw, args=(what, context, begun, over), daemon=True)
    if as_json or sys.stderr.isatty():
        drawing.start()
    try:
        yield
    except BaseException as error:
        failed = type(error).__name__
        raise
    finally:
        over.set()
        if drawing.is_alive():
            drawing.join()
        if as_json:
            _say("failed" if failed else "done", what, begun, **({"error": failed} if failed else {}))
    if not as_json:
        clear = "\r\033[K" if sys.stderr.isatty() else ""
        click.echo(f"{clear}  {what}: {time.monotonic() - begun:.1f} s", err=True)


def _log(what: str, context: SparkContext | None, begun: float, over: threading.Event) -> None:
    _say("begun", what, begun)
    while not over.wait(_EVERY_S):
        done, tasks = _tasks(context) if context else (0, 0)
        _say("running", what, begun, tasks_done=done, tasks=tasks)


def _say(event: str, what: str, begun: float, **more: Any) -> None:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    told = {"time": now, "event": event, "step": what, "seconds": round(time.monotonic() - begun, 3), **more}
    click.echo(json.dumps(told, ensure_ascii=False), err=True)


def _draw(what: str, context: SparkContext | None, begun: float, over: threading.Event) -> None:
    while not over.wait(0.2):
        done, tasks = _tasks(context) if context else (0, 0)
        bar = "█" * (_BAR * done // max(tasks, 1))
        counted = f"▕{bar:<{_BAR}}▏ {done} of {tasks} tasks" if tasks else "…"
        click.echo(f"\r\033[K  {what} {counted} {time.monotonic() - begun:.0f} s", nl=False, err=True)


def _tasks(context: SparkContext) -> tuple[int, int]:
    """Tasks done and in all of the stages that are running now."""
    tracker = context.statusTracker()
    stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage)) is not None]
    return sum(info.numCompletedTasks for info in stages), sum(info.numTasks for info in stages)
