"""MicroServing by REST, as a router of one's own sees it: two replicas on the simulated engine."""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from penstock.v1 import inference_pb2
from penstock.v1 import microserving_pb2 as pb
from tests.fakes.movers import words
from tests.fakes.replica_agent import replica_agent
from tests.fakes.replica_process import (
    ReplicaProcess,
    inference_stub,
    load_when,
    microserving_stub,
    running_replica,
    sse_objects,
)

pytestmark = pytest.mark.processes

_DOCS = Path(__file__).parents[2] / "docs/reference/microserving.md"
_TOKEN = "a-router"
_CALLERS = {"PENSTOCK_CALLERS_TOKEN": "of-gateways"}
_PLAIN = ("--engine", "simulated", "--model", "m")
_MOVING = (*_PLAIN, "--microserving", "--microserving-rest")
# A transfer of 300 tokens and a prompt of 20,000 take ten seconds, a token of an answer 20 ms.
_SLOW = (
    *("--engine-arg", "kv_bytes_per_second=480000", "--engine-arg", "tokens_per_second=50"),
    *("--engine-arg", "prefill_tokens_per_second=2000"),
)


def _keep(replica: ReplicaProcess, *tokens: str, valid_ms: int = 60_000) -> None:
    """What the replica's agent does."""
    digests = [hashlib.sha256(token.encode()).digest() for token in tokens]
    told = pb.KeepRouterTokensRequest(sha256s=digests, valid_ms=valid_ms)
    with microserving_stub(replica.address) as stub:
        stub.KeepRouterTokens(told, metadata=_metadata(), timeout=10)


def _metadata() -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {_CALLERS['PENSTOCK_CALLERS_TOKEN']}"),)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ReplicaProcess]]:
    """Two replicas that take this router's token."""
    logs = tmp_path_factory.mktemp("pair")
    with (
        running_replica(logs / "one", *_MOVING, env=_CALLERS) as one,
        running_replica(logs / "two", *_MOVING, env=_CALLERS) as two,
    ):
        for replica in (one, two):
            _keep(replica, _TOKEN)
        yield [one, two]


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    """A router."""
    headers = {"authorization": f"Bearer {_TOKEN}"}
    with httpx.Client(headers=headers, timeout=30, trust_env=False) as made:
        yield made


def _post(client: httpx.Client, at: ReplicaProcess, name: str, **told: Any) -> httpx.Response:
    return client.post(f"http://{at.rest}/microserving/v1/{name}", json=told)


def _call(client: httpx.Client, at: ReplicaProcess, name: str, **told: Any) -> dict[str, Any]:
    reply = _post(client, at, name, **told)
    assert reply.status_code == 200, reply.text
    body = reply.json()
    assert isinstance(body, dict)
    return body


def _chat() -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": words()}]}


def _leased(client: httpx.Client, at: ReplicaProcess, seq_id: str) -> dict[str, Any]:
    """What a send is told, of a new prompt and a lease for it."""
    prompt = _call(client, at, "tokenize", body=_chat())["prompt"]
    end = len(prompt["token_ids"])
    lease = _call(client, at, "prep_recv", prompt=prompt, end=end, seq_id=seq_id)
    told = {"prompt": prompt, "kv_addr": lease["kv_addr"], "seq_id": seq_id}
    return told | {"begin": lease["matched_len"], "end": lease["end"]}


def test_a_prompt_goes_from_one_to_the_other_and_is_answered_there(
    client: httpx.Client, pair: list[ReplicaProcess]
) -> None:
    one, two = pair
    told = _leased(client, two, "r1")
    sent = _call(client, one, "remote_send", **told)
    assert sent["moved_tokens"] == told["end"] > 0
    asked = {"prompt": told["prompt"], "seq_id": "r1", "params": {"max_tokens": 5}}
    reply = _post(client, two, "start_generate", **asked)
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert 0 < int(reply.headers["x-penstock-kv-moved"]) <= told["end"]
    objects = sse_objects(reply.content)
    ids = [token for one in objects for c in one["choices"] for token in c.get("token_ids", ())]
    assert len(ids) == 5
    assert objects[-1]["usage"]["completion_tokens"] == 5
    assert _call(client, two, "lookup", prompt=told["prompt"])["matched_len"] == told["end"]
    assert _post(client, two, "commit", seq_id="r1").json()["error"]["code"] == "no_lease"
    assert _call(client, two, "release", seq_id="r1") == {}


def test_errors_have_the_shape_that_openai_gives_them(
    client: httpx.Client, pair: list[ReplicaProcess]
) -> None:
    reply = _post(client, pair[0], "prep_recv", prompt={"token_ids": [1]}, end=2, seq_id="x")
    assert reply.status_code == 400
    assert reply.json()["error"].keys() == {"message", "type", "param", "code"}
    refused = _post(client, pair[0], "start_generate", prompt={"token_ids": [1]}, params={"n": 2})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_request")
    url = f"http://{pair[0].rest}/microserving/v1/lookup"
    assert client.post(url, content=b" " * (33 << 20)).status_code == 413
    assert client.get(url).status_code == 405


def test_only_routers_are_answered_and_those_that_were_revoked_no_more(
    client: httpx.Client, pair: list[ReplicaProcess]
) -> None:
    replica, ask = pair[0], {"prompt": {"token_ids": [1]}}
    _keep(replica, "another")
    assert _post(client, replica, "lookup", **ask).status_code == 401
    for header in ({}, {"authorization": "Bearer of-gateways"}):
        url = f"http://{replica.rest}/microserving/v1/lookup"
        assert httpx.post(url, json=ask, headers=header, trust_env=False).status_code == 401
    _keep(replica, _TOKEN)
    assert _post(client, replica, "lookup", **ask).status_code == 200


