"""A gateway is replaced by whoever may operate the cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.control.admin.app import admin_app
from penstock.control.admin.fleet.gateways_api import GatewayReplacer
from penstock.control.admin.services import AdminServices
from penstock.control.errors import Code, NotFound, PenstockError
from penstock.control.managers.write import Write
from penstock.control.state.cluster import Gateway, GatewayState
from penstock.control.state.tenancy.tokens import Role
from tests.control.admin.app_harness import Admin, assert_problem, client_of, running_admin

PATH = "/admin/v1/gateways/gw-1/replace"


class Gateways:
    """Replaces gw-1, unless it is told why not."""

    def __init__(self) -> None:
        self.refusal: Exception | None = None

    async def replace(self, gateway_id: str, write: Write) -> Gateway:
        if self.refusal is not None:
            raise self.refusal
        return Gateway(f"{gateway_id}.2", GatewayState.READY, pid=7)


def services(admin: Admin, gateways: GatewayReplacer | None) -> AdminServices:
    return replace(admin.services, gateways=gateways)


async def test_the_answer_is_the_gateway_that_took_over() -> None:
    async with running_admin() as admin:
        async with client_of(admin_app(services(admin, Gateways()), "1")) as client:
            reply = await client.post(PATH)
        assert reply.status_code == 200, reply.text
        assert (reply.json()["id"], reply.json()["state"]) == ("gw-1.2", "ready")


@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        (NotFound("no gw-1", Code.UNKNOWN_GATEWAY), 404),
        (PenstockError("old one", Code.GATEWAY_NOT_REPLACED), 409),
    ],
)
async def test_what_cannot_be_replaced_is_told_why(refusal: Exception, status: int) -> None:
    gateways = Gateways()
    gateways.refusal = refusal
    async with running_admin() as admin:
        client = client_of(admin_app(services(admin, gateways), "1"))
        assert_problem(await client.post(PATH), status, str(refusal))
        await client.aclose()


async def test_a_head_without_a_gateway_has_none_to_replace() -> None:
    async with running_admin() as admin:
        assert_problem(await admin.client.post(PATH), 404, "gw-1")


async def test_a_viewer_may_not() -> None:
    async with running_admin() as admin:
        viewer = await admin.headers(Role.VIEWER)
        assert_problem(await admin.client.post(PATH, headers=viewer), 403, "operator")
