"""A target beside the agent's thread: a slow network delays documents, never the readings that come in meanwhile."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait

from sluicegate_agent.sync.contract import Document, Outcome, Target
from sluicegate_agent.sync.pace import Pace

log = logging.getLogger("sluicegate.sync")
#: Seconds that a new `put` waits for its answer before it says that one is pending; asked again it does not wait.
PATIENCE = 0.05
_STACK = 256 << 10


class Aside:
    """Hands each `put` to one thread; while that is under way, `put` says so (`Outcome.pending`).

    The documents of a later `put` are not looked at until the answer to the first is there: it is the one returned, so
    it may be about documents that were settled long ago, which is harmless.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self._work: Future[Outcome] | None = None

    @property
    def pace(self) -> Pace | None:
        """How much its link carries, where it is measured."""
        return getattr(self.target, "pace", None)

    def put(self, documents: Sequence[Document]) -> Outcome:
        """The outcome of the `put` under way; begins one where there is none."""
        patience = 0.0
        if self._work is None:
            if not documents:
                return Outcome()
            self._work, patience = _begun(lambda: self.target.put(documents)), PATIENCE
        if not self._work.done() and wait([self._work], patience).not_done:
            return Outcome(pending=True)
        work, self._work = self._work, None
        try:
            return work.result()
        except Exception as error:
            # Whatever a peer sent must not end the agent. That it was not foreseen is a fault of ours: with its trace.
            log.exception("the sync target failed in a way that was not foreseen")
            return Outcome(retry_after=0.0, error=f"the target failed ({type(error).__name__}: {error}); see the log")

    def close(self) -> None:
        """Let connections go; a `put` under way ends by that, or with its time-out."""
        self.target.close()


def _begun(work: Callable[[], Outcome]) -> Future[Outcome]:
    """The work in a thread that ends with the process; what it raises is raised again by the future's `result`."""
    future: Future[Outcome] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    before = threading.stack_size(_STACK)
    try:
        threading.Thread(target=run, name="sync", daemon=True).start()
    finally:
        threading.stack_size(before)
    return future
