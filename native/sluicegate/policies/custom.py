"""A user's own rule: a Python callable, or compiled code given by its address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

from sluicegate.checks import is_whole
from sluicegate.errors import ConfigurationError
from sluicegate.monoids.layout import HEADER, Layout
from sluicegate.policies.eviction import COMPILED, EvictionRule
from sluicegate.policies.rules import Read


class Field(NamedTuple):
    """Where a partial keeps something: the first slot, and a letter for each of its slots: "d" double, "q" int64."""

    slot: int
    types: str


@dataclass(frozen=True, slots=True)
class Custom:
    """Evict the oldest subsequence `old` while `rule(total, old)` holds; both are of class `Subsequence`.

    What the callable promises is declared. `monotone`: where it is true of a prefix it is true of every shorter one,
    and evicting changes no later answer; then many readings leave in O(log n). Without it they are tested one by one.
    `remaining`: it depends only on what is left after `old` leaves. `label`: the name a stored window is checked
    against, where the callable's own is not telling. Raises ConfigurationError.
    """

    rule: Callable[[Any, Any], Any]
    _: KW_ONLY
    monotone: bool = False
    remaining: bool = False
    label: str = ""
    hops: ClassVar[bool] = True
    exact_only: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Raise ConfigurationError for what cannot be called."""
        if not callable(self.rule):
            raise ConfigurationError(
                f"policies.custom: {self.rule!r} is not callable; expected rule(total, old) -> bool"
            )

    @property
    def name(self) -> str:
        """What a stored window is checked against."""
        return "custom:" + (self.label or getattr(self.rule, "__qualname__", type(self.rule).__qualname__))


@dataclass(frozen=True, slots=True)
class Compiled:
    """A rule in compiled code: `int rule(const slot *total, const slot *old, void *context)`, called without the GIL.

    It returns 1 (the oldest subsequence leaves), 0 (it stays) or a negative number, which the caller gets as
    PolicyError. A slot is a union of double and int64_t; `Window.fields` says what is where (policies.md). It must
    not keep the pointers, throw, or call the window. `context`: an address that it is given; `keep`: what must live as
    long as the policy (a cffi or ctypes callback, the context). `until`: the address of `int64_t until(const slot
    *total, void *context)`, asked after the rule; it returns the ordinal of the first reading after which anything may
    leave again. Until that is in the rule is not asked, which lets a batch run on. `label`, `monotone` and `remaining`
    as for `custom`. Raises ConfigurationError. An address that is no such function is undefined behaviour.
    """

    address: int
    _: KW_ONLY
    label: str
    context: int = 0
    monotone: bool = False
    remaining: bool = False
    keep: Any = None
    until: int = 0
    hops: ClassVar[bool] = True
    exact_only: ClassVar[str] = ""
    reads: ClassVar[Sequence[Read]] = ()

    def __post_init__(self) -> None:
        """Raise ConfigurationError for what is no address, or a missing label."""
        given = ("compiled", self.address, 1), ("compiled.context", self.context, 0), ("compiled.until", self.until, 0)
        for place, address, least in given:
            if not is_whole(address, least, 2**63 - 1):
                raise ConfigurationError(f"policies.{place}: {address!r}, expected an address as an int")
        if not isinstance(self.label, str) or not self.label:
            raise ConfigurationError("policies.compiled(label=…): expected a name, which a stored window is checked by")

    @property
    def name(self) -> str:
        """What a stored window is checked against: an address does not outlive its process."""
        return f"compiled:{self.label}"

    def eviction(self, layout: Layout) -> EvictionRule:
        """The rule for partials of this layout."""
        eviction = EvictionRule(COMPILED, self.name, self.monotone)
        return eviction._replace(address=self.address, context=self.context, until=self.until)


custom, compiled = Custom, Compiled


def fields(layout: Layout) -> dict[str, Field]:
    """What each slot of a partial holds, by component: "count", "sum", or "sum[load]" of the dimension load.

    Count, t_first, t_last, o_first and ordered stand in slots 0 to 4 of every partial that a compiled rule sees.
    """
    found: dict[str, Field] = {}
    for component in sorted(layout.components, key=lambda each: each.slot):
        dimension = None if component.op in HEADER else layout.dimensions[component.dimension]
        name = component.op.name.lower() + (f"[{dimension}]" if dimension is not None else "")
        name += f" {component.options}" if name in found else ""
        found[name] = Field(component.slot, component.format)
    return found
