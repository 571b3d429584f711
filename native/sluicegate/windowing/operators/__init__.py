"""Operators over windows: aggregate, sort, join, de-duplicate, and `Operator`, the contract for the user's own.

Source: SPL's windowing library, 5.1 and 6.1. Each says which windows it takes, and refuses the others with the reason.
"""

from sluicegate.windowing.operators.aggregate import Aggregate, WindowResult
from sluicegate.windowing.operators.base import Operator
from sluicegate.windowing.operators.dedup import Dedup
from sluicegate.windowing.operators.join import Join, Match
from sluicegate.windowing.operators.sort import Sort

__all__ = ["Aggregate", "Dedup", "Join", "Match", "Operator", "Sort", "WindowResult"]
