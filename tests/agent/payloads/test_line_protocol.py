"""Line protocol: fields by measurement, tags as keys, a line known for itself, each bad one refused by its number."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
from hypothesis import given
from hypothesis import strategies as st

from sluicegate_agent.config.formats import payload_of
from sluicegate_agent.config.model import LimitsConfig
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.messages import Decoded, Message, Unreadable
from sluicegate_agent.payloads import decode, parts_of
from sluicegate_agent.payloads.line_protocol import point_of

LIMITS = LimitsConfig()


def source(**keys: Any) -> SourceConfig:
    """A source of this format as a configuration gives it."""
    plain = SourceConfig(**({"subscribed": "w", "streams": {"t": "weather.temp"}, "format": "line"} | keys))
    return payload_of("line").implied(plain)


def read(text: str, **keys: Any) -> list[Decoded]:
    """All parts of a payload."""
    asked = source(**keys)
    return [decode(asked, part, 77, LIMITS) for part in parts_of(asked, Message("w", text.encode(), 1, 1), LIMITS)]


def test_a_point_has_its_parts() -> None:
    """Escapes, kinds of values and a text with an end of a line in it, as the syntax has them."""
    text = r'my\ room\,1,place=a\ b,k\=1=v\,2 temp=1.5,n=3i,u=4u,ok=TRUE,s="a \"b\", c=d' + '\n2" -5'
    fields = {"temp": 1.5, "n": 3, "u": 4, "ok": True, "s": 'a "b", c=d\n2'}
    assert point_of(text) == ("my room,1", {"place": "a b", "k=1": "v,2"}, fields, -5)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("weather", "fields"),
        ("weather temp", "expected ="),
        ("weather temp=", "a field's value"),
        ("weather temp=warm", "texts are in quotes"),
        ("weather temp=nan", "texts are in quotes"),
        ("weather,a temp=1", "expected ="),
        (",a=b temp=1", "a measurement"),
        ('weather temp="open', "a text's end"),
        ("weather temp=1 soon", "a time"),
        ("weather temp=1 1 2", "the end of the line"),
        ("weather temp=1 99999999999999999999", "the end of the line"),
    ],
)
def test_what_is_no_line_says_where(text: str, part: str) -> None:
    """The refusal names what was expected, and the character."""
    with pytest.raises(Unreadable, match=part):
        point_of(text)


def test_each_line_is_a_message_with_a_time_of_its_own() -> None:
    """Nanoseconds become microseconds, other measurements and fields are no readings, and none is absent."""
    found = read("weather temp=1 1500\nother temp=9 1\nweather wind=2 1\n# no\n\nweather temp=2 2999\n")
    assert [each.readings for each in found] == [[("t", 1, 1.0)], [], [], [("t", 2, 2.0)]]
    assert {each.absent for each in found} == {0}


def test_a_line_without_a_time_is_refused_unless_none_has_one() -> None:
    """A line could not be known again; with time = "" the time of arrival counts, and the message is one."""
    with pytest.raises(Unreadable, match=r"timestamp .* is missing"):
        read("weather temp=1")
    (found,) = read("weather temp=1\nweather temp=x\nweather temp=3", time="")
    assert found.readings == [("t", 77, 1.0), ("t", 77, 3.0)]
    assert found.refused[0][1].startswith("line 2: ")


@pytest.mark.parametrize(("form", "text", "us"), [("s", "2", 2_000_000), ("ms", "2", 2_000), ("us", "2", 2)])
def test_the_precision_of_times_is_told(form: Any, text: str, us: int) -> None:
    """`time_format` says the unit; without it nanoseconds."""
    assert read(f"weather temp=1 {text}", time_format=form)[0].time_us == us


def test_texts_truths_and_what_is_not_finite_are_refused() -> None:
    """A field that is no number costs itself."""
    (found,) = read('weather temp=1,a="x",b=t,c=1e999 1', streams={x: f"weather.{x}" for x in ("temp", "a", "b", "c")})
    assert [stream for stream, *_ in found.readings] == ["temp"]
    assert [why for _, why in found.refused] == [
        "weather.a is a text, not a number",
        "weather.b is true or false, not a number",
        "weather.c is not finite",
    ]


def test_more_lines_than_a_message_may_have() -> None:
    """The bound is looked at before any line is."""
    with pytest.raises(Unreadable, match=r"limits\.readings"):
        read("weather temp=1 1\n" * 1025)


@given(st.text(max_size=60))
def test_a_quote_anywhere_loses_no_other_line(text: str) -> None:
    """Whatever one line says in quotes, what is put in order by the writer is read back."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    payload = f'weather s="{quoted}",temp=1 1\nweather temp=2 2'
    found = read(payload)
    assert [value for each in found for *_, value in each.readings] == [1.0, 2.0]
