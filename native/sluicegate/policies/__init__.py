"""Eviction policies: which of the oldest readings leave a window after each insertion.

Each states whether it is *monotone* (where a prefix leaves, every shorter prefix leaves too: bulk eviction needs it)
and whether it depends only on what *remains* (a certain interval over buckets needs both; error-algebra: a local
window). docs/reference/policies.md has them side by side. One that is not monotone is enforced one by one.
"""

from __future__ import annotations

from typing import Any

from sluicegate.checks import MAX_COUNT, MAX_SPAN
from sluicegate.errors import ConfigurationError
from sluicegate.policies.custom import Compiled, Custom, compiled, custom
from sluicegate.policies.lengths import Count, Time, count, time
from sluicegate.policies.punctuation import Punctuation, punctuation
from sluicegate.policies.rules import (
    Delta,
    NewerThanLongestRun,
    NewerThanMaximum,
    Total,
    delta,
    newer_than_longest_run,
    newer_than_maximum,
    total,
)

Ruled = Delta | Total | NewerThanMaximum | NewerThanLongestRun | Compiled
"""What a window's core enforces by a rule of its own."""
Policy = Count | Time | Custom | Ruled

__all__ = [
    "MAX_COUNT",
    "MAX_SPAN",
    "Compiled",
    "Count",
    "Custom",
    "Delta",
    "NewerThanLongestRun",
    "NewerThanMaximum",
    "Policy",
    "Punctuation",
    "Ruled",
    "Time",
    "Total",
    "as_policy",
    "compiled",
    "count",
    "custom",
    "delta",
    "newer_than_longest_run",
    "newer_than_maximum",
    "punctuation",
    "time",
    "total",
]


def as_policy(policy: Any) -> Policy:
    """Accept a policy or a bare callable, whose attributes `monotone` and `remaining` (default False) declare it."""
    if isinstance(policy, Time):
        return time(policy.span, hop=policy.hop, up_to=policy.up_to)
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, Punctuation):
        raise ConfigurationError("policy: punctuation ends a tumbling window of sg.WindowSpec; sg.Window only slides")
    if callable(policy):
        return custom(
            policy,
            monotone=bool(getattr(policy, "monotone", False)),
            remaining=bool(getattr(policy, "remaining", False)),
        )
    raise ConfigurationError(
        f"policy: {policy!r}, expected one of sg.policies, such as count(n) or time('24h'), or a callable(total, old)"
    )
