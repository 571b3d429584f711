"""An orderly end: every open bucket closed, committed and handed on, as far as the target takes it in time."""

from __future__ import annotations

import sqlite3
import time

from sluicegate_agent.errors import EnvironmentRefused
from sluicegate_agent.logs.notices import Notices
from sluicegate_agent.pipeline import Pipeline
from sluicegate_agent.sync import Sync

SECONDS = 30.0


def hand_over(pipeline: Pipeline, sync: Sync, notices: Notices | None = None, seconds: float = SECONDS) -> None:
    """Close every open bucket, commit, and send all there is; `notices` tell at once why that takes long.

    It ends as well where the state has to part before more is sent.

    Raises EnvironmentRefused where the store refuses, or the target does not take it in time: what it lacks is kept.
    """
    pipeline.flush()
    commit(pipeline)
    end = time.monotonic() + seconds
    notices = notices or Notices(sync, pipeline)
    while not sync.is_done() and not sync.is_overtaken:
        now = time.monotonic()
        if now >= end or sync.is_hung:
            why = sync.link.error or "there is more than it took"
            raise EnvironmentRefused(
                f"not everything was handed on (at most {seconds:.0f} s): {why}; it is kept for the next start"
            )
        if sync.link.is_due(now) or sync.link.state == "unknown":
            sync.step(now, flush=True)
            notices.look()
            time.sleep(0.01 if sync.is_busy else 0)
        else:
            time.sleep(0.05)


def commit(pipeline: Pipeline) -> None:
    """A commit that nobody tries again. Raises EnvironmentRefused where the store refuses (a full disk)."""
    try:
        pipeline.commit()
    except sqlite3.OperationalError as error:
        raise EnvironmentRefused(
            f"the state cannot be written ({error}): {pipeline.pending} messages were not counted; make room and start "
            "again"
        ) from error
