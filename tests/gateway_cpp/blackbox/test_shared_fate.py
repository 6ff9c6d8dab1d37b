"""One request's bad luck, or malice, is nobody else's: what shares a session, an engine, a head."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

from penstock.v1 import common_pb2 as common
from penstock.v1 import routes_pb2 as routes
from penstock.v1 import suspects_pb2 as suspects
from tests.fakes.fake_control import TLS, FakeControl, deployment, route
from tests.fakes.fake_replica import DONE, FakeCall, Script, delta, hello, last_delta, refuse
from tests.fakes.gateway_process import GatewayProcess
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import RawClient, chat, request
from tests.gateway_cpp.blackbox.test_failures import in_stream_error

PATH = b"/v1/chat/completions"
# As tests/control/test_replica_tokens.py has it.
MINI_1 = "0cbb715634a4049ea7a779f19de814be85fb739681e5a8fc84c8becbc05bf13c"
REFUSED = "a route snapshot is refused; the routes in force stay"


async def engine_dies(call: FakeCall) -> None:
    await call.fail(
        common.ErrorDetail(
            status=503,
            type="server_error",
            code="engine_dead",
            message="the engine died: signal 9",
            fault=common.FAULT_UPSTREAM,
            retry=common.RETRY_NEVER,
        )
    )


def with_trace(value: bytes) -> bytes:
    """A streamed chat request with that traceparent, whatever bytes it is made of."""
    return chat("traceparent: HERE\r\n", stream=True).replace(b"HERE", value)


async def test_a_trace_that_is_none_breaks_no_other_stream_on_the_session(start: Start) -> None:
    go_on = asyncio.Event()

    async def in_two_parts(call: FakeCall) -> None:
        await call.send(delta("first"))
        await go_on.wait()
        await call.send(last_delta() + DONE, events=2)
        await call.finish()

    system = await start("--threads", "1", scripts=(in_two_parts,))
    async with system.client() as other:
        await other.send(chat(stream=True))
        await other.head()
        assert await other.chunk() == delta("first")
        go_on.set()
        for value in (b"\xff", b"\xc3\x28", b"00-" + b"\x80" * 52, b"z" * 200):
            answer = await system.ask(with_trace(value))
            assert answer.status == 200
            assert answer.body.endswith(DONE)
        assert await other.chunk() == last_delta() + DONE
        assert await other.chunk() == b""
    assert system.replicas[0].sessions == 1


async def test_a_request_under_which_two_engines_died_is_refused_until_it_is_released(
    start: Start,
) -> None:
    system = await start(scripts=(engine_dies, engine_dies, engine_dies))
    for _ in range(2):
        answer = await system.ask(chat())
        assert answer.status == 503
        assert answer.error["code"] == "engine_dead"
        assert answer.headers["x-should-retry"] == "true"
        assert 1 <= int(answer.headers["retry-after"]) <= 60
    refused = await system.ask(chat())
    assert refused.status == 400
    assert refused.error["code"] == "quarantined"
    assert refused.headers["x-should-retry"] == "false"
    body = request_body(chat())
    fingerprint = hashlib.sha256(b"\0" + PATH + b"\0" + body).digest()
    assert fingerprint.hex() in refused.error["message"]
    assert sum(len(replica.calls) for replica in system.replicas) == 2, "two engines at most"
    assert (await system.ask(chat(user="somebody else"))).status == 503, "another one may try"

    report = await until(lambda: reported(system, fingerprint, 2), "the head hears of both deaths")
    shown = [suspects.Suspect(fingerprint=fingerprint, until_ms=4_000_000_000_000)]
    shown[0].deaths.extend(report.deaths)
    await publish(system, suspects=shown)
    assert (await system.ask(chat())).status == 400
    await publish(system, suspects=[])
    assert (await system.ask(chat())).status == 503, "released: an engine may die of it again"


async def publish(system: System, *, suspects: list[suspects.Suspect]) -> None:
    """The same routes with these suspects."""
    version = await system.control.publish(
        [deployment()], [route(r) for r in system.replicas], suspects=suspects
    )
    await system.has_routes(version)


def request_body(data: bytes) -> bytes:
    """What follows a request's head."""
    return data.split(b"\r\n\r\n", 1)[1]


def reported(system: System, fingerprint: bytes, deaths: int) -> suspects.Suspect | None:
    """A suspect as the gateway reported it, with that many deaths."""
    for report in reversed(system.control.reports):
        for suspect in report.suspects:
            if suspect.fingerprint == fingerprint and len(suspect.deaths) == deaths:
                return suspect
    return None


def killed(code: str) -> Script:
    """The engine ends with the call aboard; the replica says how."""
    return refuse(503, code, retry=False)


