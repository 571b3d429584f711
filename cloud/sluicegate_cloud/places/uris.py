"""What a place is called: a path, or a URI of somewhere else."""

from __future__ import annotations

import re
from urllib.parse import urlsplit


def is_elsewhere(place: str) -> bool:
    """Whether it is a URI, and of no folder of this machine."""
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", place):
        return False
    told = urlsplit(place)
    return told.scheme.lower() != "file" or told.netloc not in ("", "localhost")
