"""`penstock monitoring config`, against a real admin API and Prometheus's own word."""

from __future__ import annotations

import asyncio
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import yaml

from penstock.control.cli.observe.monitoring import RULES, prometheus_config
from penstock.control.state.cluster import ClusterView, Gateway, GatewayReport, GatewayState
from penstock.control.state.fleet.replica import NodeState
from tests.control.cli.conftest import AskedHead
from tests.fakes.control_values import node
from tests.fakes.promtool import PROMTOOL

ROOT = Path(__file__).resolve().parents[4]


def complaints(config: str, folder: Path) -> str:
    """What promtool finds wrong with a configuration, its rules included; empty: nothing."""
    file = folder / "prometheus.yml"
    file.write_text(config)
    command = [PROMTOOL, "check", "config", str(file)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return "" if found.returncode == 0 else found.stdout + found.stderr


def test_it_has_prometheus_ask_the_head_with_the_rules_of_the_checkout(
    asked_head: AskedHead, tmp_path: Path
) -> None:
    token = tmp_path / "a token"
    token.write_text("pst_x")
    shown = asked_head.run("monitoring", "config", "--token-file", str(token))
    assert shown.exit_code == 0, shown.stderr
    assert complaints(shown.stdout, tmp_path) == ""
    said = yaml.safe_load(shown.stdout)
    assert said["rule_files"] == [str(ROOT / RULES / "*.yml")]
    (job,) = said["scrape_configs"]
    (source,) = job["http_sd_configs"]
    assert source["url"] == f"http://{asked_head.address}/admin/v1/scrape-targets"
    # Where its type is left out, Prometheus 2.42 shows the bare token.
    assert source["authorization"] == {"type": "Bearer", "credentials_file": str(token)}


def test_a_head_with_tls_and_rules_elsewhere_are_named(tmp_path: Path) -> None:
    for file in ("ca.pem", "token"):
        (tmp_path / file).touch()
    url, rules = "https://head.example:8081/", tmp_path / "rules"
    text = prometheus_config(url, tmp_path / "token", rules, tmp_path / "ca.pem")
    said = yaml.safe_load(text)
    assert said["rule_files"] == [str(rules / "*.yml")]
    (source,) = said["scrape_configs"][0]["http_sd_configs"]
    assert source["url"] == "https://head.example:8081/admin/v1/scrape-targets"
    assert source["tls_config"] == {"ca_file": str(tmp_path / "ca.pem")}
    bare = prometheus_config(url, tmp_path / "token", None, None)
    assert yaml.safe_load(bare)["rule_files"] == []


def test_who_is_not_watched_is_named_with_the_option_that_changes_it(asked_head: AskedHead) -> None:
    report = GatewayReport(
        datetime.now(UTC), 1, metrics_address="127.0.0.1:8083", machine="10.0.0.7"
    )

    def known(view: ClusterView) -> ClusterView:
        view = view.with_node(node("n1")).with_node(node("n2", NodeState.LOST))
        view = view.with_gateway(Gateway("gw-8", GatewayState.STOPPED))
        return view.with_gateway(Gateway("gw-9", GatewayState.REMOTE, report=report))

    asyncio.run(asked_head.admin.cluster.observe(known, "test"))
    told = asked_head.run("monitoring", "config").stderr.splitlines()
    assert [line.partition(":")[0] for line in told] == [
        "the head is not watched",
        "gateway gw-9 is not watched",
        "node n1 is not watched",
    ]
    assert "--head-metrics host:port" in told[0]
    assert " --metrics host:port" in told[1]
    assert "--node-metrics host:port" in told[2]
