"""What every sync target must do: subclass `TargetSuite`, give it a target and eyes to look into it."""

from target_suite.suite import TargetSuite

__all__ = ["TargetSuite"]
