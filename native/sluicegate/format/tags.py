"""Tags of a chunk: a few short texts by name that say what is known of a stream beside its name."""

from __future__ import annotations

import json
import re
from typing import Any

#: Tags of a chunk, and characters of a value, at most.
TAGS_MOST, VALUE_MOST = 32, 256
NAME = re.compile(r"\w[\w.\-]{0,63}", re.ASCII)


def flaw_of_tags(tags: Any) -> str:
    """Why they are no tags; empty where they are, or where there are none."""
    if tags is None:
        return ""
    if not isinstance(tags, dict) or len(tags) > TAGS_MOST:
        return f"tags: expected at most {TAGS_MOST} texts by name"
    for name, value in tags.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            return f"tag {str(name)[:64]!r}: expected 1 to 64 letters, digits, `_`, `-` or `.` as its name"
        if not isinstance(value, str) or len(value) > VALUE_MOST or not (value.isprintable() or not value):
            return f"tag {name}: expected a printable text of at most {VALUE_MOST} characters"
    return ""


def spelled(tags: dict[str, str] | None) -> str:
    """The tags as a checksum takes them, whatever a database made of their order; empty where there are none."""
    return json.dumps(tags, sort_keys=True, ensure_ascii=False, separators=(",", ":")) if tags else ""
