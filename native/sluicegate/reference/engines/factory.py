"""Makes the readable engines by name, over any operation on partials."""

from __future__ import annotations

from typing import Any

from sluicegate.monoids.layout import Layout, Op
from sluicegate.reference.engines.amta import Amta
from sluicegate.reference.engines.engine import Combine, Engine
from sluicegate.reference.engines.fiba import Fiba
from sluicegate.reference.engines.soe import Soe


def make_for(name: str, layout: Layout, combine: Combine, deduct: Combine) -> Engine:
    """`soe` or `fiba` for the partials of a layout, `amta` for any other name."""
    if name == "soe":
        return Soe(combine, deduct=deduct, **sums_of(layout))
    return Fiba(combine) if name == "fiba" else Amta(combine)


def sums_of(layout: Layout) -> dict[str, Any]:
    """The slots whose digits `Soe` watches: plain sums, sums with their errors, squared deviations."""
    components = layout.components
    return {
        "sums": [component.slot for component in components if component.op in (Op.SUM, Op.LOG_SUM)],
        "totals": [component.slot for component in components if component.op == Op.TOTAL],
        "deviations": [component.slot + 2 for component in components if component.op == Op.MOMENTS],
    }
