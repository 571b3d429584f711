"""Windows by the clock and the calendar of a place: what a day, an hour and a week are when the clock is changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import some

import sluicegate as sg
from sluicegate.windowing import calendar

HOUR = 3_600_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(*when: int, place: str = "UTC", fold: int = 0) -> int:
    """µs of a wall time."""
    moment = datetime(*when, tzinfo=ZoneInfo(place), fold=fold)  # type: ignore[misc, arg-type]
    return (moment.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)


def covering(time: int, place: str, **given: Any) -> list[tuple[int, int]]:
    """The windows that hold a time."""
    given = {"kind": "tumbling", "timezone": place} | given
    return sg.WindowSpec(**given).covering()(time)


@pytest.mark.parametrize(
    ("day", "hours"), [((2026, 3, 28), 24), ((2026, 3, 29), 23), ((2026, 10, 25), 25), ((2026, 10, 26), 24)]
)
def test_a_day_in_vienna(day: tuple[int, int, int], hours: int) -> None:
    """It has 23 hours once a year, and 25 once."""
    noon = micros(*day, 12, place="Europe/Vienna")
    ((start, end),) = covering(noon, "Europe/Vienna", aligned="day")
    assert start == micros(*day, place="Europe/Vienna")
    assert end - start == hours * HOUR
    assert covering(end - 1, "Europe/Vienna", aligned="day") == [(start, end)]
    assert covering(end, "Europe/Vienna", aligned="day") != [(start, end)]


def test_hours_that_the_clock_shows_twice_or_never() -> None:
    """25 windows of an hour on the long day, 23 on the short one, each an hour long."""
    for day, hours in (((2026, 3, 29), 23), ((2026, 10, 25), 25)):
        start = micros(*day, place="Europe/Vienna")
        hold = sg.WindowSpec(
            kind="tumbling", evict=sg.policies.time("1h"), aligned="clock", timezone="Europe/Vienna"
        ).covering()
        found = {window for minute in range(0, hours * 60, 10) for window in hold(start + minute * 60_000_000)}
        assert sorted(found) == [(start + k * HOUR, start + (k + 1) * HOUR) for k in range(hours)]


def test_a_quarter_of_the_day_is_as_long_as_the_clock_says() -> None:
    """From 0 to 6 o'clock are 5 hours in March, 7 in October."""
    for day, hours in (((2026, 3, 29), 5), ((2026, 10, 25), 7)):
        five = micros(*day, 5, place="Europe/Vienna")
        ((start, end),) = covering(five, "Europe/Vienna", evict=sg.policies.time("6h"), aligned="clock")
        assert (start, end - start) == (micros(*day, place="Europe/Vienna"), hours * HOUR)


def test_what_the_clock_skips_begins_at_the_change() -> None:
    """Two o'clock does not come on the short day: the window from 2 to 4 has the hour from 3 to 4."""
    three = micros(2026, 3, 29, 3, 30, place="Europe/Vienna")
    ((start, end),) = covering(three, "Europe/Vienna", evict=sg.policies.time("2h"), aligned="clock")
    assert start == micros(2026, 3, 29, 1)
    assert end - start == HOUR


def test_a_midnight_that_is_skipped() -> None:
    """In Beirut the clock goes from 24:00 to 1:00: the day begins at the change."""
    noon = micros(2021, 3, 28, 12, place="Asia/Beirut")
    ((start, end),) = covering(noon, "Asia/Beirut", aligned="day")
    assert datetime.fromtimestamp(start / 1e6, ZoneInfo("Asia/Beirut")).hour == 1
    assert end - start == 23 * HOUR


def test_weeks_months_and_years() -> None:
    """A week begins on Monday."""
    time = micros(2024, 2, 15, 7, place="Europe/Vienna")
    for aligned, first, last in (
        ("week", (2024, 2, 12), (2024, 2, 19)),
        ("month", (2024, 2, 1), (2024, 3, 1)),
        ("year", (2024, 1, 1), (2025, 1, 1)),
    ):
        expected = tuple(micros(*each, place="Europe/Vienna") for each in (first, last))
        assert covering(time, "Europe/Vienna", aligned=aligned) == [expected]


