"""Every combination of what a definition can say: legal ones run as the models do, others are refused with a reason."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from event_model import EventModel
from listening import Hears, Step, both, policy, trigger
from model import Model

import sluicegate as sg
from sluicegate.errors import ConfigurationError

EVICTS: dict[str, Any] = {
    "none": None, "count": sg.policies.count(3), "delta": sg.policies.delta("x", 2),
    "time": sg.policies.time("1h"), "time, hop": sg.policies.time("1h", hop="10min"),
    "day": sg.policies.time("1d"), "punctuation": sg.policies.punctuation(),
}  # fmt: skip
TRIGGERS = {
    "none": None,
    "count": sg.triggers.count(2),
    "delta": sg.triggers.delta("x", 1),
    "time": sg.triggers.time(4),
}
KINDS = ("tumbling", "sliding", "hopping", "session")
WAYS: dict[str, dict[str, Any]] = {
    "one window": {},
    "keys": {"key": "key"},
    **{f"keys, {by}": {"key": "key", "partitions": sg.PartitionEviction(**{by: 3})} for by in ("readings", "age")},
    **{f"keys, {select}": {"key": "key", "partitions": sg.PartitionEviction(count=2, select=select)}
       for select in ("lru", "lfu", "oldest")},
    "partitions of no key": {"partitions": sg.PartitionEviction(count=2)},
}  # fmt: skip
LATENESS = (None, 0, 5)
ALIGNED = (None, "clock", "day")


def is_legal(kind: str, evict: str, at: str, partial: bool, lateness: int | None, aligned: str | None) -> bool:
    """By the paper (3.1 to 3.3), and by what docs/reference/kinds.md says of windows by event time: not by the code."""
    asked = kind == "sliding" and at == "none"
    if kind == "sliding":
        policies = ("count", "delta", "time", "time, hop", "day") if asked else ("count", "delta", "time", "day")
        return evict in policies and (partial or not asked) and lateness is None and aligned is None
    if not partial:
        return False
    by_event_time = kind != "tumbling" or lateness is not None or aligned is not None
    if at == "delta" or (at != "none" and not by_event_time):
        return False
    if kind == "session":
        return evict in ("time", "day") and aligned is None
    if kind == "hopping":  # an hour's hop of ten minutes is no day's
        return evict == "time, hop" and aligned != "day"
    if aligned is not None:
        return evict in (("none", "day") if aligned == "day" else ("time", "day"))
    return evict in ("time", "day") or (evict in ("count", "delta", "punctuation") and lateness is None)


def test_what_makes_a_window_and_what_does_not() -> None:
    """All 16,128: a refusal begins with the place and has a reason; what is legal can be said and written down."""
    legal = refused = 0
    for kind, (evict, evicts), (at, triggers), partial, (way, keys), late, aligned in itertools.product(
        KINDS, EVICTS.items(), TRIGGERS.items(), (True, False), WAYS.items(), LATENESS, ALIGNED
    ):
        given = {"kind": kind, "evict": evicts, "trigger": triggers, "partial": partial, "lateness": late} | keys
        expected = is_legal(kind, evict, at, partial, late, aligned) and way != "partitions of no key"
        try:
            spec = sg.WindowSpec(**given, aligned=aligned)
        except ConfigurationError as error:
            found, said = None, str(error)
        else:
            found, said = spec, ""
        assert (found is not None) == expected, (given, aligned, said)
        if found is None:
            place, _, reason = said.partition(": ")
            assert place.partition(".")[0] in {*given, "aligned", "partitions"}
            assert len(reason.split()) > 3
        else:
            assert found.explain("the mean")
            assert sg.WindowSpec.from_dict(found.to_dict()) == found
        legal, refused = legal + expected, refused + (not expected)
    assert (legal, refused) == (826, 15_302)


SIZES: dict[str, tuple[Any, ...]] = {"count": ("count", 3), "delta": ("delta", 2), "time": ("time", 5)}
BY_ARRIVAL = [("tumbling", evict, (), True) for evict in (*SIZES.values(), ("punctuation",))]
BY_ARRIVAL += [
    ("sliding", evict, at, partial)
    for evict in SIZES.values()
    for at in (("count", 2), ("delta", 1), ("time", 4))
    for partial in (True, False)
]


def arrivals(seed: str, punctuated: bool) -> list[Step]:
    """Keys, times and attributes that never fall, silence; and punctuations, where the window goes by them."""
    rng, now, x, found = random.Random(seed), 0, 0, list[Step]()
    for _ in range(60):
        now, x = now + rng.choice((0, 1, 1, 2, 7 if rng.random() < 0.2 else 1)), x + rng.choice((0, 1, 2))
        nothing = rng.random() < 0.15
        found.append((now, ("!" if punctuated else None) if nothing else rng.choice("aaabcd"), x))
    return found


@pytest.mark.parametrize("way", [way for way in WAYS if way != "partitions of no key"])
@pytest.mark.parametrize(("kind", "evict", "at", "partial"), BY_ARRIVAL)
def test_each_legal_window_by_arrival(kind: str, evict: Any, at: Any, partial: bool, way: str) -> None:
    """Kind, eviction, trigger, partitioned or not, when it is first full, before it is full: the paper's events."""
    model: dict[str, Any] = {"kind": kind, "evict": evict, "trigger": at, "partial": partial}
    limits = WAYS[way].get("partitions")
    steps, spec = arrivals(f"{kind}{evict}{at}{way}", evict[0] == "punctuation"), {"partial": partial}
    if way == "one window":
        told, expected = alone(model, spec, steps)
    else:
        if limits:
            model |= {name: getattr(limits, name) for name in ("count", "readings", "age") if getattr(limits, name)}
            model["select"], spec["partitions"] = limits.select, limits
        told, expected = both(spec, model, steps)
    assert told == expected
    heard = {each[0] for each in told}
    assert ("before_flush" if kind == "tumbling" else "trigger") in heard
    assert ("initial_full" in heard) == (kind == "sliding")
    assert ("partition_eviction" in heard) == (limits is not None)


