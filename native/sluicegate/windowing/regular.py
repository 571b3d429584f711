"""Windows of one length that begin every hop since 1970: which hold a time, without a step for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluicegate.policies import Time

if TYPE_CHECKING:
    from sluicegate.windowing.spec import WindowSpec


class Regular(NamedTuple):
    """`span` long, one every `hop`; both in µs."""

    span: int
    hop: int

    @classmethod
    def of(cls, spec: WindowSpec) -> Regular | None:
        """Those of a definition; None where a clock, a calendar or the readings say when windows begin."""
        evict = spec.evict
        if spec.kind not in ("tumbling", "hopping") or spec.aligned or not isinstance(evict, Time):
            return None
        return cls(evict.span, evict.hop if spec.kind == "hopping" else evict.span)

    def newest(self, time: int) -> int:
        """Where the last window begins that holds a time."""
        return time // self.hop * self.hop

    def oldest(self, time: int) -> int:
        """Where the first window begins that holds a time, or that ends after it."""
        return self.newest(time - self.span) + self.hop

    def covering(self, time: int) -> list[tuple[int, int]]:
        """The windows that hold a time."""
        return [(start, start + self.span) for start in self.starts(self.oldest(time), self.newest(time))]

    def slice_of(self, time: int) -> tuple[int, int]:
        """The edges of windows before and after a time."""
        begun, ended = self.newest(time), self.oldest(time) + self.span
        return max(begun, ended - self.hop), min(begun + self.hop, ended)

    def starts(self, first: int, last: int) -> range:
        """Those from one start to another."""
        return range(first, last + 1, self.hop)