def test_seven_days_each_day() -> None:
    """A hopping window by the calendar is so many days long, whatever their hours."""
    time = micros(2026, 3, 29, 12, place="Europe/Vienna")
    found = covering(time, "Europe/Vienna", kind="hopping", evict=sg.policies.time("7d", hop="1d"), aligned="day")
    assert len(found) == 7
    assert {end - start for start, end in found} == {(7 * 24 - 1) * HOUR}
    assert found[-1][0] == micros(2026, 3, 29, place="Europe/Vienna")


@given(
    seconds=st.integers(-(10**9), 3 * 10**9),
    place=st.sampled_from(["Europe/Vienna", "Australia/Lord_Howe", "America/St_Johns", "Asia/Beirut", "UTC"]),
    window=st.sampled_from(
        [
            {"aligned": "day"},
            {"aligned": "week"},
            {"aligned": "clock", "evict": sg.policies.time("45min")},
            {"aligned": "clock", "evict": sg.policies.time("6h")},
            {"kind": "hopping", "aligned": "clock", "evict": sg.policies.time("3h", hop="1h")},
        ]
    ),
)
@settings(max_examples=60)
def test_windows_cover_all_of_time(seconds: int, place: str, window: dict[str, Any]) -> None:
    """Each time is in as many windows as there are hops in one; neighbours touch."""
    time = seconds * 1_000_000
    found = covering(time, place, **window)
    assert len(found) == (3 if window.get("kind") else 1)
    assert all(start <= time < end for start, end in found)
    newest = found[-1]
    assert covering(newest[0], place, **window)[-1] == newest
    before = covering(newest[0] - 1, place, **window)[-1]
    hops = covering(before[0], place, **window)
    assert before[0] < newest[0]
    assert len(hops) == len(found)
    if not window.get("kind"):
        assert before[1] == newest[0]


def test_time_goes_on_before_1970_and_to_the_end_of_the_calendar() -> None:
    """Multiples of a length need no calendar; what the calendar has not is refused."""
    assert sg.WindowSpec(kind="tumbling", evict=sg.policies.time(10), lateness=0).covering()(-1) == [(-10, 0)]
    hop = sg.WindowSpec(kind="hopping", evict=sg.policies.time(10, hop=4))
    assert hop.covering()(8) == [(0, 10), (4, 14), (8, 18)]
    assert hop.covering()(11) == [(4, 14), (8, 18)]
    with pytest.raises(sg.errors.InputError, match="expected one that the calendar has"):
        covering(2**61, "UTC", aligned="day")


@pytest.mark.parametrize("place", some(("Europe/Vienna", "Asia/Beirut", "Australia/Lord_Howe", "America/Sao_Paulo"), 2))
def test_a_day_without_a_change_is_cut_as_any_day(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The short way for such days gives what asking the clock for each window does, in a year of half hours."""
    where = ZoneInfo(place)
    own = calendar.on_the_clock.__wrapped__
    quick = own(2 * HOUR, HOUR // 2, where)
    times = [micros(2018, 1, 1) + k * 23 * HOUR + k for k in range(380)]
    found = [quick(time) for time in times]
    monkeypatch.setattr(calendar, "_is_plain", lambda midnight, place: False)
    slow = own(2 * HOUR, HOUR // 2, where)
    assert found == [slow(time) for time in times]


@pytest.mark.parametrize("name", [3, ["UTC"], "Europe/Wien", ""])
def test_what_is_no_time_zone_is_refused(name: Any) -> None:
    """With the key's name, also where it is no text, as a TOML file may have it."""
    with pytest.raises(sg.errors.ConfigurationError, match=r"timezone: .* expected a name"):
        sg.WindowSpec.from_dict({"kind": "tumbling", "aligned": "day", "timezone": name})
