"""What should not come is refused or taken as documented; the window stays usable and right, in every engine."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from compiled_code import Keep, order, order_of
from engine_windows import LITE
from event_time_oracle import EventTime

import sluicegate as sg
from sluicegate import errors, policies
from sluicegate.catalogue import FACTS

pytestmark = pytest.mark.usefixtures("implementation_of_window")
EVERY = [
    policies.count(4), policies.time(50), policies.delta(None, 3), policies.total(None, 9),
    policies.newer_than_maximum(), policies.newer_than_longest_run(limit=9), policies.custom(lambda total, old: False),
]  # fmt: skip

REFUSED = {"soe": ("delta", "total", "newer-than-maximum", "newer-than-longest-run", "custom")}
"""What an engine does not take; everything else it has to."""
ANY_RULE = [name for name in sg.ENGINES if not FACTS[name].deducts]


def whole(window: sg.Window) -> tuple[Any, ...]:
    """All that can be seen of a window."""
    window.verify()
    try:
        stored = window.snapshot()
    except errors.ConfigurationError:  # the engine keeps no leaves
        stored = b""
    return window.query(), len(window), window.accepted, window.readings, stored


@pytest.mark.parametrize("engine", sg.ENGINES)
@pytest.mark.parametrize("policy", EVERY, ids=lambda policy: policy.name)
def test_a_refused_reading_changes_nothing(engine: str, policy: Any) -> None:
    """NaN, infinities, values and times out of range, wrong types, batches with one of them: as if never offered."""
    if policy.name.split(":")[0] in REFUSED.get(engine, ()):
        with pytest.raises(errors.ConfigurationError, match="cannot be deducted again; take a count or time policy"):
            sg.Window({"sum": sg.sum(), "last": sg.last()}, policy=policy, engine=engine)
        return
    window, beside = (sg.Window({"sum": sg.sum(), "last": sg.last()}, policy=policy, engine=engine) for _ in range(2))
    for i in range(12):
        for bad, time in ((float("nan"), i), (float("inf"), i), (-float("inf"), i), (2.0**961, i), (1.0, 2**61 + 1)):
            with pytest.raises(errors.InputError):
                window.insert(bad, time)
            with pytest.raises(errors.InputError):
                window.insert_many(array("d", [1.0, bad]), array("q", [i, time]))
        for bad, time in (("warm", i), (None, i), ((1.0, 2.0), i), (1.0, 0.5), (1.0, "now")):
            with pytest.raises(errors.InputError):
                window.insert(bad, time)  # type: ignore[arg-type]
        assert whole(window) == whole(beside)
        for each in (window, beside):
            each.insert(float(i % 5), i)
    assert whole(window) == whole(beside)


@pytest.mark.parametrize("bad", [0.0, -0.0, -5e-324, -7.0])
@pytest.mark.parametrize("at", [0, 255, 256, 300, 999])
def test_what_is_not_positive_is_found_in_a_batch(bad: float, at: int) -> None:
    """A geometric mean refuses the batch with its row, before anything enters; the least number above 0 is taken."""
    window = sg.Window(sg.geometric_mean(), policy=policies.count(10))
    values = array("d", [5e-324, 2.0**960]) * 500
    values[at] = bad
    with pytest.raises(errors.InputError, match=rf"\b{at}\b"):
        window.insert_many(values)
    assert window.accepted == 0
    values[at] = 1.0
    window.insert_many(values)
    assert window.accepted == len(values)


@pytest.mark.parametrize("engine", sg.ENGINES)
def test_times_that_go_back(engine: str) -> None:
    """Each counts where its own time puts it, or is late; an engine without leaves refuses what it cannot put there."""
    window = sg.Window({"order": order(), "n": sg.count()}, policy=policies.time(10), engine=engine)
    model = EventTime(10)
    times = [100, 105, 20, 98, 107, 3, 101, 111, 111, 90, 102, 111, 119, 110, 109, 1, 119, 115, 140, 5, 131, 130, 141]
    for i, time in enumerate(times):
        if engine in LITE and model.now is not None and model.cutoff < time < model.now:
            with pytest.raises(errors.InputError, match="needs readings in order of time"):
                window.insert(float(i), time)
        else:
            window.insert(float(i), time)
            model.insert(float(i), time)
        inside = [(reading.value, reading.time) for reading in model.inside()]
        assert window.query() == {"order": order_of(inside), "n": len(inside)}
        assert window.late == model.late
        window.verify()


@pytest.mark.parametrize("engine", ANY_RULE)
@pytest.mark.parametrize("monotone", [True, False], ids=["bulk", "one by one"])
def test_a_window_emptied_again_and_again(engine: str, monotone: bool) -> None:
    """A rule that lets everything go is asked of an empty window never, and the window goes on after it."""
    keep, aggregates = Keep(0), {"order": order(), "sum": sg.sum(), "max": sg.max()}
    window = sg.Window(aggregates, policy=keep.policy(monotone=monotone), engine=engine)
    for size in (0, 1, 2, 5, 0, 0, 17, 3):
        keep.context.value = 10**9
        readings = [(float(i % 5), i) for i in range(size)]
        for reading in readings:
            window.insert(*reading)
        assert window.query()["order"] == order_of(readings)
        keep.context.value = 0
        window.insert(1.0, 99)
        assert window.query() == {"order": None, "sum": 0.0, "max": None}
        assert (len(window), window.readings) == (0, 0)
        window.verify()


class Moody:
    """Raises when it is told to; else keeps five."""

    def __init__(self) -> None:
        self.raises_at = -1
        self.asked = 0

    def __call__(self, total: Any, old: Any) -> bool:
        """Whether more than five would be left."""
        self.asked += 1
        if self.asked == self.raises_at:
            raise LookupError("of the user's")
        return bool(total.count - old.count >= 5)


@pytest.mark.parametrize("engine", ANY_RULE)
@pytest.mark.parametrize("monotone", [True, False], ids=["bulk", "one by one"])
def test_a_policy_that_raises_at_any_question(engine: str, monotone: bool) -> None:
    """Told by name, single and in batches; the reading is in, the window is whole, the next reading sets it right."""
    rule = Moody()
    policy = policies.custom(rule, monotone=monotone, label="moody")
    window, kept = sg.Window({"order": order(), "n": sg.count()}, policy=policy, engine=engine), list[Any]()
    for i in range(60):
        rule.raises_at = rule.asked + 1 + i % 3 if i % 4 == 3 else -1
        try:
            if i % 8 == 7:
                window.insert_many(array("d", [float(i)]), array("q", [i]))
            else:
                window.insert(float(i), i)
        except errors.PolicyError as error:
            assert "moody" in str(error)  # noqa: PT017  whether it raises depends on how often it is asked
        kept = [*kept, (float(i), i)][-len(window) :]
        window.verify()
        assert len(window) >= min(5, i + 1)
        assert window.query() == {"order": order_of(kept), "n": len(kept)}
    rule.raises_at = -1
    window.insert(0.0, 60)
    assert window.query() == {"order": order_of([*kept, (0.0, 60)][-5:]), "n": 5}


@pytest.mark.parametrize("engine", [*sg.ENGINES, "no such engine"])
def test_an_engine_takes_a_policy_or_refuses_it_by_name(engine: str) -> None:
    """No combination fails later than when it is made."""
    for policy in EVERY:
        try:
            window = sg.Window({"max": sg.max()}, policy=policy, engine=engine)
        except errors.ConfigurationError as error:
            assert engine in str(error)  # noqa: PT017  most are taken
            continue
        window.insert_many(array("d", [1.0, 3.0, 2.0] * 9), array("q", range(27)))
        window.verify()