def alone(model: dict[str, Any], spec: dict[str, Any], steps: list[Step]) -> tuple[list[Any], list[Any]]:
    """A window without key, beside a model all of whose readings have the same."""
    handler, clock = Hears(), [0]
    kind, evict, at = model["kind"], model["evict"], model["trigger"]
    definition = sg.WindowSpec(kind=kind, evict=policy(evict), trigger=trigger(at), **spec)
    window, told = sg.WindowOperator(definition, handler, lambda: clock[0]), Model(kind, evict, at, **spec)
    for i, (now, key, x) in enumerate(steps):
        clock[0] = now
        if key == "!":
            window.punctuate()
            told.punctuate(now)
        elif key is None:
            window.advance()
            told.until(now)
        else:
            window.insert({"x": x, "i": i})
            told.arrive(now, None, (None, x, {"x": x, "i": i}))
    return handler.events, [tuple(_plain(part) for part in event) for event in told.events]


def _plain(part: Any) -> Any:
    """The model's (key, attribute, reading) as the operator's reading."""
    if isinstance(part, list):
        return [_plain(each) for each in part]
    return part[2] if isinstance(part, tuple) else part


BY_EVENT_TIME = [
    (kind, lateness, at)
    for kind in ("tumbling", "hopping", "hopping unevenly", "session")
    for lateness in (0, 6)
    for at in ("", "count", "period")
]


@pytest.mark.parametrize("keys", [True, False])
@pytest.mark.parametrize(("kind", "lateness", "at"), BY_EVENT_TIME)
def test_each_legal_window_by_event_time(kind: str, lateness: int, at: str, keys: bool) -> None:
    """Early, revised and final results of one stream, late ones among it, with keys and without: the model's."""
    hop = {"hopping": 2, "hopping unevenly": 4}.get(kind, 6)
    of_model: dict[str, Any] = {"gap": 5} if kind == "session" else {"length": 6, "hop": hop}
    given: dict[str, Any] = {"evict": sg.policies.time(5 if kind == "session" else 6, hop=hop if hop < 6 else 1)}
    if at:
        of_model[at], given["trigger"] = 2, sg.triggers.count(2) if at == "count" else sg.triggers.time(2)
    spec = sg.WindowSpec(kind=kind.split()[0], lateness=lateness, key="key" if keys else None, **given)
    told: dict[Any, list[Any]] = {}

    class Results(sg.WindowHandler):
        def result(self, window: Any, key: Any) -> None:
            pane = window.pane
            taken = [reading["taken"] for reading in window.readings(key)]
            told.setdefault(key, []).append((window.now, pane.start, pane.end, pane.stage, taken))

    window, model = sg.WindowOperator(spec, Results()), EventModel(lateness=lateness, **of_model)
    rng, now = random.Random(f"{kind}{lateness}{at}{keys}"), 20
    for _ in range(80):
        now += rng.choice((0, 1, 1, 2, 8 if rng.random() < 0.2 else 1))
        time, key = now - (rng.randrange(24) if rng.random() < 0.3 else 0), rng.choice("ab") if keys else None
        model.arrive(key, time)
        window.insert({"key": key, "taken": (time, model.arrived)}, time)
    window.advance(now + 60)
    model.until(now + 60)
    assert told == model.results
    assert window.late == model.late > 0
    stages = {each[3] for results in told.values() for each in results}
    assert stages == {"final"} | ({"early", "revised"} if lateness else {"early"} if at else set())
