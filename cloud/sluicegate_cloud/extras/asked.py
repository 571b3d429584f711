"""What may be asked of the extras of buckets, as "slope(1h)" or "quantiles(64)", and the columns of each. No Spark."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

import sluicegate as sg
from sluicegate.errors import ConfigurationError
from sluicegate.format.extras import Extra, extra, name_for
from sluicegate.monoids.monoid import PAIRED
from sluicegate_cloud.extras.placed import PLACED
from sluicegate_cloud.names import ALL, ENDS

#: The quantiles that are columns, by name.
RANKS = {"p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}
_FORM = re.compile(r"(\w+)\s*(?:\(([^()]*)\))?")
_PARTED = re.compile(r",(?![^(]*\))")
_WHOLE: dict[str, Callable[..., sg.Monoid]] = {
    "quantiles": lambda k=64: sg.quantiles(k=k),
    "distinct_count": lambda lg_k=10: sg.distinct_count(lg_k=lg_k),
    "top_k": lambda k: sg.top_k(k),
    "count_min": lambda width=256, depth=4: sg.count_min(width, depth),
    "bloom_filter": lambda bits, hashes=4: sg.bloom_filter(bits, hashes),
}
_SKETCHES = ("count_min", "bloom_filter")
#: How each may be written; the options are examples.
FORMS = (*PLACED, "slope(1h)", "intercept(first)", "time_weighted_mean", *PAIRED, "quantiles(64)",
         "distinct_count(10)", "top_k(5)", "count_min(256,4)", "bloom_filter(1024,4)")  # fmt: skip


class Asked(NamedTuple):
    """An aggregate, and the name of the extra that it is answered from; "": of the bucket's record (`placed`)."""

    monoid: sg.Monoid
    carried: str

    @property
    def extra(self) -> Extra:
        """What merges and reads it; looked up in each process, for compiled code does not travel."""
        found = extra(self.carried)
        if found is None:
            raise KeyError(self.carried)
        return found

    def fold(self, values: array[float], times: array[int]) -> bytes:
        """What a bucket of these readings would carry, where they say it."""
        return self.extra.fold(values, times) if self.carried else b""

    @property
    def is_folded(self) -> bool:
        """Whether single readings say what a bucket would carry."""
        return not self.carried or self.extra.of_readings

    def combine(self, a: bytes, b: bytes) -> bytes:
        """What neighbours carry, as one."""
        return self.extra.combine(a, b) if self.carried else b""

    @property
    def kind(self) -> str:
        """The aggregate's name, without options."""
        return self.monoid.kind

    @property
    def names(self) -> tuple[str, ...]:
        """Of its columns those that have ends."""
        return tuple(RANKS) if self.kind == "quantiles" else (self.kind,)

    @property
    def columns(self) -> dict[str, str]:
        """Its columns and their SQL types."""
        if self.kind in _SKETCHES:
            return {self.kind: "binary", f"{self.kind}_doubt": "bigint", f"{self.kind}_exact": "boolean"}
        kind = {"top_k": "array<double>", "argmin": "bigint", "argmax": "bigint"}.get(self.kind, "double")
        more = {f"{self.kind}_error": "double"} if self.kind == "distinct_count" else {}
        named = {f"{name}{end}": "boolean" if end == ENDS[-1] else kind for name in self.names for end in ENDS}
        return named | more


def split(text: str) -> list[str]:
    """The names of a list by comma; commas in parentheses belong to a name."""
    return [name.strip() for name in _PARTED.split(text)]


def asked(text: str) -> Asked | None:
    """What this names; None where it is no aggregate of extras. Raises ConfigurationError for wrong options."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        return None
    monoid = _made(found[1], [each.strip() for each in found[2].split(",")] if found[2] else [])
    if monoid is None:
        return None
    if monoid.kind in PLACED:
        return Asked(monoid, "")
    name = name_for(monoid)
    if name is None or extra(name) is None:
        raise ConfigurationError(f"{text}: buckets cannot carry it; expected one such as {', '.join(FORMS)}")
    return Asked(monoid, name)


def _made(kind: str, options: Sequence[str]) -> sg.Monoid | None:
    if kind == "slope":
        return sg.slope(per=options[0] if options else "1s")
    if kind == "intercept":
        return sg.intercept(at=options[0] if options else "first")
    if kind in PAIRED and not options:
        return sg.covariance("value", "second") if kind == "covariance" else sg.correlation("value", "second")
    if kind in ("time_weighted_mean", *PLACED) and not options:
        made: sg.Monoid = getattr(sg, kind)()
        return made
    if kind not in _WHOLE:
        return None
    if not all(each.isdecimal() and len(each) < 10 for each in options):
        raise ConfigurationError(f"{kind}({', '.join(options)}): expected whole numbers")
    try:
        return _WHOLE[kind](*map(int, options))
    except TypeError:
        raise ConfigurationError(f"{kind}: {len(options)} options, expected such as in {', '.join(FORMS)}") from None


def sorted_out(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[Asked, ...]]:
    """The names that a bucket's record answers, and what its extras do, each once.

    Raises ConfigurationError for a name that is neither, and for two that would be one column.
    """
    plain, found = list[str](), list[Asked]()
    for name in dict.fromkeys(names):
        each = None if name in ALL else asked(name)
        if each is not None:
            found.append(each)
        elif name in ALL:
            plain.append(name)
        else:
            raise ConfigurationError(f"{name!r}: choose from {', '.join((*ALL, *FORMS))}")
    kinds = [each.kind for each in found]
    if twice := sorted({kind for kind in kinds if kinds.count(kind) > 1}):
        raise ConfigurationError(f"{twice[0]} is asked for twice, and would be one column: choose one")
    return tuple(plain), tuple(found)


def asked_of(names: Sequence[str]) -> tuple[Asked, ...]:
    """What a table's definition has of it (`tabled`)."""
    return sorted_out(names)[1]


def tabled(carried: Sequence[Asked], names: Sequence[str]) -> tuple[str, ...]:
    """Those of `names` that are `carried`, as a table's definition has them. Raises ConfigurationError for sketches."""
    if sketches := [each.kind for each in carried if each.kind in _SKETCHES]:
        raise ConfigurationError(f"{sketches[0]}: a table keeps no sketches themselves: use --out")
    return tuple(dict.fromkeys(name.replace(" ", "") for name in names if name not in ALL)) if carried else ()
