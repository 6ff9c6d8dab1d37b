"""Our dashboards, a file each."""

from __future__ import annotations

from typing import Final

from deploy.monitoring.boards import adapters, deployment, fleet, gateway, tenant

BOARDS: Final = (fleet.BOARD, deployment.BOARD, tenant.BOARD, gateway.BOARD, adapters.BOARD)
