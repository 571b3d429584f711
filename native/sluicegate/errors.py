"""Every error a caller may meet, named by what it asks for: mend the input, mend the configuration, or start anew."""

from __future__ import annotations


class SluicegateError(Exception):
    """Base of all errors raised on purpose; a message names place, value, what was expected and what to do."""


class InputError(SluicegateError, ValueError):
    """A reading or batch is refused: not finite, of the wrong shape or type. Nothing has changed."""


class ConfigurationError(SluicegateError, ValueError):
    """A window cannot be built as asked: an unknown name, a limit out of range, a combination that makes no sense."""


class BoundsError(SluicegateError):
    """A certain interval was asked for where none can be promised; the message says what forbids it."""


class PolicyError(SluicegateError):
    """A user's policy raised. The reading is in, what was allowed to leave has left, the window is usable."""


class AggregateError(SluicegateError):
    """A user's own aggregate raised. From `lift`: the reading is refused; else it is in, and the window is usable."""


class BusyError(SluicegateError, RuntimeError):
    """Another thread is using the window (a batch, a walk over its leaves), or the policy or aggregate it is asking."""


class SnapshotError(SluicegateError, ValueError):
    """Stored bytes are refused: damaged, truncated, larger than stated, or not what the window needs."""


class ForeignSnapshotError(SnapshotError):
    """Stored bytes are whole but belong to a window of another configuration."""


class NewerSnapshotError(SnapshotError):
    """Stored bytes were written by a newer version of Sluicegate than this one."""


class InvariantError(SluicegateError, AssertionError):
    """`verify()` found a structure that contradicts itself: a defect of Sluicegate, please report it."""


class StoreError(SluicegateError, OSError):
    """A store of partials failed or refuses. What the window took is still in it; the next call tries again."""


class CorruptPageError(StoreError):
    """A page of a store is missing, damaged, or another one than the window wrote there."""
