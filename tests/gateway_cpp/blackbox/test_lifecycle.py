"""Start, readiness, metrics, life without the head, drain, end."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from penstock.v1 import inference_pb2 as inference
from tests.fakes.fake_control import FakeControl, deployment, route
from tests.fakes.fake_replica import FakeReplica
from tests.fakes.gateway_process import GatewayProcess, binary
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import RawClient, Response, chat, request


def run(*flags: str) -> subprocess.CompletedProcess[str]:
    """The binary, run to its end."""
    return subprocess.run([binary(), *flags], capture_output=True, text=True, timeout=20)


def test_help_names_every_flag_and_version_the_version() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "--control" in done.stdout
    assert "--body-limit-bytes" in done.stdout
    assert run("--version").stdout == "penstock-gateway 0.1.0\n"


def test_a_wrong_flag_is_one_line_and_exit_code_2() -> None:
    for flags, named in (
        (("--threads", "none"), "--threads"),
        (("--nonsense", "1"), "--nonsense"),
        (("--listen", "8080"), "--listen"),
        ((), "--control"),
    ):
        done = run(*flags)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("penstock-gateway: error: ")
        assert named in done.stderr


def test_a_cluster_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "cluster.token"
    token.write_text("5ecre7\n")
    token.chmod(0o640)
    done = run("--cluster-token-file", str(token), "--control", "127.0.0.1:1")
    assert done.returncode == 2
    assert f"--cluster-token-file: '{token}' is not private: it has mode 0640" in done.stderr
    assert f"`chmod 600 {token}`" in done.stderr
    assert "5ecre7" not in done.stderr


def test_a_taken_port_is_one_line_and_exit_code_3() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run("--listen", address, "--control", "127.0.0.1:1")
    assert done.returncode == 3
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("penstock-gateway: error: ")
    assert address in last


async def test_a_second_gateway_may_not_take_the_first_ones_port(system: System) -> None:
    address = f"127.0.0.1:{system.gateway.port}"
    done = await asyncio.to_thread(run, "--listen", address, "--control", "127.0.0.1:1")
    assert done.returncode == 3


def readyz(answer: Response) -> dict[str, object]:
    """What /readyz says."""
    parsed: dict[str, object] = json.loads(answer.body)
    return parsed


async def test_readyz_says_where_the_routes_are_from(system: System) -> None:
    for path in ("/readyz", "/ready"):
        answer = await system.ask(request("GET", path))
        assert answer.status == 200
        told = readyz(answer)
        assert told["status"] == "ready"
        assert told["snapshot_source"] == "control"
        assert told["control_connected"] is True
        assert told["snapshot_version"] == 1


async def test_readyz_fails_without_a_snapshot(tmp_path: Path) -> None:
    async with GatewayProcess(tmp_path, "--control", "127.0.0.1:1") as gateway:
        await gateway.start()
        async with RawClient(gateway.port) as client:
            answer = await client.ask(request("GET", "/readyz"))
            assert answer.status == 503
            assert readyz(answer)["reason"] == "no_snapshot"
            assert (await client.ask(request("GET", "/livez"))).status == 200
            refused = await client.ask(chat())
            assert refused.status == 503
            assert refused.error["code"] == "no_routes"
            assert refused.headers["retry-after"] == "1"
            models = await client.ask(request("GET", "/v1/models"))
            assert json.loads(models.body)["data"] == []


async def test_readyz_fails_without_a_ready_replica(system: System) -> None:
    await system.publish(route(system.replicas[0], state=inference.REPLICA_STATE_STARTING))
    answer = await system.ask(request("GET", "/readyz"))
    assert answer.status == 503
    assert readyz(answer)["reason"] == "no_replica"


async def test_metrics_are_prometheus_text_and_count(start: Start) -> None:
    system = await start("--threads", "1")
    assert (await system.ask(chat(stream=True))).status == 200
    assert (await system.ask(chat(model="maxi"))).status == 404
    assert (await system.ask(b"GARBAGE\r\n\r\n")).status == 400
    answer = await system.ask_status("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }
    name = "penstock_gateway_requests_total"
    mini = ("deployment", "mini")
    assert samples[name, ("code", "200"), mini, ("outcome", "succeeded")] == 1
    unknown = ("deployment", "unknown")
    assert samples[name, ("code", "404"), unknown, ("outcome", "invalid")] == 1
    assert samples["penstock_gateway_events_total", mini] == 4
    assert samples["penstock_gateway_in_flight", mini] == 0
    labels = {"gen_ai_operation_name": "chat", "gen_ai_provider_name": "penstock"}
    labels |= {"deployment": "mini", "gen_ai_request_model": "mini", "outcome": "succeeded"}
    ttft = "gen_ai_server_time_to_first_token_seconds_count"
    assert samples[ttft, *sorted(labels.items())] == 1
    assert samples["penstock_gateway_bad_requests_total",] == 1
    assert samples["penstock_gateway_snapshot_version",] == 1
    assert samples["penstock_gateway_build_info", ("version", "0.1.0")] == 1
    assert samples["penstock_gateway_sessions",] >= 1


async def test_the_head_hears_of_each_deployment(system: System) -> None:
    await system.ask(chat())
    reports = system.control.reports

    def heard() -> bool:
        return bool(reports and reports[-1].deployments and reports[-1].deployments[0].requests)

    await until(heard, "a report with the request")
    report = reports[-1]
    assert report.gateway_id == "gw-1"
    assert report.snapshot_version == 1
    assert report.deployments[0].deployment == "mini"
    assert report.deployments[0].requests == 1
    assert report.deployments[0].succeeded == 1
    assert report.deployments[0].completion_tokens == 2


async def test_without_the_head_it_serves_on(system: System) -> None:
    await system.control.die()
    lost = "the control plane is away; the last routes stay in force"
    await until(lambda: system.gateway.find_log(lost), "it notices")
    for _ in range(5):
        assert (await system.ask(chat(stream=True))).status == 200
    answer = await system.ask(request("GET", "/readyz"))
    assert answer.status == 200
    assert readyz(answer)["control_connected"] is False
    await system.control.start_again()
    await system.publish(route(system.replicas[0]))
    assert (await system.ask(chat())).status == 200


async def test_a_restart_without_the_head_serves_from_the_kept_snapshot(
    system: System, tmp_path: Path
) -> None:
    await until((tmp_path / "snapshot-gw-1.pb").exists, "the snapshot is kept")
    await system.control.die()
    system.gateway.kill()
    await system.gateway.start()
    assert (await system.ask(chat())).status == 200
    told = readyz(await system.ask(request("GET", "/readyz")))
    assert told["snapshot_source"] == "disk"
    assert told["control_connected"] is False


async def test_a_corrupt_kept_snapshot_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "snapshot-gw-1.pb").write_bytes(b"\xff\x00 not a snapshot")
    async with FakeControl() as control, FakeReplica() as replica:
        flags = ("--control", control.address, "--id", "gw-1", "--data-dir", str(tmp_path))
        async with GatewayProcess(tmp_path, *flags) as gateway:
            await gateway.start()
            assert any("cannot be read" in line["message"] for line in gateway.logs())
            await control.publish([deployment()], [route(replica)])
            await until(lambda: gateway.find_log("routes replaced", version=1), "routes come")
            async with RawClient(gateway.port) as client:
                assert (await client.ask(chat())).status == 200


async def test_every_log_line_is_json_and_has_its_time_and_level(system: System) -> None:
    await system.ask(chat(user='with "quotes"\n', headers='X-Request-Id: "odd" id\r\n'))
    await until(lambda: system.gateway.find_log("request settled"), "it is told")
    for line in system.gateway.logs():
        assert line["level"] in ("debug", "info", "warning", "error")
        assert line["time"].endswith("Z")
