"""A configuration is checked whole before anything starts, and every finding names key, value and remedy."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgspec", reason="the agent's tests need the extra `agent`")
import sluicegate as sg
from sluicegate_agent.commands.check import sample_text
from sluicegate_agent.config import AGGREGATES, Config, ConfigError, Duration, Size, build, load
from sluicegate_agent.config.aggregates import CARRIED, build_aggregate, kind_of
from sluicegate_agent.config.questions import build_arguments
from sluicegate_agent.config.units import show_duration, show_size, write_duration
from sluicegate_agent.messages import plain

FILE = Path("/etc/agent.toml")


def minimal(**tables: Any) -> dict[str, Any]:
    """The least configuration, with tables replaced or added."""
    base = {
        "device": {"id": "d"},
        "state": {"path": "state"},
        "source": [{"topic": "w", "streams": {"temp": "t"}}],
    }
    return base | tables


def findings(raw: dict[str, Any]) -> list[str]:
    """Every finding of a configuration that must be refused, as shown."""
    with pytest.raises(ConfigError) as caught:
        build(raw, FILE)
    return [str(problem) for problem in caught.value.problems]


def test_the_least_configuration_is_enough() -> None:
    """Three tables are all a newcomer has to write; paths are taken from the file's folder."""
    config = build(minimal(), FILE)
    assert config.state.path == Path("/etc/state")
    assert config.mqtt.actual_port == 1883
    assert not config.mqtt.uses_tls


def test_the_sample_is_the_defaults() -> None:
    """With every commented default uncommented, the sample means exactly what it means without them."""
    plain = tomllib.loads(sample_text())
    shown = []
    for line in sample_text().splitlines():
        key = line.removeprefix("# ").split(" = ")[0]
        is_default = line.startswith("# ") and " = " in line and key.isidentifier()
        unset = {
            "client_id",
            "username",
            "password_env",
            "path",
            "url",
            "resolution",
            "listen",
            "webhook",
            "aggregate",
            "per",
            "keys",
            "devices",
            "allow",
        }
        optional = key in unset or key.endswith("_file")
        paths = key in {"time", "sequence", "epoch", "key", "device"}
        shown.append(line.removeprefix("# ") if is_default and not optional and not paths else line)
    written = tomllib.loads("\n".join(shown))
    assert written != plain
    given, default = build(written, FILE), build(plain, FILE)
    assert given.mqtt.uses_tls == default.mqtt.uses_tls
    assert given.mqtt.actual_port == default.mqtt.actual_port
    assert _without_automatic(given) == _without_automatic(default)


def _without_automatic(config: Config) -> Config:
    from msgspec.structs import replace

    mqtt = replace(config.mqtt, port=None, tls=replace(config.mqtt.tls, enabled=None))
    return replace(config, mqtt=mqtt, sync=replace(config.sync, tls=replace(config.sync.tls, enabled=None)))


