"""What tokens cost: settings, and of providers, where these say nothing, engine settings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.control.errors import InvalidSpec
from penstock.control.state.rollout.template import Template, template_digest
from penstock.control.state.tenancy.prices import Prices, provider_prices
from tests.fakes.control_values import spec

CLOUD = Template("openai", "gpt-4o-mini", (("usd_per_million_input", "0.15"),))


def test_a_provider_says_its_prices_where_it_always_did() -> None:
    told = (("usd_per_million_cached", "0"), *CLOUD.engine_args, ("usd_per_million_output", "x"))
    assert provider_prices(told) == Prices(0.15, 0.0, 0.0)
    assert provider_prices(CLOUD.engine_args).cached == 0.15
    assert replace(spec(), template=CLOUD).all_prices == Prices(0.15)


def test_prices_of_an_own_model_change_without_new_replicas() -> None:
    priced = replace(spec(), prices=Prices(0.25, 1.0, 0.025))
    assert priced.all_prices.cached == 0.025
    assert template_digest(priced.template) == template_digest(spec().template)


def test_settings_of_a_provider_win_each_by_itself_and_take_no_new_replicas() -> None:
    args = (*CLOUD.engine_args, ("usd_per_million_cached", "0.1"), ("usd_per_million_output", "3"))
    said = replace(spec(), template=replace(CLOUD, engine_args=args))
    assert said.all_prices == Prices(0.15, 3.0, 0.1)
    dearer = replace(said, prices=Prices(usd_per_million_input=1.0))
    assert dearer.all_prices == Prices(1.0, 3.0, 0.1)
    assert template_digest(dearer.template) == template_digest(said.template)
    free = replace(said, prices=Prices(usd_per_million_cached=0.0))
    assert free.all_prices == Prices(0.15, 3.0, 0.0)


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf"), 1e12])
def test_a_price_that_cannot_be_is_named(price: float) -> None:
    with pytest.raises(InvalidSpec, match="usd_per_million_output is"):
        Prices(usd_per_million_output=price)
