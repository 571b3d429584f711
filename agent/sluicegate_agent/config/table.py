"""A table of the configuration file as a frozen struct: an unknown key is an error."""

from __future__ import annotations

from msgspec import Struct


class Table(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """A table of the file; an unknown key is an error."""
