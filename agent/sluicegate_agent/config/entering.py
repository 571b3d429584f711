"""Checks the inputs beside MQTT: what each of them finds, and what takes more than one source or table."""

from __future__ import annotations

from collections.abc import Iterator

from sluicegate_agent.config.errors import Problem
from sluicegate_agent.config.inputs import MQTT, input_of
from sluicegate_agent.config.model import Config
from sluicegate_agent.config.sources import SourceConfig
from sluicegate_agent.naming.plugins import UnknownName


def input_problems(config: Config) -> Iterator[Problem]:
    """Every finding in where the messages of sources come from."""
    files: dict[str, int] = {}
    for i, source in enumerate(config.sources, 1):
        at = f"source[{i}]"
        yield from _input(config, source, at)
        if source.file is not None and files.setdefault(str(source.file), i) != i:
            yield Problem(f"{at}.file", str(source.file), f"source[{files[str(source.file)]}] reads it already")
    standing = [i for i, source in enumerate(config.sources, 1) if source.input == "stdin"]
    if len(standing) > 1:
        yield Problem(f"source[{standing[1]}].input", "stdin", f"source[{standing[0]}] reads it already")
    if config.subscribed and config.mqtt.enabled is False:
        yield Problem("mqtt.enabled", False, f"{len(config.subscribed)} sources are subscribed to: leave it out")
    if config.http.listen is not None and not any(source.input == "http" for source in config.sources):
        yield Problem("http.listen", config.http.listen, 'no source has input = "http": there is nothing to take')


def _input(config: Config, source: SourceConfig, at: str) -> Iterator[Problem]:
    if source.input == "http" and config.http.listen is None:
        yield Problem(f"{at}.input", "http", 'needs a listener: [http] with listen = "127.0.0.1:9465"')
    if (source.file is not None) != (source.input == "tail"):
        remedy = (
            'say which file, such as file = "/var/log/meter.jsonl"' if source.file is None else 'needs input = "tail"'
        )
        yield Problem(f"{at}.file", None if source.file is None else str(source.file), remedy)
    if source.input != MQTT:
        yield from _found(source, at)
    if source.file is not None and source.file.suffix == ".csv" and source.format != "json":
        yield Problem(f"{at}.format", source.format, 'a CSV file stands for format = "json"')


def _found(source: SourceConfig, at: str) -> Iterator[Problem]:
    """What the input itself has to say."""
    try:
        asked = input_of(source.input)
    except UnknownName as why:
        yield Problem(f"{at}.input", source.input, str(why))
        return
    try:
        for key, value, remedy in asked.findings(source):
            yield Problem(f"{at}.{key}", value, remedy)
    except Exception as error:  # whatever the code of others does
        yield Problem(f"{at}.input", source.input, f"its check failed: {type(error).__name__}: {error}")
    if asked.repeats and source.sequence is None and source.time is None:
        yield Problem(f"{at}.sequence", None, "what this input gives may come again: say `sequence` or `time`")
