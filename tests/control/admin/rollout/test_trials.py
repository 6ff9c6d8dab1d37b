"""A deployment that is tried: what is asked of whom, and every way in which that can end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from penstock.control.errors import Code, PenstockError, Unavailable
from penstock.control.state.fleet.replica import Replica, ReplicaState
from penstock.control.state.rollout.trial import Outcome
from penstock.control.state.tenancy.tokens import Role
from tests.control.admin.app_harness import Admin, assert_problem, running_admin
from tests.fakes.control_values import deployment, replica, spec
from tests.fakes.fake_replica import DONE, delta, last_delta

URL = "/admin/v1/deployments/mini/test"
ANSWER = Outcome(
    delta("Hel") + delta("lo") + last_delta() + DONE,
    prompt_tokens=9,
    completion_tokens=2,
    cached_tokens=1,
    cost_nanousd=1_500_000,
    ttft_us=1500,
    total_us=2500,
    model="gpt-4o-mini",
    model_version="fp_1",
    backend="openai",
    backend_version="2.1",
    provider_request_id="req_1",
)


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    """An app with one deployment of one replica that is ready."""
    async with running_admin() as running:
        await running.cluster.observe(lambda view: view.with_deployment(deployment()), "test")
        await have(running, replica("r1"))
        running.replicas.answer = ANSWER
        yield running


async def have(admin: Admin, one: Replica) -> None:
    await admin.cluster.observe(lambda view: view.with_replica(one), "test")


async def test_an_answer_is_told_with_what_it_took_and_cost(admin: Admin) -> None:
    reply = await admin.client.post(URL)
    assert reply.status_code == 200, reply.text
    told = reply.json()
    assert told.pop("request_id").startswith("test-")
    assert told == {
        "deployment": "mini",
        "replica": "r1",
        "endpoint": "/v1/chat/completions",
        "text": "Hello",
        "finish_reason": "stop",
        "dimensions": 0,
        "prompt_tokens": 9,
        "completion_tokens": 2,
        "cached_tokens": 1,
        "cost_usd": 0.0015,
        "ttft_ms": 1.5,
        "total_ms": 2.5,
        "model": "gpt-4o-mini",
        "model_version": "fp_1",
        "backend": "openai",
        "backend_version": "2.1",
        "provider_request_id": "req_1",
    }
    ((address, question, model),) = admin.replicas.asked
    assert (address, model) == ("r1:9000", "mini")
    assert json.loads(question.body)["max_tokens"] == 16


async def test_a_model_that_embeds_is_asked_for_a_vector(admin: Admin) -> None:
    one = replica("r1")
    await have(
        admin, replace(one, status=replace(one.status, endpoints=("/v1/embeddings", "/pooling")))
    )
    admin.replicas.answer = Outcome(b'{"data": [{"embedding": [1.0, 2.0]}]}')
    told = (await admin.client.post(URL)).json()
    assert (told["endpoint"], told["dimensions"], told["text"]) == ("/v1/embeddings", 2, "")


async def test_the_newest_template_is_tried_where_both_serve(admin: Admin) -> None:
    await have(admin, replica("r0", digest="an older one"))
    older = replica("r0", digest="an older one")
    assert older.is_as_ordered
    assert (await admin.client.post(URL)).json()["replica"] == "r1"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (
            PenstockError(
                "the replica at r1:9000 answers 429 throttled: slow down", Code.REPLICA_FAILED
            ),
            502,
        ),
        (PenstockError("the replica at r1:9000 did not end", Code.REPLICA_TOO_SLOW), 504),
        (Unavailable("the replica at r1:9000 could not be asked"), 503),
    ],
)
async def test_what_went_wrong_at_the_replica_is_told_as_it_said_it(
    admin: Admin, error: PenstockError, status: int
) -> None:
    admin.replicas.answer = error
    assert_problem(await admin.client.post(URL), status, str(error))


async def test_nobody_to_ask_is_said(admin: Admin) -> None:
    await have(admin, replica("r1", ReplicaState.STARTING))
    assert_problem(await admin.client.post(URL), 503, "no replica of 'mini' is ready")
    none = deployment(spec(replicas=0))
    await admin.cluster.observe(lambda view: view.with_deployment(none), "test")
    assert_problem(await admin.client.post(URL), 409, "scaled to 0")
    assert_problem(await admin.client.post(URL.replace("mini", "other")), 404, "'other'")
    one = replica("r1")
    await have(admin, replace(one, status=replace(one.status, endpoints=("/v1/realtime",))))
    assert_problem(await admin.client.post(URL), 409, "/v1/realtime")
    assert admin.replicas.asked == []


async def test_it_costs_money_so_a_viewer_may_not(admin: Admin) -> None:
    viewer = await admin.headers(Role.VIEWER)
    assert_problem(await admin.client.post(URL, headers=viewer), 403, "operator")
    operator = await admin.headers(Role.OPERATOR)
    assert (await admin.client.post(URL, headers=operator)).status_code == 200
