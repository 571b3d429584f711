"""What Spark is doing, on one line of the terminal: the step, its tasks done, the seconds it has taken."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click
from pyspark import SparkContext
from pyspark.sql import SparkSession

from sluicegate_cloud.session import is_remote

_BAR = 24


@contextmanager
def step(what: str, spark: SparkSession | None = None) -> Iterator[None]:
    """Show `what` with a bar of the session's tasks while the block runs, then how long it took (all on stderr)."""
    begun, over = time.monotonic(), threading.Event()
    context = None if spark is None or is_remote(spark) else spark.sparkContext
    drawing = threading.Thread(target=_draw, args=(what, context, begun, over), daemon=True)
    if sys.stderr.isatty():
        drawing.start()
    try:
        yield
    finally:
        over.set()
        if drawing.is_alive():
            drawing.join()
    clear = "\r\033[K" if sys.stderr.isatty() else ""
    click.echo(f"{clear}  {what}: {time.monotonic() - begun:.1f} s", err=True)


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
