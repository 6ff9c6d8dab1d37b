"""A shadow on its way to gateways and to the comparer."""

from __future__ import annotations

from dataclasses import replace

from penstock.control.rpc.shadow_wire import order, order_message, shadow_rule
from penstock.control.state.shadow.comparing import Order
from penstock.control.state.shadow.routes import ShadowRoute
from penstock.control.state.shadow.shadows import Shadow
from penstock.control.state.shadow.spec import Candidate, Primary, Record, Sample, ShadowSpec
from tests.fakes.control_values import NOON

SPEC = ShadowSpec(
    "s",
    Primary("chat", "pirate"),
    Candidate("small", "pirate@2"),
    125,
    sample=Sample.SESSION,
    tenants=("acme",),
    max_per_minute=60,
    checks=("error",),
    margins=(("error", 0.1),),
    guardrails=(("codename", "project [xy]"),),
    usd_per_day=0.5,
    record=Record.REDACTED,
    embedder="embed",
    judge="big",
)
SHADOW = Shadow(SPEC, "u1", 2**63 - 1, NOON)


def test_a_rule_says_all_that_a_gateway_has_to_know() -> None:
    rule = shadow_rule(ShadowRoute(SHADOW, ("/v1/completions",), 50, budget_used_up=True))
    assert (rule.uid, rule.name, rule.seed) == ("u1", "s", 2**63 - 1)
    assert (rule.primary, rule.primary_alias) == ("chat", "pirate")
    assert (rule.candidate, rule.candidate_adapter) == ("small", "pirate@2")
    assert (rule.share_permille, rule.by_session, rule.self_permille) == (125, True, 50)
    assert (list(rule.tenants), list(rule.endpoints)) == (["acme"], ["/v1/completions"])
    assert (rule.max_concurrent, rule.max_per_minute) == (4, 60)
    assert (rule.embedder, rule.judge) == ("embed", "big")
    assert (rule.nanousd_per_day, rule.budget_used_up) == (500_000_000, True)


def test_its_prefix_caches_are_its_own() -> None:
    other = replace(SHADOW, uid="u2")
    assert len({SHADOW.cache_salt, other.cache_salt, ""}) == 3


def test_an_order_comes_to_the_comparer_as_it_was() -> None:
    for shadow in (SHADOW, replace(SHADOW, ended="500 pairs are counted")):
        assert order(order_message(Order.of(shadow))) == Order.of(shadow)
