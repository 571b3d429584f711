"""Checks windows that are answered from another window's buckets (`shares`), and finds windows that might be."""

from __future__ import annotations

from collections.abc import Iterator

import sluicegate as sg
from sluicegate.errors import ConfigurationError
from sluicegate_agent.config.errors import Problem
from sluicegate_agent.config.model import Config, PolicyConfig, WindowConfig
from sluicegate_agent.config.questions import build_arguments, build_policy

_OWN = ("merge", "sum_like", "max_like", "hop", "buckets")
_DEFAULTS = WindowConfig(name="", policy=PolicyConfig(count=1))


def shared_problems(config: Config, window: WindowConfig, at: str) -> Iterator[Problem]:
    """What is wrong with `shares` of a window whose other keys are right."""
    longest = next((each for each in config.windows if each.name == window.shares), None)
    found = [*_named(config, window, longest, at)]
    if longest is not None and not found:
        found = [*_own(window, at), *_asked(config, window, longest, at)]
    yield from found
    if longest is not None and not found:
        yield from _refused(window, longest, at)


def _named(config: Config, window: WindowConfig, longest: WindowConfig | None, at: str) -> Iterator[Problem]:
    names = [each.name for each in config.windows if each.shares is None]
    if longest is None or longest is window or longest.shares is not None:
        known = f"there are: {', '.join(names)}" if names else "there is none"
        remedy = f"expected the name of a window that keeps buckets of its own; {known}"
        yield Problem(f"{at}.shares", window.shares, remedy)


def _own(window: WindowConfig, at: str) -> Iterator[Problem]:
    """Keys that say how a window keeps buckets, in a window that keeps none of its own."""
    for key in _OWN:
        if getattr(window, key) != getattr(_DEFAULTS, key):
            value = getattr(window, key)
            shown = value if isinstance(value, str | int) else None
            remedy = (
                f"says how buckets are kept, but this window is answered from those of {window.shares}: leave it out"
            )
            yield Problem(f"{at}.{key}", shown, remedy)


def _asked(config: Config, window: WindowConfig, longest: WindowConfig, at: str) -> Iterator[Problem]:
    """Streams and aggregates of which the other window keeps no buckets."""
    for stream in config.names:
        if window.covers(stream) and not longest.covers(stream):
            remedy = f"{longest.name} keeps no buckets of it: name the streams that both are asked of"
            yield Problem(f"{at}.streams", stream, remedy)
    for name in window.aggregates:
        if name not in longest.aggregates:
            remedy = f"the buckets of {longest.name} carry {', '.join(longest.aggregates)}: ask it there too"
            yield Problem(f"{at}.aggregate", name, remedy)


def _refused(window: WindowConfig, longest: WindowConfig, at: str) -> Iterator[Problem]:
    """What `sg.Windows` itself refuses: count beside time, a longer window over a shorter one, no buckets to share."""
    try:
        sg.Windows.over(sg.Window(**build_arguments(longest)), longest.name, {window.name: build_policy(window)})
    except ConfigurationError as error:
        yield Problem(f"{at}.shares", window.shares, str(error).removeprefix("windows: "))


def might_share(config: Config) -> Iterator[tuple[str, str]]:
    """Pairs (shorter, longer) of windows that keep buckets by the same method, each its own."""
    kept = [each for each in config.windows if each.shares is None and each.policy.up_to is None and not each.sliced]
    for window in kept:
        longer = [each for each in kept if _alike(window, each) and _length(each) > _length(window)]
        if longer:
            yield window.name, max(longer, key=_length).name


def _alike(one: WindowConfig, other: WindowConfig) -> bool:
    own = all(getattr(one, key) == getattr(other, key) for key in _OWN)
    kind = (one.policy.time is None) == (other.policy.time is None)
    bucketed = bool(one.buckets or one.sum_like or one.max_like or one.hop)
    return own and kind and bucketed and one.streams == other.streams and set(one.aggregates) <= set(other.aggregates)


def _length(window: WindowConfig) -> int:
    return int(window.policy.time or window.policy.count or 0) + window.policy.step - 1
