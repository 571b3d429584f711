"""The bucket record; its merge and its builder, compiled or the readable twin where SLUICEGATE_PURE=1."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sluicegate.constants import LARGEST, LATE, ORDERED
from sluicegate.format.record import FIELDS, PACKED, UNKNOWN, Bucket

if TYPE_CHECKING or os.environ.get("SLUICEGATE_PURE") != "1":
    from sluicegate.format._bucket import Builder, merge, merge_packed
else:
    from sluicegate.reference.buckets import Builder, merge, merge_packed

__all__ = ["FIELDS", "LARGEST", "LATE", "ORDERED", "PACKED", "UNKNOWN", "Bucket", "Builder", "merge", "merge_packed"]