async def test_a_request_that_is_answered_between_kills_is_never_refused(start: Start) -> None:
    scripts = (killed("engine_killed"), hello)
    system = await start(scripts=scripts)
    body = request_body(chat())
    fingerprint = hashlib.sha256(b"\0" + PATH + b"\0" + body).digest()
    for _ in range(4):
        answers = [(await system.ask(chat())).status for _ in range(4)]
        assert 400 not in answers
    assert await until(lambda: told_answered(system, fingerprint), "the head hears of the answer")


def told_answered(system: System, fingerprint: bytes) -> bool:
    """Whether the gateway has told the head that the request was answered."""
    return any(
        suspect.fingerprint == fingerprint and suspect.answered_ms > 0 and not suspect.deaths
        for report in system.control.reports
        for suspect in report.suspects
    )


async def test_an_answer_at_another_gateway_clears_here(system: System) -> None:
    suspect = suspects.Suspect(
        fingerprint=hashlib.sha256(b"\0" + PATH + b"\0" + request_body(chat())).digest(),
        deaths=[suspects.EngineDeath(replica_id=i, at_ms=1_000) for i in ("a", "b")],
        until_ms=4_000_000_000_000,
    )
    await publish(system, suspects=[suspect])
    assert (await system.ask(chat())).error["code"] == "quarantined"
    suspect.answered_ms = 2_000
    await publish(system, suspects=[suspect])
    assert (await system.ask(chat())).status == 200


async def test_kills_and_shared_crashes_alone_refuse_nothing(system: System) -> None:
    def dead(replica: str, **how: Any) -> suspects.EngineDeath:
        return suspects.EngineDeath(replica_id=replica, at_ms=1_000, **how)

    stands = {
        "killed thrice": ([dead(i, end=suspects.ENGINE_END_KILLED) for i in "abc"], 200),
        "killed four times": ([dead(i, end=suspects.ENGINE_END_KILLED) for i in "abcd"], 400),
        "beside another suspect": ([dead("a"), dead("b", shared=True)], 200),
        "alone": ([dead("a"), dead("b")], 400),
    }
    for name, (deaths, status) in stands.items():
        body = request_body(chat(user=name))
        suspect = suspects.Suspect(
            fingerprint=hashlib.sha256(b"\0" + PATH + b"\0" + body).digest(),
            deaths=deaths,
            until_ms=4_000_000_000_000,
        )
        await publish(system, suspects=[suspect])
        assert (await system.ask(chat(user=name))).status == status, name


async def test_another_gateways_quarantine_holds_here(system: System) -> None:
    body = request_body(chat())
    suspect = suspects.Suspect(
        fingerprint=hashlib.sha256(b"\0" + PATH + b"\0" + body).digest(),
        deaths=[suspects.EngineDeath(replica_id="a"), suspects.EngineDeath(replica_id="b")],
        until_ms=4_000_000_000_000,
    )
    await publish(system, suspects=[suspect])
    assert (await system.ask(chat())).error["code"] == "quarantined"
    assert (await system.ask(chat(user="somebody else"))).status == 200
    assert len(system.replicas[0].calls) == 1


async def test_a_snapshot_of_another_store_changes_nothing(system: System) -> None:
    ours = common.ClusterStamp(cluster_id="ours", epoch=1, revision=5)
    here = [route(r) for r in system.replicas]
    await system.has_routes(await system.control.publish([deployment()], here, stamp=ours))
    for other in (
        common.ClusterStamp(cluster_id="theirs", epoch=9, revision=99),
        common.ClusterStamp(cluster_id="ours", epoch=1, revision=4),
        common.ClusterStamp(cluster_id="ours", epoch=0, revision=99),
    ):
        await system.control.publish([], [], stamp=other)
        if other.cluster_id == "theirs":
            await until(lambda: system.gateway.count_log(REFUSED), "the refusal is told")
        assert (await system.ask(chat())).status == 200
    taken_over = common.ClusterStamp(cluster_id="ours", epoch=2, revision=1)
    await system.has_routes(await system.control.publish([], [], stamp=taken_over))
    assert (await system.ask(chat())).status == 404
    assert system.gateway.count_log(REFUSED) == 1


async def test_nothing_is_sent_to_a_replica_of_a_namesake(system: System) -> None:
    mini = deployment()
    mini.uid = "new"
    old = route(system.replicas[0])
    old.deployment_uid = "old"
    await system.has_routes(await system.control.publish([mini], [old]))
    assert (await system.ask(chat())).status == 503
    assert not system.replicas[0].calls


async def test_every_call_proves_that_it_is_of_the_cluster(start: Start, tmp_path: Path) -> None:
    token = tmp_path / "cluster.token"
    token.write_text("5ecre7\n")
    token.chmod(0o600)
    system = await start("--cluster-token-file", str(token))
    assert (await system.ask(chat())).status == 200
    replica, control = system.replicas[0], system.control
    await until(lambda: replica.authorizations, "the replica has a session")
    await until(lambda: control.reports, "the head has a watch and a report")
    assert set(replica.authorizations) == {"Bearer 5ecre7"}
    assert set(control.authorizations) == {"Bearer 5ecre7"}
    assert "5ecre7" not in str(system.gateway.logs())


