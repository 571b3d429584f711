"""What each [[window]] of a configuration asks, in plain words: the lines of `sluicegate check --explain`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sluicegate.monoids.monoid import PAIRED
from sluicegate.windowing.explain import length

if TYPE_CHECKING:
    from sluicegate_agent.config.model import Config, WindowConfig

SHOWN = 8
"""Streams named in one sentence."""

_INTERVAL = "each answer has an interval that holds the truth, and says whether it is exact"


def explain(config: Config) -> Iterator[str]:
    """A sentence for each window, and what its answers rest on."""
    for window in config.windows:
        streams = [stream for stream in config.names if window.covers(stream)]
        yield f"{window.name}: {_asked(config, window, streams)}; {_kept(window)}"


def _asked(config: Config, window: WindowConfig, streams: Sequence[str]) -> str:
    """The words of `WindowSpec.explain`."""
    of = _join([_named(each) + _with(config, each, streams) for each in window.aggregates])
    if window.sliced:
        return window.spec.explain(of + _of(streams).removeprefix(","))
    return window.spec.explain(of, _when(config)) + _of(streams)


def _when(config: Config) -> str:
    if not config.results.topic:
        return "for `sluicegate status` only, as results.topic is empty"
    if config.results.every.is_each:
        return "after each reading, as soon as it is committed"
    every = int(config.results.every)
    pace = f"at most every {_bare(every)}" if every else "as soon as it is committed"
    return f"when readings have come, {pace}"


def _bare(span: int) -> str:
    """A length after "every" or "the last"."""
    said = length(span)
    return said.split(" ", 1)[1] if said.startswith(("a ", "an ")) else said


def _named(aggregate: str) -> str:
    return f"the {aggregate.replace('_', ' ')}"


def _with(config: Config, aggregate: str, streams: Sequence[str]) -> str:
    """What an aggregate of two values is taken with."""
    if aggregate not in PAIRED:
        return ""
    values = {name: asked for source in config.sources for name, asked in source.values.items()}
    seconds = {values[name].second or "" for name in streams if name in values}
    return f" with {seconds.pop()}" if len(seconds) == 1 else " with the second value of each"


def _of(streams: Sequence[str]) -> str:
    if not streams:
        return ", of no stream"
    names = list(streams[:SHOWN]) + ([f"{len(streams) - SHOWN} more"] if len(streams) > SHOWN else [])
    return f", {'of' if len(streams) == 1 else 'for each of'} {_join(names)}"


def _join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _kept(window: WindowConfig) -> str:
    if window.sliced:
        return "one record is kept for each hop, and each answer is exact"
    if window.shares is not None:
        return f"it is answered from the buckets of {window.shares}; {_INTERVAL}"
    if window.sum_like or window.max_like or window.hop:
        most = f", at most {window.buckets:,}" if window.buckets else ""
        return f"readings are kept in buckets that end where the error allows{most}; {_INTERVAL}"
    if not window.buckets:
        return "every reading is kept, so each answer is exact"
    return f"readings are kept in at most {window.buckets:,} buckets; {_INTERVAL}"
