"""A handler that hears everything, and definitions with their models: what the tests of windows share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from model import Model

import sluicegate as sg

UNARY = ("before_flush", "after_flush", "trigger", "initial_full")


class Hears(sg.WindowHandler):
    """Writes down each event with what the window holds then, as the model does."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def __getattribute__(self, name: str) -> Any:
        if name in ("before_insert", "after_insert", "before_evict", "after_evict", *UNARY):
            return lambda window, key, t=None: self.events.append((name, key, t, window.readings(key)))
        return super().__getattribute__(name)

    def partition_eviction(self, window: Any, partitions: Any) -> None:
        self.events.append(("partition_eviction", [(each.key, each.readings) for each in partitions]))


def policy(told: tuple[Any, ...]) -> Any:
    """The model's eviction policy, of readings (key, attribute)."""
    if told[0] == "delta":
        return sg.policies.delta("x", told[1])
    return getattr(sg.policies, told[0])(*told[1:])


def trigger(told: tuple[Any, ...]) -> Any:
    """The model's trigger."""
    if not told:
        return None
    return sg.triggers.delta("x", told[1]) if told[0] == "delta" else getattr(sg.triggers, told[0])(told[1])


class Reading(tuple[Any, ...]):
    """(key, attribute, number): the model's tuple, and a reading with attributes `key` and `x`."""

    __slots__ = ()
    key = property(lambda self: self[0])
    x = property(lambda self: self[1])


Step = tuple[int, Any, Any]  # (now, key, attribute); a punctuation where the key is "!"; only time where it is None


def both(spec: dict[str, Any], model: dict[str, Any], steps: Iterable[Step]) -> tuple[list[Any], list[Any]]:
    """The events of the operator and of the model."""
    kind, evict, at = model["kind"], model["evict"], model.get("trigger", ())
    rest = {name: value for name, value in model.items() if name not in ("kind", "evict", "trigger")}
    told = Model(kind, evict, at, **rest)
    handler, clock = Hears(), [0]
    now: Callable[[], int] = lambda: clock[0]  # noqa: E731
    definition = sg.WindowSpec(kind=kind, evict=policy(evict), trigger=trigger(at), key="key", **spec)
    window = sg.WindowOperator(definition, handler, now)
    for i, (time, key, x) in enumerate(steps):
        clock[0] = time
        if key is None:
            window.advance()
            told.until(time)
        elif key == "!":
            window.punctuate()
            told.punctuate(time)
        else:
            window.insert(Reading((key, x, i)))
            told.arrive(time, key, (key, x, i))
    return handler.events, told.events