def test_the_sample_names_every_key() -> None:
    """No option exists that the sample does not show."""
    from msgspec.structs import fields

    text = sample_text()
    tables = [info.type for info in fields(Config)]
    keys = {info.encode_name for table in tables if hasattr(table, "__struct_fields__") for info in fields(table)}
    assert {key for key in keys if f"{key} = " not in text and f".{key}]" not in text} == set()


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (minimal(devise={"id": "x"}), "devise: there is no such table; did you mean `device`?"),
        (minimal(mqtt={"hots": "x"}), 'mqtt.hots = "x": there is no such key; did you mean `host`?'),
        (minimal(alert=[{"above": "30"}]), 'alert[1].above = "30": expected a number, got a text in quotes'),
        (minimal(mqtt={"port": "1883"}), 'mqtt.port = "1883": expected a whole number, got a text in quotes'),
        (minimal(mqtt={"version": 4}), 'mqtt.version = 4: expected 5 or "3.1.1"'),
        (minimal(mqtt={"receive_maximum": 65536}), "mqtt.receive_maximum = 65536: expected 1 to 65535"),
        (minimal(commit={"every": "1 fortnight"}), 'commit.every = "1 fortnight": expected a length of time'),
        (minimal(commit={"every": "3us"}), 'commit.every = "3us": expected 1ms to 10min'),
        (minimal(device={"id": "a/b"}), 'device.id = "a/b": expected 1 to 64 letters'),
        (minimal(outbox={"chunk_buckets": 256, "rows": 300}), "outbox.chunk_buckets = 256: expected at most half"),
        (minimal(sync={"target": "directory"}), 'sync.path: is required with target = "directory"'),
        (minimal(results={"topic": "w"}), 'results.topic = "w": is also a source\'s topic'),
        (minimal(mqtt={"password_env": "P"}), "mqtt.username: is required when a password is given"),
        (minimal(mqtt={"tls": {"enabled": True, "ca_file": "/none"}}), 'mqtt.tls.ca_file = "/none": cannot be read'),
        (minimal(source=[]), "source: is required"),
        (minimal(availability={"floor": "0%"}), 'availability.floor = "0%": expected more than 0 and at most 1'),
        (minimal(availability={"backlog": 1.5}), "availability.backlog = 1.5: expected more than 0 and at most 1"),
        (minimal(availability={"every": "0s"}), 'availability.every = "0s": expected 1ms to 36500d'),
    ],
)
def test_a_finding_names_key_value_and_remedy(raw: dict[str, Any], shown: str) -> None:
    """The message alone is enough to correct the file."""
    assert any(line.startswith(shown) for line in findings(raw)), findings(raw)


@pytest.mark.parametrize(
    ("window", "shown"),
    [
        ({"policy": {"time": "24 hrs"}}, 'window[2].policy.time = "24 hrs": expected a length of time'),
        ({"policy": {"time": "1h", "count": 3}}, "window[2].policy: expected exactly one"),
        ({"policy": {}}, "window[2].policy: expected exactly one"),
        ({"policy": {"time": "1h"}, "buckets": 0}, "window[2].buckets = 0: a time window without a bound"),
        ({"policy": {"count": 5}, "aggregate": ["mean", "median"]}, 'window[2].aggregate = "median": expected one or'),
        (
            {"policy": {"count": 5}, "streams": ["tmp"]},
            'window[2].streams = "tmp": no source feeds it; there are: temp',
        ),
        ({"policy": {"count": 5}, "name": "first"}, 'window[2].name = "first": another window has this name'),
        ({"policy": {"count": 5}, "buckets": 2}, "window[2].buckets = 2: expected 4 to"),
    ],
)
def test_a_finding_in_a_list_counts_from_one(window: dict[str, Any], shown: str) -> None:
    """`window[2]` is the second [[window]] of the file."""
    first = {"name": "first", "policy": {"count": 10}}
    lines = findings(minimal(window=[first, {"name": "second"} | window]))
    assert any(line.startswith(shown) for line in lines), lines


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ({"topic": "w/a+"}, 'source[1].topic = "w/a+": level "a+": a wildcard is a whole level'),
        ({"format": "number", "time": "t"}, 'source[1].time = "t": a message that is one number'),
        ({"sequence_in": "message"}, 'source[1].sequence_in = "message": says where the number of a list'),
        ({"epoch": "boot"}, 'source[1].epoch = "boot": tells when sequence numbers start anew'),
        ({"streams": {"t": "a..b"}}, 'source[1].streams.t = "a..b": expected a path'),
        ({"streams": {}}, "source[1].streams: is empty"),
        ({"format": "xml"}, 'source[1].format = "xml": expected "json", "array", "number"'),
    ],
)
def test_a_source_is_checked_for_what_it_can_mean(source: dict[str, Any], shown: str) -> None:
    """A source that would lose or mix readings is refused before it does."""
    lines = findings(minimal(source=[{"topic": "w", "streams": {"temp": "t"}} | source]))
    assert any(line.startswith(shown) for line in lines), lines


