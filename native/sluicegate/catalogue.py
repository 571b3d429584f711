"""What each engine can do, and why a window that asks for more is refused; makes the compiled engines by name.

`docs/reference/engines.md` has the whole of every engine: order, laws, time, space, source.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from sluicegate.monoids.layout import Layout


@dataclass(frozen=True, slots=True)
class Facts:
    """What an engine can do.

    `keeps_leaves`: all of them, whatever the policy reads. `buckets`: readings may join its newest leaf, levels can be
    evicted. `deducts`: the operation needs an inverse. `exact`: a restored window continues bit for bit; else sums and
    what follows from them may differ by their rounding, since the order of additions is not stored.
    """

    made_by: str  # its class, below `sluicegate.engines`
    keeps_leaves: bool = True
    buckets: bool = False
    deducts: bool = False
    exact: bool = False
    any_order: bool = False  # takes late readings as it is; others give their leaves to one that does
    internal: bool = False  # made by Sluicegate itself, no name for users


FACTS: dict[str, Facts] = {
    "recalc": Facts("recalc.Recalc", buckets=True, exact=True),
    "soe": Facts("soe.Soe", deducts=True),
    "two_stacks": Facts("queues.two_stacks.TwoStacks"),
    "two_stacks_lite": Facts("queues.two_stacks.TwoStacks", keeps_leaves=False),
    "daba": Facts("queues.daba.Daba"),
    "daba_lite": Facts("queues.daba.Daba", keeps_leaves=False),
    "log_mta": Facts("log_mta.LogMta", buckets=True, exact=True),
    "amta": Facts("amta.Amta", buckets=True, exact=True),
    "fiba": Facts("fiba.Fiba", any_order=True),
    "amta_buckets": Facts("amta_buckets.AmtaBuckets", buckets=True, exact=True, internal=True),
    "kvs_amta": Facts("paged.kvs_amta.KvsAmta", buckets=True, exact=True, internal=True),
    "kvs_log_mta": Facts("paged.kvs_log_mta.KvsLogMta", buckets=True, exact=True, internal=True),
}
FORMER = {"foa": "daba", "ioa": "daba", "reactive": "log_mta"}
"""Engines that there were, and which is in their place: snapshots name them."""


def names() -> tuple[str, ...]:
    """The engines a window may name."""
    return tuple(name for name, facts in FACTS.items() if not facts.internal)


def make(name: str, bucketed: bool) -> Any:
    """A compiled engine, not yet set up."""
    name = "amta_buckets" if name == "amta" and bucketed else name
    module, _, kind = FACTS[FORMER.get(name, name)].made_by.rpartition(".")
    return getattr(import_module(f"sluicegate.engines.{module}"), kind)()


def check(name: str, layout: Layout) -> Facts:
    """The facts of an engine that can keep windows of this layout. Raises ConfigurationError with the reason."""
    if name not in FACTS and name not in FORMER:
        raise ConfigurationError(f"engine: {name!r}, expected one of {', '.join(names())}")
    facts = FACTS[FORMER.get(name, name)]
    if layout.bucketed and not facts.buckets:
        raise ConfigurationError(
            f"engine {name!r}: histograms let readings join the newest bucket, which it has aggregated already; "
            f"use {_those(lambda other: other.buckets)}"
        )
    if facts.deducts:
        _check_inverse(name, layout)
    return facts


def _check_inverse(name: str, layout: Layout) -> None:
    from sluicegate.monoids.layout import invertible

    strange = {
        component.slot: component.op.name.lower() for component in layout.components if not invertible(component)
    }
    reason = "the oldest readings cannot be deducted again"
    others = _those(lambda other: not other.deducts)
    for label, monoid in zip(layout.names, layout.monoids, strict=True):
        if any(slot in strange for slot in layout.exact_slots(monoid)):
            raise ConfigurationError(
                f"engine {name!r}: aggregates[{label!r}] is a {monoid.kind}, of which {reason}; use {others}"
            )
    if strange:
        raise ConfigurationError(
            f"engine {name!r}: the policy reads {', '.join(strange.values())}, of which {reason}; "
            f"take a count or time policy, or use {others}"
        )


def refuse_leaves(name: str) -> ConfigurationError:
    """The error for a call that needs the leaves of an engine that does not keep them."""
    return ConfigurationError(
        f"engine {name!r}: keeps no leaves under this policy, so it has no buckets(), changes(), leaf(), snapshot() or "
        f"bounds of sums; use {_those(lambda other: other.keeps_leaves)}"
    )


def needs_order_by(name: str) -> str:
    """Why a reading that comes late into a window of single readings by time is refused."""
    if name.startswith("kvs_"):
        return (
            "store: a window of single readings by time needs them in order of time, and this one comes late; keep the "
            "window in memory, or give it histograms: a stored window of buckets takes late readings"
        )
    return f"engine {name!r}: keeps no leaves, and needs readings in order of time; use fiba or amta"


def _those(can: Any) -> str:
    return ", ".join(name for name in names() if can(FACTS[name]))
