"""The inputs of this package by the contract of all; what each is made of is imported where one is opened."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

from sluicegate_agent.config.formats import Finding
from sluicegate_agent.config.inputs import Input, Opened, Opening
from sluicegate_agent.config.sources import SourceConfig

#: Formats of which a line is a message.
_LINES = ("json", "array", "number", "line")


def _open_tail(opening: Opening) -> Opened:
    from sluicegate_agent.inputs.tail import Tail

    tell_lost = partial(opening.lost, "")  # it says itself why
    return Tail(opening.store, opening.source, opening.most, tell_lost, may_be_lost=opening.is_lost)


def _open_standing(opening: Opening) -> Opened:
    from sluicegate_agent.inputs.standing import StandardInput

    return StandardInput.of(opening.source, opening.most, sys.stdin)


def _of_lines(source: SourceConfig) -> Iterator[Finding]:
    if source.format not in _LINES:
        yield Finding("format", source.format, f"a line is no such message: expected {', '.join(_LINES)}")
    if source.filter.is_wild:
        yield Finding("topic", source.subscribed, "is the name of this input: expected one without wildcards")


#: Opened by its own table, [http]: one listener for all its sources, which answers each request.
HTTP = Input(None)
TAIL = Input(_open_tail, findings=_of_lines)
STDIN = Input(_open_standing, findings=_of_lines)