def test_the_shown_router_works_as_it_stands(pair: list[ReplicaProcess], tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", _DOCS.read_text(), re.DOTALL)
    program = tmp_path / "router.py"
    program.write_text(example)
    env = {**os.environ, "PREFILL": pair[0].rest, "DECODE": pair[1].rest, "TOKEN": _TOKEN}
    done = subprocess.run([sys.executable, program], env=env, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert b"moved 192 tokens" in done.stdout
    assert b"data: [DONE]" in done.stdout


def test_an_address_is_registered_and_tokens_that_are_too_old_open_nothing(
    client: httpx.Client, tmp_path: Path
) -> None:
    with (
        replica_agent() as agent,
        running_replica(tmp_path / "log", *_MOVING, agent=agent, env=_CALLERS) as replica,
    ):
        early = _post(client, replica, "lookup", prompt={"token_ids": [1]})
        assert (early.status_code, early.json()["error"]["code"]) == (503, "router_tokens_unknown")
        _keep(replica, _TOKEN, valid_ms=1)
        deadline = time.monotonic() + 10
        while _post(client, replica, "lookup", prompt={"token_ids": [1]}).status_code != 503:
            assert time.monotonic() < deadline


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ReplicaProcess]]:
    """Two replicas whose transfers take their time. The last test of each one ends it."""
    logs = tmp_path_factory.mktemp("slow")
    with (
        running_replica(logs / "one", *_MOVING, *_SLOW) as one,
        running_replica(logs / "two", *_MOVING, *_SLOW) as two,
    ):
        for replica in (one, two):
            _keep(replica, _TOKEN)
        yield [one, two]


def test_a_router_that_leaves_stops_its_transfer_and_the_lease_stands(
    client: httpx.Client, slow: list[ReplicaProcess]
) -> None:
    one, two = slow
    told = _leased(client, two, "r1")
    with inference_stub(one.address) as sender, inference_stub(two.address) as receiver:
        client.timeout = httpx.Timeout(0.5)
        with pytest.raises(httpx.ReadTimeout):
            _post(client, one, "remote_send", **told)
        client.timeout = httpx.Timeout(30)
        load_when(sender, lambda load: not load.transfers)
        load_when(receiver, lambda load: not load.transfers and load.leased_blocks > 0)
        _call(client, two, "release", seq_id="r1")
        load_when(receiver, lambda load: not load.leased_blocks)


def test_a_router_that_leaves_before_the_first_token_stops_its_answer(
    client: httpx.Client, slow: list[ReplicaProcess]
) -> None:
    ids = list(range(20_000))
    client.timeout = httpx.Timeout(0.5)
    with inference_stub(slow[0].address) as stub:
        with pytest.raises(httpx.ReadTimeout):
            _post(client, slow[0], "start_generate", prompt={"token_ids": ids})
        load_when(stub, lambda load: not load.calls and not load.running, within=5)


def test_a_receiver_that_is_killed_ends_its_transfer_at_once(
    client: httpx.Client, slow: list[ReplicaProcess]
) -> None:
    one, two = slow
    told = _leased(client, two, "r2")
    with concurrent.futures.ThreadPoolExecutor(1) as pool, inference_stub(one.address) as stub:
        sending = pool.submit(_post, client, one, "remote_send", **told)
        load_when(stub, lambda load: load.transfers == 1)
        two.signal(signal.SIGKILL)
        reply = sending.result(timeout=5)
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "transfer")
        load_when(stub, lambda load: not load.transfers)


def test_an_answer_that_runs_when_the_replica_is_stopped_comes_whole(
    client: httpx.Client, slow: list[ReplicaProcess]
) -> None:
    url = f"http://{slow[0].rest}/microserving/v1/start_generate"
    asked = {"prompt": {"token_ids": [1, 2]}, "params": {"max_tokens": 25}}
    with client.stream("POST", url, json=asked) as reply:
        parts = reply.iter_bytes()
        body = next(parts)
        slow[0].signal(signal.SIGTERM)
        body += b"".join(parts)
    assert sse_objects(body)[-1]["usage"]["completion_tokens"] == 25
    assert slow[0].ended(within=10).code == 0


def test_a_replica_that_moves_no_kv_says_so(tmp_path: Path) -> None:
    with (
        running_replica(tmp_path / "log", *_PLAIN) as replica,
        microserving_stub(replica.address) as stub,
        inference_stub(replica.address) as calls,
    ):
        with pytest.raises(grpc.RpcError) as refused:
            stub.Lookup(pb.LookupRequest(), timeout=10)
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
        text = calls.Metrics(inference_pb2.MetricsRequest(), timeout=10).text
        assert "microserving" not in text
        hint = inference_pb2.KvHint(seq_id="r/1", begin=64, moved_tokens=64)
        body = json.dumps({"prompt": words(), "max_tokens": 2}).encode()
        request = inference_pb2.CallRequest(
            method="POST", path="/v1/completions", body=body, kv=hint, request_id="r"
        )
        events = list(calls.Call(request, timeout=10))
        assert events[0].head.kv_moved_tokens == events[0].head.cached_tokens == 0
        assert events[-1].finished.usage.completion_tokens == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((*_PLAIN, "--microserving-rest"), "--microserving-rest needs --microserving"),
        (
            (
                "--engine",
                "canned",
                "--model",
                "m",
                "--engine-arg",
                "text=x",
                "--engine-arg",
                "max_model_len=99",
                "--microserving",
            ),
            "the engine canned moves no KV",
        ),
    ],
)
def test_a_replica_that_cannot_do_what_it_is_told_ends(
    tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    replica = ReplicaProcess(tmp_path / "log", *arguments)
    try:
        end = replica.ended(within=20)
    finally:
        replica.close()
    assert end.code == 72
    assert says in end.last_line
