"""A provider's replica as a process: how soon it is there, what it survives, what it never says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.v1 import inference_pb2
from tests.fakes import bedrock_server, openai_server
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replica_process import (
    ReplicaProcess,
    answer_of,
    chat_request,
    inference_stub,
    load_when,
    running_replica,
    session,
    sse_objects,
)

pytestmark = pytest.mark.processes

_PROMPT = "a-prompt-that-nobody-logs"
_TOKEN = "session-token-f00ba4"


@pytest.fixture(params=["openai", "bedrock"])
def started(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[ProviderServer, ReplicaProcess]]:
    """The provider's server, and a replica in front of it that logs all that it may."""
    with _provider(request.param, tmp_path, monkeypatch) as (server, arguments):
        words = ("--engine", request.param, *arguments, "--log-level", "debug")
        more = (
            *("--engine-arg", "retries=0", "--engine-arg", "engine_hung_after=0.5"),
            *("--probe-every", "0.1"),
        )
        with running_replica(tmp_path / "log", *words, *more) as replica:
            yield server, replica


@contextmanager
def _provider(
    engine: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[ProviderServer, tuple[str, ...]]]:
    if engine == "openai":
        monkeypatch.setenv("TEAM_API_KEY", openai_server.KEY)
        (folder / "headers").write_text(f"x-token: {_TOKEN}\n")
        with ProviderServer(openai_server.usual(key=openai_server.KEY)) as server:
            where = (f"base_url={server.url}", "api_key_env=TEAM_API_KEY", "headers_file=headers")
            flags = ("--secrets-dir", str(folder))
            yield server, _words(openai_server.MODEL, *where, flags=flags)
    else:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", bedrock_server.KEY_ID)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", bedrock_server.SECRET)
        monkeypatch.setenv("AWS_SESSION_TOKEN", _TOKEN)
        with ProviderServer(bedrock_server.usual()) as server:
            settings = (f"endpoint_url={server.url}", f"region={bedrock_server.REGION}")
            yield server, _words(bedrock_server.MODEL, *settings)


def _words(model: str, *settings: str, flags: tuple[str, ...] = ()) -> tuple[str, ...]:
    words = [word for setting in settings for word in ("--engine-arg", setting)]
    return ("--model", model, *words, *flags)


def _deep(stub: Any) -> inference_pb2.HealthReply:
    request = inference_pb2.HealthRequest(depth=inference_pb2.HEALTH_DEPTH_DEEP)
    reply: inference_pb2.HealthReply = stub.Health(request, timeout=20)
    return reply


def test_no_secret_and_no_prompt_is_ever_logged_or_told(
    started: tuple[ProviderServer, ReplicaProcess],
) -> None:
    server, replica = started
    secrets = (openai_server.KEY, bedrock_server.SECRET, bedrock_server.KEY_ID, _TOKEN)
    said = b""
    with inference_stub(replica.address) as stub:
        for scenario in (
            None,
            openai_server.refuse(401, f"Bad {' '.join(secrets)}"),
            openai_server.refuse(400, f"Bad {openai_server.KEY} Bearer {_TOKEN}"),
            bedrock_server.refuse(403, "UnrecognizedClientException", " ".join(secrets[1:])),
            openai_server.broken,
            openai_server.raw_stream(b"data: {nonsense\n\n"),
        ):
            if scenario is not None:
                server.next.append(scenario)
            for event in stub.Call(chat_request(_PROMPT, stream=True, max_tokens=2), timeout=20):
                said += event.SerializeToString()
    log = replica.log()
    assert log
    assert _PROMPT not in log
    sent = [value for asked in server.asked for value in asked.headers.values()]
    assert any(secret in value for secret in secrets for value in sent)
    for secret in secrets:
        assert secret not in log
        assert secret.encode() not in said


def test_a_provider_that_is_gone_ends_nothing_here_and_is_used_again(
    started: tuple[ProviderServer, ReplicaProcess],
) -> None:
    server, replica = started
    with inference_stub(replica.address) as stub:
        assert _deep(stub).ok
        before = len(server.asked)
        assert before == 0, "nothing is asked that costs money"
        server.go_away()
        reply = _deep(stub)
        assert not reply.ok
        assert "takes no connection" in reply.detail
        (event,) = stub.Call(chat_request("Hello"), timeout=20)
        assert event.failed.error.status == 502
        load = load_when(stub, lambda load: load.running == 0)
        assert load.state == inference_pb2.REPLICA_STATE_READY
        server.come_back()
        assert _deep(stub).ok
        events = list(stub.Call(chat_request("Hello", stream=True, max_tokens=2), timeout=20))
        assert len(sse_objects(answer_of(events))) == 4
    assert replica.process.poll() is None


def test_a_hundred_calls_of_one_session_run_at_once(
    started: tuple[ProviderServer, ReplicaProcess],
) -> None:
    _, replica = started
    with inference_stub(replica.address) as stub, session(stub) as client:
        requests = [chat_request(f"{i}", f"r{i}", stream=True, max_tokens=20) for i in range(100)]
        client.start(*requests)
        client.read_until_ended(*range(1, 101))
        for call_id in range(1, 101):
            assert client.events[call_id][-1].HasField("finished")
            assert client.body(call_id).endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("engine", ["openai", "bedrock"])
def test_it_is_ready_for_less_than_two_seconds_of_work(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        _provider(engine, tmp_path, monkeypatch) as (_, arguments),
        running_replica(tmp_path / "log", "--engine", engine, *arguments) as replica,
    ):
        used = psutil.Process(replica.process.pid).cpu_times()
    assert used.user + used.system < 2, "of CPU: how long that takes says the machine"


def test_it_is_ready_once_the_provider_takes_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _provider("openai", tmp_path, monkeypatch) as (server, arguments):
        server.go_away()
        replica = ReplicaProcess(tmp_path / "log", "--engine", "openai", *arguments)
        try:
            while "not there yet" not in replica.log():
                assert replica.process.poll() is None
                time.sleep(0.02)
            server.come_back()
            replica.await_ready(20)
        finally:
            replica.close()
