"""A target beside the agent's thread: a slow network delays documents, never the readings that come in meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from sluicegate_agent.sync.contract import Document, Outcome, Target

#: Seconds that `put` waits for an answer before it says that one is pending.
PATIENCE = 0.2
_STACK = 256 << 10


class Aside:
    """Hands each `put` to one thread; while that is under way, `put` says so (`Outcome.pending`).

    The documents of a later `put` are not looked at until the answer to the first is there: it is the one returned, so
    it may be about documents that were settled long ago, which is harmless.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self._work: Future[Outcome] | None = None

    def put(self, documents: Sequence[Document]) -> Outcome:
        """The outcome of the `put` under way; begins one where there is none."""
        if self._work is None:
            if not documents:
                return Outcome()
            self._work = _begun(lambda: self.target.put(documents))
        try:
            outcome = self._work.result(PATIENCE)
        except TimeoutError:
            return Outcome(pending=True)
        self._work = None
        return outcome

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
