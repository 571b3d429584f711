"""What the cloud's commands are given: lengths of time, aggregates, windows. Imports only click at the top."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sluicegate_cloud.places.uris import is_elsewhere

if TYPE_CHECKING:
    from sluicegate.windowing.definition import WindowDefinition


def folder(context: click.Context, option: click.Parameter, value: Path | None) -> Path | None:
    """A folder of this machine; a URI would be taken for one of a strange name."""
    if value is not None and (is_elsewhere(str(value)) or str(value).startswith("file:/")):
        raise click.BadParameter(f"{value}: expected a path; a table (--table) may also lie at s3://BUCKET/PREFIX")
    return value


def length(context: click.Context, option: click.Parameter, value: str) -> int:
    """The µs of a length of time such as "24h"."""
    from sluicegate import policies

    try:
        return policies.time(value).span
    except ValueError as error:
        raise click.BadParameter(f"{value!r}: expected a positive length such as 24h, 90s, 15min or 7d") from error


def length_or_none(context: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """The same of an option that need not be given."""
    return None if value is None else length(context, option, value)


def names(context: click.Context, option: click.Parameter, value: str) -> tuple[str, ...]:
    """The aggregates of a list such as "mean,slope(1h)", or of "all"; each once, in the order of the tables."""
    from sluicegate.errors import ConfigurationError
    from sluicegate_cloud.extras.asked import sorted_out, split
    from sluicegate_cloud.names import AGGREGATES, ALL

    asked = split(value)
    if asked == ["all"]:
        return ALL
    try:
        plain, _ = sorted_out(asked)
    except ConfigurationError as error:
        raise click.BadParameter(f"{error}, or all") from error
    more = (name for name in dict.fromkeys(asked) if name not in ALL)
    return (*(name for name in ALL if name in {*plain, AGGREGATES[0]}), *more)


def of_options(window: int, slide: int, aggregates: tuple[str, ...]) -> list[WindowDefinition]:
    """The one window that --window, --slide and --aggregates say."""
    from sluicegate.spans import written
    from sluicegate.windowing.definition import WindowDefinition
    from sluicegate.windowing.spec import WindowSpec

    if window % slide:
        raise click.UsageError(f"--window {written(window)} is not a whole number of --slide {written(slide)}")
    tumbling: dict[str, Any] = {"kind": "tumbling", "evict": {"time": window}, "lateness": 0}
    hopping: dict[str, Any] = {"kind": "hopping", "evict": {"time": window, "hop": slide}}
    return [WindowDefinition("windows", WindowSpec.from_dict(tumbling if slide == window else hopping), aggregates)]
