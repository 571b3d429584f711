"""Sync Gateways for tests: the real one on loopback, a stand-in that behaves as it does, a proxy that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.launcher import SyncGateway
    from gateway.stand_in import StandIn

    Gateway = SyncGateway | StandIn
else:
    Gateway = object
