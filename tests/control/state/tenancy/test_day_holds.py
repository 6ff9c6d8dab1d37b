"""What gateways have of limits of a day: kept as they say, told to each as it needs it."""

from __future__ import annotations

from dataclasses import replace

from penstock.control.state.tenancy.day_holds import (
    Amount,
    GatewayHolds,
    Hold,
    Share,
    reserved_by_all,
    shares_of,
)
from penstock.control.state.tenancy.usage import Holder

ACME, KEY = Holder("acme", ""), Holder("acme", "key_1")


def test_what_is_not_in_a_report_has_nothing_reserved_and_used_what_it_had() -> None:
    first = GatewayHolds().after("i", [Hold(ACME, Amount(5, 1), Amount(7)), Hold(KEY, *AMOUNTS)])
    second = first.after("i", [Hold(ACME, Amount(9, 1), Amount())])
    assert second.used == {ACME: Amount(9, 1), KEY: AMOUNTS[0]}
    assert second.reserved == {}
    assert second.after("i", [], 7) == replace(second, report=7)
    assert second.after("j", []).used == {}


def test_each_gateway_is_told_its_own_use_and_what_all_others_reserved() -> None:
    one = GatewayHolds("i", {ACME: Amount(5)}, {ACME: Amount(10), KEY: Amount(1, 2)})
    two = GatewayHolds("j", {}, {ACME: Amount(20, 3)})
    total = reserved_by_all([one, two])
    assert total == {ACME: Amount(30, 3), KEY: Amount(1, 2)}
    assert shares_of(one, total) == {
        ACME: Share(Amount(5), Amount(20, 3)),
        KEY: Share(None, Amount()),
    }
    assert shares_of(two, total) == {
        ACME: Share(None, Amount(10)),
        KEY: Share(None, Amount(1, 2)),
    }


AMOUNTS = (Amount(3), Amount(4))
