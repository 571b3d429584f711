"""The contract of an input beside MQTT, and the inputs by name: each is imported when a configuration asks for it.

A package of others adds one by an entry point of the group `sluicegate.inputs`, whose object is an `Input`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sluicegate_agent.config.formats import Finding
from sluicegate_agent.naming.plugins import found

if TYPE_CHECKING:
    import sqlite3

    from sluicegate_agent.config.sources import SourceConfig
    from sluicegate_agent.config.table import Table
    from sluicegate_agent.messages import Message

GROUP = "sluicegate.inputs"
#: The broker, whose messages come with the link.
MQTT = "mqtt"
#: Where the inputs of this package are.
BUILT_IN = {
    "http": "sluicegate_agent.inputs.ours:HTTP",
    "tail": "sluicegate_agent.inputs.ours:TAIL",
    "stdin": "sluicegate_agent.inputs.ours:STDIN",
}


class Opening(NamedTuple):
    """What an input is opened with: its source, and its options as `Input.options` has them.

    `most`: bytes of a message; what is longer is refused. `position`: what the input said at the last commit that
    counted anything of it, None: nothing yet. `is_lost`: there was one, and a damaged store lost it: what is there now
    may have counted, so begin behind it. `lost(why)` says that messages may be lost which nobody will bring: each
    stream of the source says then that a reading is missing. `store`: for inputs of this package.
    """

    source: SourceConfig
    options: Any
    most: int
    position: bytes | None
    is_lost: bool
    lost: Callable[[str], None]
    store: sqlite3.Connection


class Opened:
    """An input that was opened, the base of all: only `take` has to be written.

    Everything is called in the agent's one thread, which takes nothing else meanwhile: so nothing may wait. Whatever is
    raised is told with the name of the source; the input is closed, and opened again a while later where it was.
    """

    #: A socket, or what else has a `fileno`, that can be read when there is something to take. None: the agent asks
    #: twice a second. It has to be emptied by `take`.
    wakes: Any = None
    #: Where reading goes on: behind all that was handed out. Up to 4096 bytes, asked for after each message and kept
    #: with the commit that counts them. None: nothing is kept.
    position: bytes | None = None
    #: Whether nothing more will ever come.
    is_over = False
    #: Whether there is more to take at once although `take` gave nothing.
    is_busy = False

    def take(self) -> Message | None:
        """The next message, None where there is none now; it counts. While commits wait nobody asks."""
        raise NotImplementedError

    def committed(self) -> None:
        """All that was handed out is durable: what sent it may be told so."""

    def close(self) -> None:
        """The agent ends, or takes another configuration; what was not handed out is left where it is."""

    # Of inputs of this package, which keep rows of their own.

    changed = False

    def save(self, connection: sqlite3.Connection) -> None:
        """Write them, inside the caller's transaction."""

    def saved(self) -> None:
        """The transaction is durable."""


def _no_findings(source: SourceConfig) -> Iterator[Finding]:
    yield from ()


class Input(NamedTuple):
    """One kind of input. `open` makes it ready for a source; what it raises is told, and it is tried again.

    `options`: the table of `options` in a source, which converts and refuses like any other; None: there are none.
    `findings`: what else is wrong with a source, keys such as "options.port" beginning at the source.
    `repeats`: a message may come again after it was handed out, as when an acknowledgement is lost. Then it is known by
    its number or its time, and a source without either is refused. Else each message counts because it is handed out
    once, and equal ones count each; a number says what is missing.
    `memory`: bytes that one takes, its modules included, for `sluicegate plan`.
    """

    open: Callable[[Opening], Opened] | None
    options: type[Table] | None = None
    findings: Callable[[SourceConfig], Iterator[Finding]] = _no_findings
    repeats: bool = False
    memory: int = 0


@cache
def input_of(name: str) -> Input:
    """The input of a name that is not MQTT. Raises UnknownName."""
    return found(name, Input, GROUP, BUILT_IN, [MQTT])
