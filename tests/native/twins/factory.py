"""Makes the twins of all engines by name, over any operation on partials."""

from __future__ import annotations

from collections.abc import Callable

from sluicegate.catalogue import FORMER
from sluicegate.errors import ConfigurationError
from sluicegate.reference.engines.engine import Combine
from twins.amta import Amta
from twins.daba_lite import DabaLite
from twins.engine import Engine
from twins.fiba import Fiba
from twins.log_mta import LogMta
from twins.recalc import Recalc
from twins.two_stacks import TwoStacks
from twins.two_stacks_lite import TwoStacksLite

#: Soe is compiled alone, and tested against exact sums: how it rounds is its own.
TWINS: dict[str, Callable[..., Engine]] = {
    "recalc": Recalc, "soe": Recalc, "two_stacks": TwoStacks, "two_stacks_lite": TwoStacksLite, "daba": DabaLite,
    "daba_lite": DabaLite, "log_mta": LogMta, "amta": Amta, "fiba": Fiba,
}  # fmt: skip
LITE = ("two_stacks_lite", "daba_lite")


def make(name: str, combine: Combine, keep: int | None = None) -> Engine:
    """An engine over `combine`; `keep`: how many slots of a leaf a Lite engine will be asked for (None: all)."""
    name = FORMER.get(name, name)
    if name not in TWINS:
        raise ConfigurationError(f"engine {name!r}: a window in a store has no twin")
    return TWINS[name](combine, keep) if name in LITE else TWINS[name](combine)
