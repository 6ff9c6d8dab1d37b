"""What the admin API works with."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.control.admin.gateways_api import GatewayReplacer
from penstock.control.managers.clock import Clock
from penstock.control.managers.keeper import Keeper
from penstock.control.managers.routes import RouteManager
from penstock.control.managers.tokens import TokenManager


@dataclass(frozen=True, slots=True)
class AdminServices:
    """The managers that its resources call."""

    keeper: Keeper
    routes: RouteManager
    tokens: TokenManager
    clock: Clock
    gateways: GatewayReplacer | None = None  # None: the head runs no gateway
