"""Makes the twins of all engines by name, over any operation on partials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sluicegate.errors import ConfigurationError
from sluicegate.monoids.layout import Layout
from sluicegate.reference.engines.engine import Combine, Engine
from sluicegate.reference.engines.factory import sums_of
from sluicegate.reference.engines.fiba import Fiba
from sluicegate.reference.engines.soe import Soe
from twins.amta import Amta
from twins.daba import Daba
from twins.daba_lite import DabaLite
from twins.log_mta import LogMta
from twins.recalc import Recalc
from twins.two_stacks import TwoStacks
from twins.two_stacks_lite import TwoStacksLite

#: FOA and IOA are compiled alone: DABA keeps their bounds. So is the Reactive tree, for which Log MTA stands here.
TWINS: dict[str, Callable[..., Engine]] = {
    "recalc": Recalc, "soe": Soe, "two_stacks": TwoStacks, "two_stacks_lite": TwoStacksLite, "reactive": LogMta,
    "foa": Daba, "ioa": Daba, "daba": Daba, "daba_lite": DabaLite, "log_mta": LogMta, "amta": Amta, "fiba": Fiba,
}  # fmt: skip
LITE = ("two_stacks_lite", "daba_lite")


def make(name: str, combine: Combine, *, deduct: Combine | None = None, keep: int | None = None, **sums: Any) -> Engine:
    """An engine over `combine`; `soe` needs `deduct`, and watches the slots it is told of in `sums`.

    `keep`: how many slots of a leaf a Lite engine will be asked for (None: all). Raises ValueError where the inverse
    that `soe` needs is missing.
    """
    if name not in TWINS:
        raise ConfigurationError(f"engine {name!r}: a window in a store has no twin")
    if name in LITE:
        return TWINS[name](combine, keep)
    if name != "soe":
        return TWINS[name](combine, **sums)
    if deduct is None:
        raise ValueError("soe: needs the inverse of combine, deduct(total, oldest)")
    return TWINS[name](combine, deduct=deduct, **sums)


def make_for(name: str, layout: Layout, combine: Combine, deduct: Combine, keep: int | None) -> Engine:
    """An engine for the partials of a layout; `deduct` and `keep` as in `make`."""
    sums = sums_of(layout) if name == "soe" else {}
    return make(name, combine, deduct=deduct, keep=keep, **sums)
