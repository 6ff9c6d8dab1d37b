"""Routers of the admin API's resources."""

from __future__ import annotations

from fastapi import APIRouter, Depends

from penstock.control.admin.idempotency import ActsOnce
from penstock.control.admin.parameters import known_parameters


def resources(prefix: str = "", *, tag: str) -> APIRouter:
    """A router for what lies below /admin/v1{prefix}, whose routes the app takes as they are.

    To include it in another would make each route again, which takes as long as the first time.
    """
    return APIRouter(
        prefix=f"/admin/v1{prefix}",
        tags=[tag],
        route_class=ActsOnce,
        dependencies=[Depends(known_parameters)],
        responses={"4XX": {"description": "Refused"}, "5XX": {"description": "Failed"}},
    )
