"""How readings join the newest bucket, many at a time."""

import sluicegate.core  # noqa: F401 - its modules and these need one another: it comes first
