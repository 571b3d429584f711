"""Messages of MQTT out of a buffer, compiled or the readable twin where SLUICEGATE_PURE=1."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING or os.environ.get("SLUICEGATE_PURE") != "1":
    from sluicegate.format._packets import publish_of, publishes
else:
    from sluicegate.reference.packets import publish_of, publishes

__all__ = ["publish_of", "publishes"]