async def test_a_replica_with_a_token_of_its_own_never_sees_the_clusters(
    start: Start, tmp_path: Path
) -> None:
    token = tmp_path / "cluster.token"
    token.write_text("5ecre7\n")
    token.chmod(0o600)
    system = await start("--cluster-token-file", str(token))
    replica = system.replicas[0]
    here = route(replica)
    here.own_token = True
    here.id = "mini-1"
    await system.has_routes(await system.control.publish([deployment()], [here]))
    replica.authorizations.clear()
    assert (await system.ask(chat())).status == 200
    await until(lambda: replica.authorizations, "it is shown a token")
    assert set(replica.authorizations) == {f"Bearer {MINI_1}"}
    assert MINI_1 not in str(system.gateway.logs())


async def test_a_head_behind_tls_is_followed_by_its_certificate(tmp_path: Path) -> None:
    async with FakeControl(tls=True) as control:
        version = await control.publish([deployment()], [])
        flags = ("--control", control.address, "--id", "gw-1", "--data-dir", str(tmp_path))
        async with GatewayProcess(tmp_path, *flags, "--tls-ca", str(TLS / "ca.pem")) as gateway:
            await gateway.start()
            await until(
                lambda: gateway.find_log("routes replaced", version=version), "routes have come"
            )


async def test_a_report_tells_whose_routes_are_in_force_and_what_moves(system: System) -> None:
    stamp = common.ClusterStamp(cluster_id="ours", epoch=3, revision=7)
    here = [route(r) for r in system.replicas]
    await system.has_routes(await system.control.publish([deployment()], here, stamp=stamp))
    answer = await system.ask(chat())

    def told() -> bool:
        last = system.control.reports[-1]
        return last.stamp == stamp and last.bytes_sent == len(answer.body)

    await until(lambda: system.control.reports and told(), "the report says so")
    last = system.control.reports[-1]
    assert last.pid == system.gateway.pid
    assert not last.draining


async def test_a_stream_whose_engine_falls_silent_ends_with_an_error(start: Start) -> None:
    async def falls_silent(call: FakeCall) -> None:
        await call.send(delta("first"))
        await call.cancelled.wait()

    system = await start("--silence-ms", "300", scripts=(falls_silent,))
    answer = await system.ask(chat(stream=True))
    assert answer.body.startswith(delta("first"))
    assert in_stream_error(answer.body)["code"] == "deadline_exceeded"
    call = system.replicas[0].calls[0]
    await until(call.cancelled.is_set, "the call is cancelled")


async def test_a_replica_is_free_when_its_call_has_ended_not_when_the_client_has_read(
    start: Start,
) -> None:
    large = b"data: " + b"x" * 1_000_000 + b"\n\n"
    events = 20  # more than the kernel keeps for a client that does not read

    async def much(call: FakeCall) -> None:
        if call.streamed:
            for _ in range(events):
                await call.send(large)
            await call.send(DONE)
        else:
            await call.send(b"{}")
        await call.finish()

    limited = deployment(limits=routes.Limits(max_ongoing=1))
    credit = ("--stream-credit-bytes", str(64 << 20))
    system = await start(*credit, scripts=(much,), deployment=limited)
    async with RawClient(system.gateway.port, receive_buffer=4096) as slow:
        await slow.send(chat(stream=True))
        assert (await slow.head())[0] == 200
        calls = system.replicas[0].calls
        await until(lambda: calls[0].sent_bytes > events * len(large), "all of it is sent")
        async with asyncio.timeout(20):  # the call's end may still be on its way
            while (await system.ask(chat())).status == 429:
                await asyncio.sleep(0)


async def test_a_dead_end_is_not_told_as_passing(system: System) -> None:
    for availability, words in (
        (routes.AVAILABILITY_SCALED_TO_ZERO, "scaled to 0"),
        (routes.AVAILABILITY_FAILED, "no such weights"),
    ):
        mini = deployment()
        mini.availability = availability
        mini.availability_detail = "no such weights"
        await system.has_routes(await system.control.publish([mini], []))
        answer = await system.ask(chat())
        assert answer.status == 503
        assert words in answer.error["message"]
        assert answer.headers["x-should-retry"] == "false"
        assert "retry-after" not in answer.headers
        listed = await system.ask(request("GET", "/v1/models"))
        assert b'"mini"' not in listed.body


async def test_a_replica_that_fails_fast_does_not_draw_all_traffic(start: Start) -> None:
    system = await start("--threads", "1", scripts=(refuse(500, "engine_error", retry=True), hello))
    for _ in range(60):
        assert (await system.ask(chat())).status == 200
    # Half of them without ejection; it is tried again now and then.
    assert len(system.replicas[0].calls) <= 15
