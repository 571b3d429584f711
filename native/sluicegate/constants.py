"""What compiled and readable code both need: limits, flags, kinds of policies, sizes."""

from __future__ import annotations

LARGEST = 2.0**960
"""Greatest magnitude of a value: 2⁶² such differences still add up to a finite float64."""
LATEST = 2**61
"""Greatest magnitude of a time in µs: such a time plus or minus a span of 2⁶² still fits an int64."""
NEVER = -(2**62)
"""The event time of a window that has seen no reading."""

ORDERED = 1
"""A bucket's flag: its times never go back."""
LATE = 2
"""A bucket's flag: its readings are older than earlier buckets."""

CUSTOM, BY_COUNT, BY_TIME = range(3)
"""What tells where a window begins: a rule of the user's, a number of readings, a span of time."""

MOST_LATE = 32
"""Buckets of late readings that a window of buckets keeps beside the others."""
SORTED = b"by time "
"""In place of late buckets: of an exact window whose readings stand in a finger B-tree since one came late."""
KEPT_LEVELS = 16
"""A window gives out all its leaves again after so many level evictions."""
FINER = 4
"""Where pairs are merged, a bucket closes at this part of the size that all would have if they were equal."""
HOP_DOUBT = 40
"""Bytes of a hop rule's state for what is in doubt since the last certain boundary; older states lack them."""

MOST_EXTRAS = 16
"""Names of what buckets carry beside their record, in one document."""
MOST_NAME = 64
"""Characters of such a name."""
