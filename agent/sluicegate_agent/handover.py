"""An orderly end: every open bucket closed, committed and handed on, as far as the target takes it in time."""

from __future__ import annotations

import time

from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.sync import Sync

SECONDS = 30.0


def drained(pipeline: Pipeline, sync: Sync, seconds: float = SECONDS) -> bool:
    """Close every open bucket and send all there is; whether nothing was left when it ended, at the latest by then."""
    pipeline.flush()
    pipeline.commit()
    end = time.monotonic() + seconds
    while not sync.is_done() and time.monotonic() < end:
        sync.step(time.monotonic(), flush=True)
        time.sleep(0 if sync.link.is_due(time.monotonic()) else 0.05)
    return sync.is_done()
