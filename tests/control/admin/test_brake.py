"""Who tries tokens, and who has one."""

from __future__ import annotations

from penstock.control.admin.brake import MOST_ADDRESSES, MOST_WRONG, PERIOD, Brake
from penstock.control.state.tenancy.tokens import Role
from tests.control.admin.app_harness import assert_problem, bearer, running_admin

DEPLOYMENTS = "/admin/v1/deployments"


def test_an_address_may_be_wrong_a_few_times_in_each_period() -> None:
    brake = Brake()
    for start in (0.0, PERIOD):
        found = [brake.wrong("a", start + number) for number in range(MOST_WRONG + 2)]
        assert found == [False] * MOST_WRONG + [True, True]
    assert not brake.wrong("b", PERIOD)


def test_many_addresses_take_no_more_room_and_do_not_free_the_one_that_goes_on() -> None:
    brake = Brake()
    for number in range(MOST_ADDRESSES * 3):
        brake.wrong(f"once-{number}", 1.0)
        held = brake.wrong("again", 1.0)
    assert held
    assert len(brake._wrong) == MOST_ADDRESSES


async def test_wrong_tokens_are_held_back_and_a_right_one_from_there_is_not() -> None:
    async with running_admin() as admin:
        statuses = [
            (await admin.client.get(DEPLOYMENTS, headers=bearer("pst_no"))).status_code
            for _ in range(MOST_WRONG + 1)
        ]
        assert statuses == [401] * MOST_WRONG + [429]
        held = await admin.client.get(DEPLOYMENTS, headers=bearer("pst_no"))
        assert held.headers["retry-after"] == f"{PERIOD:.0f}"
        assert_problem(held, 429)
        right = await admin.headers(Role.VIEWER)
        assert (await admin.client.get(DEPLOYMENTS, headers=right)).status_code == 200


async def test_an_operator_looks_at_no_directory_of_the_head() -> None:
    async with running_admin() as admin:
        body = {"name": "a", "version": 1, "base": "mini", "source": "/etc"}
        operator = await admin.headers(Role.OPERATOR)
        refused = await admin.client.post("/admin/v1/adapters", json=body, headers=operator)
        assert_problem(refused, 403)
        assert "hosts" not in refused.text
