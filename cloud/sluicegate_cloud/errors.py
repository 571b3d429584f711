"""What can stop a cloud job, each with the exit code the command line gives it (see `sluicegate.cli`)."""

from __future__ import annotations

from sluicegate.errors import SluicegateError


class CloudError(SluicegateError):
    """Base of the cloud's own errors; the message names what was found, what was expected and what to do."""

    exit_code = 2


class JavaError(CloudError):
    """Spark cannot start: no Java, too old a Java, or one that does not run. Something is to be installed."""

    exit_code = 3


class SourceError(CloudError):
    """A source of chunk documents does not exist, cannot be listed, or holds none."""


class SinkError(CloudError):
    """The place for the result cannot be written."""

    exit_code = 4


class ProvisionError(CloudError):
    """A user is not made as asked: a name that cannot be, a user that exists, a file in the way."""


class GatewayError(CloudError):
    """A Sync Gateway does not answer, is not trusted, or refuses."""

    exit_code = 4


class PlaceError(CloudError):
    """A bucket does not answer, or refuses."""

    exit_code = 4


class SparkError(CloudError):
    """Spark began the work and stopped; the message is its own first line, or that of a worker."""

    exit_code = 4


class StrictError(CloudError):
    """`strict` was asked for, and a document is unreadable, foreign or in conflict with another."""

    exit_code = 1


class TableError(CloudError):
    """A table cannot be written now: another merge has it or was first, or it answers something else."""

    exit_code = 4


class BusyError(TableError):
    """Another run has the table, or was first: nothing of this one counts, and it may be tried again."""
