"""Where a table's files lie: a folder that all workers see, or a prefix of a bucket behind S3's interface."""

from __future__ import annotations

from sluicegate_cloud.errors import TableError
from sluicegate_cloud.places.bucket import Bucket, is_object
from sluicegate_cloud.places.contract import Place
from sluicegate_cloud.places.folder import Folder
from sluicegate_cloud.places.uris import is_elsewhere

__all__ = ["Place", "place_of"]


def place_of(root: str) -> Place:
    """The place that a path, a file: URI or an s3: URL names. Raises TableError for any other URI.

    A version counts by a file that is made only where there is none yet: other places may promise it too, but none of
    them was tried.
    """
    if is_object(root):
        return Bucket.at(root)
    if is_elsewhere(root):
        raise TableError(
            f"a table cannot lie at {root}: give a folder that the driver and all workers see, such as a mounted one, "
            "or s3://BUCKET/PREFIX, or bring its windows elsewhere by `sluicegate cloud publish`"
        )
    return Folder.at(root)
