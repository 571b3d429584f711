"""The bucket record and its builder."""

from sluicegate.reference.buckets import FIELDS, LARGEST, LATE, ORDERED, PACKED, Bucket, Builder, merge

__all__ = ["FIELDS", "LARGEST", "LATE", "ORDERED", "PACKED", "Bucket", "Builder", "merge"]