@pytest.mark.parametrize(
    ("window", "shown"),
    [
        ({"sum_like": {}}, "window[1].sum_like: expected a limit above 0"),
        ({"sum_like": {"error": "0%"}}, 'window[1].sum_like.error = "0%": expected more than nothing'),
        ({"sum_like": {"error": -0.1}}, "window[1].sum_like.error = -0.1: expected more than nothing"),
        ({"sum_like": {"error": "some"}}, 'window[1].sum_like.error = "some": expected a share such as "0.1%"'),
        ({"sum_like": {"floor": -1}}, "window[1].sum_like.floor = -1: expected 0 or more"),
        ({"sum_like": {"error": 0.1, "of": "max"}}, 'window[1].sum_like.of = "max": expected "count", or names'),
        ({"sum_like": {"error": 0.1, "confidence": 1}}, "window[1].sum_like.confidence = 1: expected a probability"),
        ({"sum_like": {"error": 0.1}, "aggregate": "max"}, "window[1].sum_like: no sum among max: use max_like"),
        ({"sum_like": {"eror": 0.1}}, "window[1].sum_like.eror = 0.1: there is no such key; did you mean `error`?"),
        ({"sum_like": 0.1}, "window[1].sum_like = 0.1: expected a table"),
        ({"max_like": {}}, "window[1].max_like: no maximum or minimum among mean: use sum_like"),
        ({"max_like": {"block": 1}, "aggregate": "max"}, "window[1].max_like.block = 1: expected 2 or more"),
        (
            {"max_like": {"block": "day"}, "aggregate": "max"},
            'window[1].max_like.block = "day": expected a whole number or "auto"',
        ),
        (
            {"max_like": {}, "sum_like": {"error": 0.1}, "aggregate": ["max", "mean"]},
            "window[1].max_like: sum_like is given too, and each decides alone",
        ),
        ({"hop": {}}, "window[1].hop: the policy evicts reading by reading: give it hop = "),
        ({"policy": {"count": 9, "hop": 3}, "hop": {"hint": 0}}, "window[1].hop.hint = 0: expected 1 or more"),
        ({"policy": {"count": 9, "hop": 3}, "hop": {"deviation": 3}}, "window[1].hop.deviation = 3: is how far"),
        ({"policy": {"count": 9, "hop": 0}}, "window[1].policy.hop = 0: expected more than nothing"),
        ({"policy": {"count": 9, "hop": "1h"}}, 'window[1].policy.hop = "1h": expected a whole number'),
        ({"policy": {"time": "1h", "hop": 5}}, "window[1].policy.hop = 5: expected a length of time"),
        ({"policy": {"time": "1h", "up_to": "mean"}}, 'window[1].policy.up_to = "mean": expected "max" or "min"'),
        (
            {"policy": {"time": "1h", "up_to": "max"}, "aggregate": ["max", "min"]},
            'window[1].policy.up_to = "max": evicts what cannot be the max any more: aggregate = "max" alone',
        ),
        ({"max_like": {}, "aggregate": "max", "buckets": 0}, "window[1].buckets = 0: a time window without a bound"),
        (
            {"max_like": {"staging": 1}, "aggregate": "max", "merge": "pairs"},
            "window[1].max_like.staging = 1: expected 2 to 1048576 buckets",
        ),
        (
            {"max_like": {"staging": 0, "staircase": True}, "aggregate": "max"},
            "window[1].max_like.staging = 0: a staircase is decided as it leaves the tail",
        ),
        (
            {"max_like": {"block": 9, "staircase": True}, "aggregate": "max", "merge": "pairs"},
            "window[1].max_like.block = 9: a staircase takes no estimate",
        ),
        (
            {"max_like": {"staircase": True}, "aggregate": "max"},
            'window[1].merge = "levels": what has left the staging tail is merged pair by pair',
        ),
        (
            {"policy": {"count": 9, "hop": 3}, "max_like": {"staging": 9}, "aggregate": "max", "buckets": 0, "hop": {}},
            "window[1].hop: a staging tail decides alone",
        ),
        ({"max_like": {"staircase": "yes"}, "aggregate": "max"}, 'window[1].max_like.staircase = "yes": expected true'),
        ({"sum_like": {"error": 0.1, "withhold": 1}}, "window[1].sum_like.withhold = 1: expected true or false"),
        ({"merge": "triples"}, 'window[1].merge = "triples": expected "levels" or "pairs"'),
        (
            {"policy": {"count": 9}, "merge": "pairs", "buckets": 0},
            'window[1].merge = "pairs": says how room is made, but there is no limit',
        ),
    ],
)
def test_histograms_that_cannot_work_are_refused_with_the_reason(window: dict[str, Any], shown: str) -> None:
    """What the papers' composition does not allow, and settings that mean nothing: key, value, remedy."""
    lines = findings(minimal(window=[{"name": "w", "policy": {"time": "1h"}} | window]))
    assert any(line.startswith(shown) for line in lines), lines


