"""Windows of many devices → those of all devices: components added up twice, within a task and then by window.

A device's sums are relative to its own mean. `combined` makes them relative to the mean of all devices before it adds
them: around that mean the interval of the sum is about as narrow as the interval of the mean itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from sluicegate_cloud.estimates.components import GREATEST, LEAST, SUMS, names
from sluicegate_cloud.fleet.groups import Groups
from sluicegate_cloud.grid import Columns

_ADDED = (*SUMS, "total", "part_low", "part_high")


def combined(parts: Columns, groups: Groups, needed: Sequence[ModuleType]) -> Columns:
    """The components of each group of `parts`, rows sorted so that a group's are together. No row: no group."""
    if groups.rows == 0:
        return {name: parts[name] for name in names(needed)}
    moved = parts | _moved(parts, groups, needed)
    added = (*_ADDED, *(name for of in needed for name in of.SUMS))
    least = (*LEAST, *(name for of in needed for name in of.LEAST))
    out = {name: groups.sum(moved[name]) for name in added}
    out |= {name: groups.least(moved[name]) for name in least}
    greatest = (*GREATEST, "ref", *(name for of in needed for name in of.GREATEST))
    out |= {name: groups.greatest(moved[name]) for name in greatest}
    return {name: out[name] for name in names(needed)}


def _moved(parts: Columns, groups: Groups, needed: Sequence[ModuleType]) -> Columns:
    """What changes when sums are taken from the mean of each group."""
    mean = groups.mean(parts["n"] + parts["part_count"], parts["ref"])
    apart = parts["ref"] - mean
    ends = parts["count_low"] * apart, parts["count_high"] * apart
    out: Columns = {
        "ref": mean,
        "total": parts["total"] + parts["n"] * apart,
        "part_low": parts["part_low"] + np.minimum(*ends),
        "part_high": parts["part_high"] + np.maximum(*ends),
    }
    for family in needed:
        out |= family.moved(parts, groups, apart)
    return out


def added_up(parts: Sequence[Columns], by: tuple[str, str], needed: Sequence[ModuleType]) -> Columns:
    """The components of all rows of `parts` that agree in both columns `by`, with these, by which they are sorted."""
    keys = [np.concatenate([part[name] for part in parts]) for name in by]
    order = np.lexsort((keys[1], keys[0]))
    keys = [key[order] for key in keys]
    groups = Groups.of(*keys)
    # A column is sorted while it is still in the processor's cache.
    found = {name: np.concatenate([part[name] for part in parts])[order] for name in names(needed)}
    with np.errstate(all="ignore"):
        added = combined(found, groups, needed)
    return added | {name: key[groups.begin] for name, key in zip(by, keys, strict=True)}
