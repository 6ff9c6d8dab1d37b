"""What a client gets when all is well: the replica's bytes, and headers about them."""

from __future__ import annotations

import json

import openai
import pytest

from tests.fakes.fake_control import deployment
from tests.fakes.fake_replica import DONE, FakeCall, delta, unary_chat
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import CHAT, chat, request

# Bytes that anything which parses and writes again would change.
ODD_EVENTS = (
    'data: {"b" : 1.50,  "a":"caf\\u00e9 \u00e9", "a": 2}\n\n'.encode() + b'data: {"x":[1, 2]}\n\n'
)
ODD_BODY = '{"z" : 1e2,\n "a":"\\u00e9 \u00e9", "choices":[]}\n'.encode()


async def odd(call: FakeCall) -> None:
    if call.streamed:
        for part in (ODD_EVENTS, DONE):
            await call.send(part, events=part.count(b"\n\n"))
    else:
        await call.send(ODD_BODY)
    await call.finish()


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
async def test_streamed_bytes_travel_verbatim(start: Start, path: str) -> None:
    system = await start(scripts=(odd,))
    body = json.dumps(CHAT | {"prompt": "hi", "stream": True}).encode()
    answer = await system.ask(request(path=path, body=body))
    assert answer.status == 200
    assert answer.body == ODD_EVENTS + DONE
    assert not answer.cut_off
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-accel-buffering"] == "no"
    assert system.replicas[0].calls[0].request.path == path


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
async def test_a_unary_body_travels_verbatim(start: Start, path: str) -> None:
    system = await start(scripts=(odd,))
    body = json.dumps(CHAT | {"prompt": "hi"}).encode()
    answer = await system.ask(request(path=path, body=body))
    assert answer.status == 200
    assert answer.body == ODD_BODY
    assert answer.headers["content-type"] == "application/json"
    assert int(answer.headers["content-length"]) == len(ODD_BODY)


async def test_the_clients_body_reaches_the_replica_byte_for_byte(system: System) -> None:
    body = b' {"messages" : [{"role":"user","content":"\\u00e9"}],"model":"mini", "x":1.0}\r\n'
    answer = await system.ask(request(body=body))
    assert answer.status == 200
    call = system.replicas[0].calls[0].request
    assert call.body == body
    assert call.model == "mini"
    assert call.adapter == ""
    assert call.method == "POST"


async def test_an_alias_reaches_the_replica_as_its_adapter_version(system: System) -> None:
    answer = await system.ask(chat(model="mini:pirate"))
    assert answer.status == 200
    call = system.replicas[0].calls[0].request
    assert call.adapter == "pirate@1"
    assert call.model == "mini:pirate"


async def test_every_request_has_an_id_of_ours_that_the_replica_and_the_log_know(
    system: System,
) -> None:
    answers = [await system.ask(chat(headers="X-Request-Id: mine-1\r\n")) for _ in range(3)]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert len(set(ids)) == 3
    assert all(one.startswith("req_") for one in ids)
    assert [call.request.request_id for call in system.replicas[0].calls] == ids
    assert answers[0].headers["x-client-request-id"] == "mine-1"
    line = await until(
        lambda: system.gateway.find_log("request settled", request_id=ids[0]), "it is logged"
    )
    assert line is not None
    assert line["client_request_id"] == "mine-1"
    assert line["status"] == 200
    assert line["outcome"] == "succeeded"


async def test_the_trace_context_reaches_the_replica(system: System) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await system.ask(chat(headers=f"traceparent: {trace}\r\n"))
    assert system.replicas[0].calls[0].request.traceparent == trace


async def test_a_large_streamed_answer_arrives_whole(start: Start) -> None:
    events = [delta(f"{i} " + "x" * 997) for i in range(5000)]

    async def long(call: FakeCall) -> None:
        for i in range(0, len(events), 50):
            await call.send(b"".join(events[i : i + 50]), events=50)
        await call.send(DONE)
        await call.finish()

    system = await start(scripts=(long,))
    answer = await system.ask(chat(stream=True))
    assert answer.body == b"".join(events) + DONE


async def test_a_large_unary_answer_arrives_whole(start: Start) -> None:
    body = unary_chat("y" * 3_000_000)

    async def large(call: FakeCall) -> None:
        await call.send(body)
        await call.finish()

    system = await start(scripts=(large,))
    assert (await system.ask(chat())).body == body


async def test_a_large_prompt_reaches_the_replica(system: System) -> None:
    prompt = "long " * 400_000
    answer = await system.ask(chat(messages=[{"role": "user", "content": prompt}]))
    assert answer.status == 200
    assert system.replicas[0].calls[0].json["messages"][0]["content"] == prompt


async def test_models_lists_deployments_and_adapters(system: System) -> None:
    answer = await system.ask(request("GET", "/v1/models"))
    assert answer.status == 200
    listed = json.loads(answer.body)
    assert listed["object"] == "list"
    assert [card["id"] for card in listed["data"]] == ["mini", "mini:pirate", "mini:pirate@1"]
    base, adapter, _ = listed["data"]
    assert base["object"] == "model"
    assert base["parent"] is None
    assert base["max_model_len"] == 2048
    assert base["created"] == 1_700_000_000
    assert adapter["parent"] == "mini"
    assert adapter["root"] == "pirate@1"


@pytest.mark.parametrize("path", ["mini:pirate", "mini%3Apirate", "mini%3apirate"])
async def test_one_model_is_found_under_its_encoded_name_too(system: System, path: str) -> None:
    answer = await system.ask(request("GET", f"/v1/models/{path}"))
    assert answer.status == 200
    assert json.loads(answer.body)["id"] == "mini:pirate"


@pytest.mark.parametrize("path", ["org%2Fthe%20model", "org/the%20model"])
async def test_a_model_with_a_slash_is_found_either_way(start: Start, path: str) -> None:
    system = await start(deployment=deployment("org/the model"))
    answer = await system.ask(request("GET", f"/v1/models/{path}"))
    assert answer.status == 200
    assert json.loads(answer.body)["id"] == "org/the model"


async def test_an_unknown_model_card_is_404(system: System) -> None:
    answer = await system.ask(request("GET", "/v1/models/maxi"))
    assert answer.status == 404
    assert answer.error["code"] == "model_not_found"


async def test_the_openai_sdk_works_streamed_and_unary(system: System) -> None:
    async with openai.AsyncOpenAI(
        base_url=system.gateway.base_url + "/v1", api_key="none", max_retries=0
    ) as client:
        unary = await client.chat.completions.create(
            model="mini",
            messages=[{"role": "user", "content": "hi"}],
        )
        assert unary.choices[0].message.content == "Hello"
        stream = await client.chat.completions.create(
            model="mini",
            messages=[{"role": "user", "content": "hi"}],
            stream=True,
        )
        texts = [chunk.choices[0].delta.content or "" async for chunk in stream]
        assert "".join(texts) == "Hello"
        listed = [model.id async for model in client.models.list()]
        assert listed == ["mini", "mini:pirate", "mini:pirate@1"]
        with pytest.raises(openai.NotFoundError, match="mini:pirate") as missing:
            await client.chat.completions.create(
                model="maxi",
                messages=[{"role": "user", "content": "hi"}],
            )
        assert missing.value.code == "model_not_found"
        assert missing.value.request_id is not None