def test_what_a_window_says_of_histograms_is_what_it_gets() -> None:
    """Each key reaches the histogram that it names, and the policy."""
    asked = {
        "name": "w",
        "policy": {"time": "24h", "hop": "1h"},
        "aggregate": ["mean", "sum"],
        "buckets": 40,
        "sum_like": {"error": "0.1%", "floor": 0.05, "of": ["mean"], "confidence": 0.9},
        "hop": {"hint": 24, "deviation": 1.5, "confidence": 0.999},
    }
    arguments = build_arguments(build(minimal(window=[asked]), FILE).windows[0])
    by_pairs = build(minimal(window=[asked | {"merge": "pairs"}]), FILE).windows[0]
    assert build_arguments(by_pairs)["histograms"][-1] == sg.Constrained(40, merge="pairs")
    assert arguments["policy"] == sg.policies.time("24h", hop="1h")
    assert arguments["histograms"] == [
        sg.SumLike(0.001, 0.05, of=("mean",), confidence=0.9),
        sg.Hop(0.999, (24, 1.5)),
        sg.Constrained(40),
    ]
    extreme = {"name": "w", "policy": {"count": 99, "up_to": "min"}, "aggregate": "min", "buckets": 0, "max_like": {}}
    arguments = build_arguments(build(minimal(window=[extreme]), FILE).windows[0])
    assert arguments["policy"] == sg.policies.count(99, up_to="min")
    assert (list(arguments["aggregates"]), arguments["histograms"]) == (["min"], [sg.MaxLike(staircase=False)])


def test_every_aggregate_that_there_is_can_be_asked_for() -> None:
    """What the windows can answer, a configuration can name; the sample and the documents name them too."""
    for name in (each for each in AGGREGATES if kind_of(each) not in CARRIED):  # those the cloud alone answers
        sketch = name.startswith("quantiles")  # kept a bucket, never certain
        two = name in ("covariance", "correlation")
        asked = {"name": "w", "policy": {"count": 9}, "aggregate": name, "buckets": 9 if sketch else 0}
        raw = minimal(window=[asked])
        if two:
            raw["source"][0]["values"] = {stream: {"with": "second"} for stream in raw["source"][0]["streams"]}
        window = sg.Window(**build_arguments(build(raw, FILE).windows[0]))
        empty = plain(window.query()[name])
        assert not (any(empty.get("counts", [empty.get("n")])) if isinstance(empty, dict) else empty)
        window.insert((3.0, 4.0) if two else 3.0, time=7)
        assert window.query(bounds=True)[name].exact is not sketch
        assert name in sample_text()


