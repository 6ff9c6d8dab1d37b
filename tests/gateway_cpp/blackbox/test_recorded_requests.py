"""Requests that are recorded: a rule without a candidate hands them over and asks nobody."""

from __future__ import annotations

import json

from tests.fakes.fake_control import tenant
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start
from tests.gateway_cpp.blackbox.raw_http import CHAT, chat
from tests.gateway_cpp.blackbox.shadowed import UID, rule, shadowed


async def test_a_recorded_request_has_its_body_and_its_answer_and_goes_to_nobody_else(
    start: Start,
) -> None:
    async with shadowed(start, told=rule(candidate="", self_permille=0)) as made:
        answer = await made.system.ask(chat(stream=True))
        (pair,) = await made.pairs(1)
        assert json.loads(pair.body) == CHAT | {"stream": True}
        assert (pair.rule, pair.primary.body) == (UID, answer.body)
        assert pair.at_ms > 0
        assert not pair.HasField("candidate")
        await made.counted("paired", 1)
        assert (len(made.mini.calls), made.next.calls) == (1, [])


async def test_a_tenant_that_says_never_is_not_recorded(start: Start) -> None:
    tenants = [tenant(keys=["secret"], shadow_never=True)]
    async with shadowed(start, told=rule(candidate=""), tenants=tenants) as made:
        await made.system.ask(chat("authorization: Bearer secret\r\n"))
        await made.counted("not_allowed", 1)
        await until(lambda: (UID, "not_allowed") in made.comparer.counts, "the comparer is told")
        assert made.comparer.pairs == []
