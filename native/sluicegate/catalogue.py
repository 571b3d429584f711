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

    class_name: str
    keeps_leaves: bool = True
    buckets: bool = False
    deducts: bool = False
    exact: bool = False
    any_order: bool = False  # takes late readings as it is; others give their leaves to one that does
    internal: bool = False  # made by Sluicegate itself, no name for users
    folder: str = "engines"


QUEUES = "engines.queues"
FACTS: dict[str, Facts] = {
    "recalc": Facts("Recalc", buckets=True, exact=True),
    "soe": Facts("Soe", deducts=True),
    "two_stacks": Facts("TwoStacks", folder=QUEUES),
    "two_stacks_lite": Facts("TwoStacksLite", keeps_leaves=False, folder=QUEUES),
    "reactive": Facts("Reactive", buckets=True),
    "foa": Facts("Foa", folder=QUEUES),
    "ioa": Facts("Ioa", folder=QUEUES),
    "daba": Facts("Daba", folder=QUEUES),
    "daba_lite": Facts("DabaLite", keeps_leaves=False, folder=QUEUES),
    "log_mta": Facts("LogMta", buckets=True, exact=True),
    "amta": Facts("Amta", buckets=True, exact=True),
    "fiba": Facts("Fiba", any_order=True),
    "amta_buckets": Facts("AmtaBuckets", buckets=True, exact=True, internal=True),
    "kvs_amta": Facts("KvsAmta", buckets=True, exact=True, internal=True, folder="engines.paged"),
    "kvs_log_mta": Facts("KvsLogMta", buckets=True, exact=True, internal=True, folder="engines.paged"),
}


def names() -> tuple[str, ...]:
    """The engines a window may name."""
    return tuple(name for name, facts in FACTS.items() if not facts.internal)


def make(name: str, bucketed: bool) -> Any:
    """A compiled engine, not yet set up."""
    name = "amta_buckets" if name == "amta" and bucketed else name
    facts = FACTS[name]
    return getattr(import_module(f"sluicegate.{facts.folder}.{name}"), facts.class_name)()


def check(name: str, layout: Layout) -> Facts:
    """The facts of an engine that can keep windows of this layout. Raises ConfigurationError with the reason."""
    if name not in FACTS:
        raise ConfigurationError(f"engine: {name!r}, expected one of {', '.join(names())}")
    facts = FACTS[name]
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