def test_options_of_an_aggregate_reach_it() -> None:
    """What stands in parentheses is what its constructor is told."""
    expected = {
        "rate(1h)": sg.rate(per="1h"),
        "rate": sg.rate(),
        "frequency( 1min )": sg.frequency(per="1min"),
        "top_k(3)": sg.top_k(3),
        "distinct_count": sg.distinct_count(),
        "distinct_count(12)": sg.distinct_count(lg_k=12),
        "slope(1h)": sg.slope(per="1h"),
        "slope": sg.slope(),
        "intercept": sg.intercept(),
        "intercept(last)": sg.intercept(at="last"),
        "quantiles": sg.quantiles(k=64),
        "histogram(-1, 0.5, 1e3)": sg.histogram((-1.0, 0.5, 1000.0)),
    }
    assert {text: build_aggregate(text) for text in expected} == expected


@pytest.mark.parametrize(
    ("window", "shown"),
    [
        ({"aggregate": "median"}, 'window[1].aggregate = "median": expected one or several of count, sum, mean'),
        ({"aggregate": "mean(1)"}, 'window[1].aggregate = "mean(1)": mean takes no options'),
        (
            {"aggregate": "quantiles", "buckets": 0, "policy": {"count": 9}},
            'window[1].aggregate = "quantiles": it keeps a sketch a bucket',
        ),
        ({"aggregate": ["mean", "count_min"]}, 'window[1].aggregate = "count_min": its answer is something to put que'),
        ({"aggregate": "count_min", "cloud": True}, 'window[1].aggregate = "count_min": the cloud alone answers it'),
        (
            {"aggregate": ["mean", "count_min(3)"], "cloud": True},
            'window[1].aggregate = "count_min(3)": count_min(3): expected 2 whole',
        ),
        ({"aggregate": "correlation"}, 'window[1].aggregate = "correlation": readings of stream temp have one value'),
        (
            {"aggregate": "intercept(now)"},
            "window[1].aggregate = \"intercept(now)\": intercept(at='now'): expected 'first'",
        ),
        (
            {"aggregate": ["mean", "bloom_filter(63, 4)"], "cloud": True},
            'window[1].aggregate = "bloom_filter(63, 4)": bloom_filter(',
        ),
        ({"aggregate": "compiled"}, 'window[1].aggregate = "compiled": the agent runs no code of yours'),
        ({"aggregate": "rate(soon)"}, "window[1].aggregate = \"rate(soon)\": rate(per='soon'): expected a positive"),
        ({"aggregate": "rate(1s, 2s)"}, 'window[1].aggregate = "rate(1s, 2s)": rate: 2 options, expected a length'),
        ({"aggregate": "top_k"}, 'window[1].aggregate = "top_k": top_k(): expected a whole number'),
        (
            {"aggregate": "top_k(9999)"},
            'window[1].aggregate = "top_k(9999)": top_k(k=9999): expected a whole number from 1 to 256',
        ),
        ({"aggregate": "histogram"}, 'window[1].aggregate = "histogram": histogram: 0 edges'),
        ({"aggregate": "histogram(1, x)"}, "window[1].aggregate = \"histogram(1, x)\": histogram: the edge 'x' is no"),
        (
            {"aggregate": "rate"},
            'window[1].aggregate = "rate": buckets do not carry it, so it needs a window of single',
        ),
        (
            {"aggregate": ["mean", "longest_run"], "policy": {"count": 9}},
            'window[1].aggregate = "longest_run": buckets do not carry it',
        ),
        (
            {"aggregate": ["mean", "rate"], "policy": {"count": 9}, "buckets": 0, "sum_like": {"error": 0.1}},
            'window[1].aggregate = "rate": buckets do not carry it, so it needs',
        ),
    ],
)
def test_aggregates_that_cannot_be_asked_are_refused_with_the_reason(window: dict[str, Any], shown: str) -> None:
    """A name, an option or a window that does not go with it: key, value, remedy."""
    lines = findings(minimal(window=[{"name": "w", "policy": {"time": "1h"}} | window]))
    assert any(line.startswith(shown) for line in lines), lines


