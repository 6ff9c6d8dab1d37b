"""What the gateway tells of itself, under the names that Kubernetes and users of vLLM know."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from tests.fakes.gateway_process import GatewayProcess
from tests.gateway_cpp.blackbox.conftest import System
from tests.gateway_cpp.blackbox.raw_http import RawClient, request

GET = "GET, HEAD, OPTIONS"
GET_PATHS = ["/v1/models", "/v1/models/mini", "/livez", "/readyz", "/ready", "/startupz"]
GET_PATHS += ["/health", "/health/deep", "/version"]


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/health"), ("GET", "/ping"), ("POST", "/ping")]
)
async def test_health_is_an_empty_200_as_vllm_has_it(
    system: System, method: str, path: str
) -> None:
    answer = await system.ask(request(method, path))
    assert answer.status == 200
    assert answer.body == b""
    assert "content-type" not in answer.headers


async def test_health_fails_with_the_reason_while_nobody_can_answer(tmp_path: Path) -> None:
    async with GatewayProcess(tmp_path, "--control", "127.0.0.1:1") as gateway:
        await gateway.start()
        async with RawClient(gateway.port) as client:
            for path in ("/health", "/ready", "/readyz", "/startupz"):
                answer = await client.ask(request("GET", path))
                assert answer.status == 503
                assert json.loads(answer.body)["reason"] == "no_snapshot"
            for path in ("/livez", "/ping"):
                assert (await client.ask(request("GET", path))).status == 200


async def test_readiness_fails_when_the_routes_are_empty(system: System) -> None:
    assert (await system.ask(request("GET", "/health"))).status == 200
    version = await system.control.publish([], [])
    await system.has_routes(version)
    empty = await system.ask(request("GET", "/readyz"))
    assert (empty.status, json.loads(empty.body)["reason"]) == (503, "no_route")
    assert (await system.ask(request("GET", "/startupz"))).status == 200


async def test_readiness_fails_when_the_routes_name_only_replicas_that_are_gone(
    system: System,
) -> None:
    await system.replicas[0].die()

    async def reason() -> object:
        return json.loads((await system.ask(request("GET", "/readyz"))).body).get("reason")

    async with asyncio.timeout(20):
        while await reason() != "no_replica":
            continue
    assert (await system.ask(request("GET", "/health"))).status == 503


async def test_deep_health_counts_the_replicas_of_every_deployment(system: System) -> None:
    well = await system.ask(request("GET", "/health/deep"))
    assert well.status == 200
    (mini,) = json.loads(well.body)["deployments"]
    count = len(system.replicas)
    checks = mini.pop("checks")
    assert mini == {"id": "mini", "status": "serving", "replicas": count, "serving": count}
    assert [check["replica"] for check in checks] == [r.replica_id for r in system.replicas]


async def test_deep_health_fails_with_the_deployment_that_has_no_replica(system: System) -> None:
    await system.replicas[0].die()

    async def told() -> tuple[int, str]:
        answer = await system.ask(request("GET", "/health/deep"))
        (mini,) = json.loads(answer.body).get("deployments", [{"status": "not even ready"}])
        return answer.status, mini["status"]

    async with asyncio.timeout(20):
        while await told() == (200, "serving"):
            continue
    assert (await told())[0] == 503


async def test_the_version_is_the_gateways(system: System) -> None:
    answer = await system.ask(request("GET", "/version"))
    told = json.loads(answer.body)
    assert told.keys() == {"version"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", told["version"])


async def test_the_status_port_has_them_too(system: System) -> None:
    for path in (*GET_PATHS[2:], "/ping"):
        assert (await system.ask_status(path)).status == 200
    assert (await system.ask_status("/v1/models")).status == 404


@pytest.mark.parametrize("path", GET_PATHS)
async def test_head_is_answered_wherever_get_is(system: System, path: str) -> None:
    async with system.client() as client:
        get = await client.ask(request("GET", path))
        head = await client.ask(request("HEAD", path), "HEAD")
        assert (head.status, head.body) == (200, b"")
        assert head.headers["content-length"] == get.headers["content-length"]


@pytest.mark.parametrize(
    ("path", "allow"),
    [(path, GET) for path in GET_PATHS]
    + [
        ("/v1/chat/completions", "POST, OPTIONS"),
        ("/ping", "GET, HEAD, POST, OPTIONS"),
        ("*", "GET, HEAD, POST, OPTIONS"),
    ],
)
async def test_options_says_what_a_path_takes(system: System, path: str, allow: str) -> None:
    answer = await system.ask(request("OPTIONS", path), "OPTIONS")
    assert answer.status == 204
    assert answer.headers["allow"] == allow
    assert "access-control-allow-methods" not in answer.headers
    if path != "*":
        wrong = await system.ask(request("PATCH", path))
        assert (wrong.status, wrong.headers["allow"]) == (405, allow)
        assert allow in wrong.error["message"]


@pytest.mark.parametrize("path", ["/nothing", "/metrics", "/v1"])
async def test_options_of_a_path_that_nobody_has_is_404(system: System, path: str) -> None:
    answer = await system.ask(request("OPTIONS", path))
    assert answer.status == 404
    assert answer.error["code"] == "not_found"
