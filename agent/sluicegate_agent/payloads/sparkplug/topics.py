"""Sparkplug B's topics as RabbitMQ delivers them: its routing keys have dots for slashes, so the dots are lost.

`spBv1.0/line.1/NDATA/edge` comes as `spBv1/0/line/1/NDATA/edge`. No name has a slash, so levels before the message's
kind are one group, and those behind a node's kind one node. Behind a device's kind two levels are node and device; of
more nobody can tell where the device begins.
"""

from __future__ import annotations

_CAME_AS = ["spBv1", "0"]
SPACE = "spBv1.0"
_NODE = {"NBIRTH", "NDATA", "NDEATH", "NCMD"}
_DEVICE = {"DBIRTH", "DDATA", "DDEATH", "DCMD"}


def dotted(topic: str) -> str:
    """The topic with its dots where they are certain; where they are not, with the levels that came."""
    levels = topic.split("/")
    if levels[:2] != _CAME_AS:
        return topic
    levels = levels[2:]
    kinds = [at for at, level in enumerate(levels) if level in _NODE | _DEVICE]
    if len(kinds) == 1 and 0 < kinds[0] < len(levels) - 1:
        levels = _joined(levels, kinds[0])
    return "/".join([SPACE, *levels])


def _joined(levels: list[str], at: int) -> list[str]:
    """With one level for the group, and one for a node that has no device."""
    group, kind, names = levels[:at], levels[at], levels[at + 1 :]
    return [".".join(group), kind, *([".".join(names)] if kind in _NODE else names)]