def test_all_findings_come_at_once() -> None:
    """Correcting a file takes one round, not one for each mistake."""
    lines = findings(minimal(device={"id": 3}, commit={"evry": "1s"}, window=[{"name": "w"}]))
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("mqtt", "tls", "port"),
    [
        ({"host": "localhost"}, False, 1883),
        ({"host": "127.0.0.1"}, False, 1883),
        ({"host": "broker.example"}, True, 8883),
        ({"host": "127.0.0.1.evil.example"}, True, 8883),
        ({"host": "localhost.evil.example"}, True, 8883),
        ({"host": "broker.example", "tls": {"enabled": False}}, False, 1883),
        ({"host": "localhost", "tls": {"enabled": True}}, True, 8883),
    ],
)
def test_tls_is_on_unless_the_broker_is_here(mqtt: dict[str, Any], tls: bool, port: int) -> None:
    """Turning encryption off for another machine has to be written down."""
    config = build(minimal(mqtt=mqtt), FILE)
    assert (config.mqtt.uses_tls, config.mqtt.actual_port) == (tls, port)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    """A missing, a binary, a broken and a huge file each say what they are."""
    cases = {"binary": b"\xff\x00", "broken": b"[device\n", "huge": b"#" * (1 << 20) + b"\n"}
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
    for name, part in {
        "none": "no such file",
        "binary": "UTF-8 at byte 0",
        "broken": "not TOML",
        "huge": "1 MiB",
    }.items():
        with pytest.raises(ConfigError, match=part):
            load(tmp_path / name)
    with pytest.raises(ConfigError, match="cannot be read: Is a directory; correct the path or its permissions"):
        load(tmp_path)


def test_units() -> None:
    """Lengths and sizes are read exactly and shown for people."""
    assert Duration.parse("1.5h") == 5_400_000_000
    assert Duration.parse(0) == Duration.parse("0") == 0
    assert Size.parse("64KiB") == Size.parse(65536) == 65536
    for wrong in ("", "5", "h", "-1s", "1e3s", True, 5, 1.5, "9" * 30 + "d", None):
        with pytest.raises(ValueError, match="expected"):
            Duration.parse(wrong)
    for wrong in (-1, 1.5, True, "5XB", 2**62):
        with pytest.raises(ValueError, match="expected"):
            Size.parse(wrong)
    assert (show_size(0), show_size(1536), show_size(5 << 40)) == ("0 B", "1.5 KiB", "5120.0 GiB")
    assert (show_duration(90_000_000), show_duration(7 * 86_400_000_000)) == ("90.0 s", "7.0 d")


def test_a_windows_definition_is_what_its_state_depends_on() -> None:
    """Renaming streams keeps a window's state; another policy, aggregate or bound starts it anew."""

    def definition(**keys: Any) -> str:
        window = {"name": "w", "policy": {"time": "1h"}} | keys
        return build(minimal(window=[window]), FILE).windows[0].definition

    assert definition() == definition(streams=["temp"]) == definition(aggregate=["mean"])
    others = [
        definition(buckets=8),
        definition(aggregate="max"),
        definition(policy={"count": 9}),
        definition(policy={"time": "1h", "hop": "5min"}),
        definition(sum_like={"error": 0.1}),
        definition(sum_like={"error": 0.1, "floor": 1.0}),
        definition(policy={"time": "1h", "hop": "5min"}, hop={}),
        definition(merge="pairs"),
    ]
    assert len({definition(), *others}) == 9
    assert definition(merge="levels") == definition()
    assert definition() == '{"aggregates":["mean"],"buckets":64,"policy":{"time":3600000000}}', "kept ones go on"
    assert definition(sum_like={"error": "10%"}) == definition(sum_like={"error": 0.1})


@pytest.mark.parametrize("text", ["24h", "7d", "90s", "1min", "1500ms", "1us", "36h", "61min"])
def test_a_written_length_is_read_back(text: str) -> None:
    """What `plan --advise` writes is the same length to the microsecond, in a unit that people use."""
    assert write_duration(Duration.parse(text)) == text
