"""The bucket record; its merge, its builder, and buckets by their readings."""

from sluicegate.constants import LARGEST, LATE, ORDERED
from sluicegate.format._bucket import Builder, merge, merge_packed, refold, unfold
from sluicegate.format.record import FIELDS, PACKED, UNKNOWN, Bucket

__all__ = [
    "FIELDS",
    "LARGEST",
    "LATE",
    "ORDERED",
    "PACKED",
    "UNKNOWN",
    "Bucket",
    "Builder",
    "merge",
    "merge_packed",
    "refold",
    "unfold",
]
