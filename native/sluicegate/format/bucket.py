"""The bucket record; its merge and its builder."""

from sluicegate.constants import LARGEST, LATE, ORDERED
from sluicegate.format._bucket import Builder, merge, merge_packed
from sluicegate.format.record import FIELDS, PACKED, UNKNOWN, Bucket

__all__ = ["FIELDS", "LARGEST", "LATE", "ORDERED", "PACKED", "UNKNOWN", "Bucket", "Builder", "merge", "merge_packed"]
