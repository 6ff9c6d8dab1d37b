"""What /health/deep tells of the replicas' own work, and what it costs them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from penstock.v1 import inference_pb2 as v1
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import request


async def _checks(system: System) -> list[dict[str, Any]]:
    """What the page tells of `mini`'s replicas once all have answered."""
    async with asyncio.timeout(60):
        while True:
            page = json.loads((await system.ask_status("/health/deep")).body)
            (mini,) = page.get("deployments") or [{}]
            checks: list[dict[str, Any]] = mini.get("checks", [])
            if checks and all(check["ok"] is not None for check in checks):
                return checks


async def test_deep_health_tells_what_replicas_answered_and_asks_each_once_in_ten_seconds(
    system: System,
) -> None:
    replica = system.replicas[0]
    replica.health = v1.HealthReply(ok=True, state=v1.REPLICA_STATE_READY, latency_us=7_000)
    checks = await _checks(system)
    assert [(c["ok"], c["latency_ms"]) for c in checks] == [(True, 7)]
    for _ in range(20):
        await _checks(system)
    (check,) = replica.health_checks
    assert (check.depth, check.behind) == (v1.HEALTH_DEPTH_DEEP, True)
    assert replica.calls == []  # as no client's


async def test_deep_health_fails_where_no_replica_does_its_work(system: System) -> None:
    broken = v1.HealthReply(ok=False, state=v1.REPLICA_STATE_READY, detail="no tokens came")
    system.replicas[0].health = broken
    (check,) = await _checks(system)
    assert (check["ok"], check["detail"]) == (False, "no tokens came")
    page = await system.ask(request("GET", "/health/deep"))
    assert page.status == 503
    assert json.loads(page.body)["deployments"][0]["status"] == "unwell"
    assert (await system.ask(request("GET", "/readyz"))).status == 200
    assert (await system.ask(request("GET", "/ping"))).status == 200


async def test_deep_health_is_asked_with_the_replicas_own_token_and_while_the_head_is_dead(
    start: Start, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("cluster-secret")
    token.chmod(0o600)
    system = await start("--cluster-token-file", str(token))
    await system.control.die()
    (check,) = await _checks(system)
    assert check["ok"] is True
    assert set(system.replicas[0].authorizations) == {"Bearer cluster-secret"}
