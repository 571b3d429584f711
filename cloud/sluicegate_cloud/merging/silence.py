"""Counts the devices that a window of several says nothing of: heard of before it, and not again.

What such a device measured since, nobody knows: whether it was lost, is on its way, or was never taken. It adds nothing
to the completeness of these windows, so they say how many such devices there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sluicegate_cloud.grid import Ints


class LastHeard(NamedTuple):
    """The frames of last readings, ascending, and how many devices were heard of last before each, and in all."""

    frames: Ints
    before: Ints

    @classmethod
    def of(cls, frames: Ints, devices: Ints) -> LastHeard:
        """So many devices were heard of last in each of these frames, of which some may be the same."""
        order = np.argsort(frames, kind="stable")
        return cls(frames[order], np.concatenate(([0], np.cumsum(devices[order]))).astype(np.int64))

    def silent(self, windows: Ints) -> Ints:
        """Of how many devices the last reading lies before the windows that begin at these frames."""
        return np.asarray(self.before[np.searchsorted(self.frames, windows)])
