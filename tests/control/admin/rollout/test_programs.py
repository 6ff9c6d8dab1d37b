"""Router programs, roles and MicroServing as the admin API takes them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from penstock.control.state.rollout.deployment import DeploymentName
from penstock.control.state.routing.program import digest_of
from penstock.control.state.tenancy.tokens import Role
from penstock.control.store.store import PROGRAM
from tests.control.admin.app_harness import Admin, assert_problem, running_admin

PLAIN = "async def route(request, engines, stats, *, share=0.5):\n    return None\n"
MOVES = f'USES = {{"prep_recv"}}\n{PLAIN}'
MINI = {"name": "mini", "engine": "simulated", "model": "m", "replicas": 3}
URL = "/admin/v1/deployments/mini"
SHIPPED, SHIPS_PLAIN = "context_migration", "data_parallel"
ASKED = {"selection_policy": "program", "program": {"file": PLAIN, "args": {"share": 0.1}}}


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    """An app with one deployment."""
    async with running_admin() as running:
        made = await running.client.post("/admin/v1/deployments", json=MINI)
        assert made.status_code == 201, made.text
        yield running


def texts(admin: Admin) -> Mapping[str, Any]:
    stored = admin.store.documents.items()
    return {key.name: stored.document["text"] for key, stored in stored if key.kind == PROGRAM}


async def set_to(admin: Admin, **said: Any) -> dict[str, Any]:
    reply = await admin.client.patch(f"{URL}/settings", json=said)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


async def test_a_file_is_shown_again_and_stored_by_its_digest(admin: Admin) -> None:
    made = await set_to(admin, **ASKED)
    told = {"name": "", "module": "", "digest": digest_of(PLAIN), "args": {"share": 0.1}}
    shown = (await admin.client.get(URL)).json()["spec"]
    assert shown["program"] == told | {"file": PLAIN}
    assert texts(admin) == {digest_of(PLAIN): PLAIN}
    (listed,) = (await admin.client.get("/admin/v1/deployments")).json()
    for other in (listed, made):
        assert other["spec"]["program"] == told | {"file": ""}, "lists and answers leave it out"
    for each in (shown, made["spec"]):
        put = await admin.client.put(URL, json=each)
        assert put.json()["generation"] == made["generation"], "what is shown can be sent again"
    known = admin.cluster.view().deployments[DeploymentName("mini")]
    assert known.template_digest == made["template_digest"]
    assert known.template_generation == 1, "no replica is replaced"


async def test_a_text_goes_once_nothing_names_it(admin: Admin) -> None:
    await admin.client.put(URL, json=MINI_PUT | {"revision_limit": 1} | ASKED)
    other = PLAIN.replace("0.5", "0.6")
    await set_to(admin, program={"file": other})
    assert set(texts(admin)) == {digest_of(PLAIN), digest_of(other)}, "settings may go back"
    await set_to(admin, max_queued=7)
    assert set(texts(admin)) == {digest_of(other)}
    await admin.client.delete(URL)
    assert texts(admin) == {}


MINI_PUT = {key: value for key, value in MINI.items() if key != "name"}


async def test_settings_go_back_to_the_program_before(admin: Admin) -> None:
    await set_to(admin, **ASKED)
    await set_to(admin, program={"name": SHIPS_PLAIN})
    await admin.client.post(f"{URL}/rollback", json={"settings": -1})
    assert (await admin.client.get(URL)).json()["spec"]["program"]["file"] == PLAIN
    await set_to(admin, program=None, selection_policy="power_of_two")
    assert (await admin.client.get(URL)).json()["spec"]["program"] is None


async def test_arguments_alone_change_those_of_the_program_that_there_is(admin: Admin) -> None:
    await set_to(admin, **ASKED)
    shown = (await set_to(admin, program={"args": {"share": 0.2}}))["spec"]["program"]
    assert (shown["digest"], shown["args"]) == (digest_of(PLAIN), {"share": 0.2})


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"program": {"name": "nothing"}}, ("no nothing", "there are balanced_prefill_decode, ")),
        ({"program": {"name": SHIPPED, "args": {"x": 1}}}, ("program.x", "there are overload")),
        ({"program": {"name": SHIPPED, "args": {"overload": "x"}}}, ("must be a number",)),
        (
            {"program": {"name": SHIPPED, "args": {"overload": [1]}}},
            ("program.args.overload: ", "a number, a text, true or false, please"),
        ),
        ({"program": {"name": SHIPPED, "args": {"overload": 10**400}}}, ("must be a number",)),
        ({"program": {"module": "os"}}, ("'os'", "Python's own, no program")),
        ({"program": {"file": "x"}}, ("one function `async def route",)),
        ({"program": {"digest": "0" * 64}}, ("give its file",)),
        ({"program": {"args": {"share": 1}}}, ("say one of name, file, module",)),
        ({"selection_policy": "program"}, ("say which, by program",)),
        ({"sees": "all"}, ("lengths, tokens",)),
        ({"program_deadline_ms": 0}, ("program_deadline_ms",)),
        ({"roles": {"prefill": 1, "decode": 0}}, ("roles.decode is 0",)),
    ],
)
async def test_what_cannot_be_is_refused(
    admin: Admin, said: dict[str, Any], words: tuple[str, ...]
) -> None:
    assert_problem(await admin.client.patch(f"{URL}/settings", json=said), 422, *words)


async def test_a_program_that_asks_engines_needs_microserving(admin: Admin) -> None:
    asked = {"selection_policy": "program", "program": {"name": "prefill_decode"}}
    reply = await admin.client.patch(f"{URL}/settings", json=asked)
    assert_problem(
        reply, 409, "prefill_decode asks engines for prep_recv", "microserving of mini is off"
    )
    on = MINI_PUT | {"microserving": "on"}
    assert (await admin.client.put(URL, json=on | asked)).status_code == 200
    off = await admin.client.put(URL, json=MINI_PUT | asked)
    assert_problem(off, 409, "microserving of mini is off")
    back = await admin.client.post(f"{URL}/rollback", json={"revision": 1})
    assert_problem(back, 409, "microserving of mini is off")


async def test_programs_are_for_role_admin_and_can_be_left_by_operators(admin: Admin) -> None:
    operator = await admin.headers(Role.OPERATOR)

    async def asked(**said: Any) -> Any:
        return await admin.client.patch(f"{URL}/settings", json=said, headers=operator)

    assert_problem(await asked(**ASKED), 403, "needs a token of role admin")
    assert_problem(await asked(program={"name": SHIPPED}), 403, "needs a token of role admin")
    await set_to(admin, **ASKED)
    assert_problem(await asked(sees="tokens"), 403)
    assert_problem(await asked(program={"args": {"share": 1}}), 403)
    assert (await asked(max_queued=9)).status_code == 200
    assert (await asked(selection_policy="power_of_two")).status_code == 200
    assert_problem(await asked(selection_policy="program"), 403)
    back = {"settings": -1}
    undone = await admin.client.post(f"{URL}/rollback", json=back, headers=operator)
    assert_problem(undone, 403)


async def test_roles_say_how_many_replicas_there_are(admin: Admin) -> None:
    made = await set_to(admin, roles={"prefill": 1, "decode": 3})
    assert made["spec"]["replicas"] == 4
    scaled = await admin.client.post(f"{URL}/scale", json={"replicas": 2})
    assert_problem(scaled, 409, "has roles, 1 prefill, 3 decode")
    one_less = await set_to(admin, roles={"decode": 1})
    assert (one_less["spec"]["roles"], one_less["spec"]["replicas"]) == (
        {"prefill": 1, "decode": 1},
        2,
    )
    back = await admin.client.post(f"{URL}/rollback", json={"settings": -1})
    assert back.json()["spec"]["replicas"] == 4
    both = MINI_PUT | {"roles": {"prefill": 1, "decode": 1}}
    assert_problem(await admin.client.put(URL, json=both), 422, "replicas is 3")
    none = await set_to(admin, roles={"prefill": 0, "decode": 0})
    assert none["spec"]["replicas"] == 4
    assert (await admin.client.post(f"{URL}/scale", json={"replicas": 1})).status_code == 200


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"engine": "openai", "model": "gpt", "microserving": "on"}, "has no KV to move"),
        ({"microserving_rest": "on"}, "microserving_rest is on and microserving is off"),
        ({"microserving": "perhaps"}, "must be one of off, on"),
        ({"engine_args": {"enable_prefix_caching": False}}, "found by the prefix cache"),
        ({"engine_args": {"kv_cache_dtype": "fp8_e4m3"}}, "the scales of fp8"),
        ({"engine_args": {"prefix_caching_hash_algo": "sha256"}}, "by sha256_cbor"),
        ({"engine_args": {"spec_method": "ngram"}}, "speculative decoding"),
        ({"engine_args": {"pipeline_parallel_size": 2}}, "engines of one stage"),
        ({"engine_args": {"runner": "pooling"}}, "keeps no KV"),
    ],
)
async def test_what_microserving_cannot_be_beside_is_refused(
    admin: Admin, said: dict[str, Any], words: str
) -> None:
    asked = {"engine": "vllm", "model": "m"} | said
    if "engine_args" in said:
        assert (await admin.client.put(f"{URL}-off", json=asked)).status_code == 201
        asked["microserving"] = "on"
    assert_problem(await admin.client.put(f"{URL}-on", json=asked), 422, words)
