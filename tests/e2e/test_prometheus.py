"""A Prometheus that watches a whole system by what `penstock monitoring config` writes: it finds
everybody, each panel of each dashboard has data, and each fault is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.monitoring.boards import BOARDS
from tests.e2e.faults import FAULTS, Watched, all_at_once, in_calm, sampled, watched
from tests.e2e.prometheus import AS_SHIPPED, Prometheus, watching
from tests.e2e.system import System, eventually
from tests.monitoring.shipped import asked_of_all


@pytest.fixture(scope="module")
def everything(folder: Path) -> Iterator[Watched]:
    """A system with something in each panel, and two gateways."""
    with watched(folder) as everything:
        yield everything


@pytest.fixture(scope="module")
def system(everything: Watched) -> System:
    return everything.system


@pytest.fixture(scope="module")
def scraping(system: System, folder: Path) -> Iterator[Prometheus]:
    with watching(folder, f"http://127.0.0.1:{system.admin_port}", system.data) as scraping:
        yield scraping


def all_up(scraping: Prometheus) -> list[Any]:
    """The four targets, once each has been scraped."""

    def there() -> list[Any] | None:
        found: list[Any] = scraping.get("targets")["activeTargets"]
        down = {it["scrapeUrl"]: it["lastError"] for it in found if it["health"] != "up"}
        if down or len(found) != 4:
            raise ValueError(down or found)
        return found

    return eventually(there, within=60, what="all targets are up")


def test_everybody_is_found_and_up(system: System, scraping: Prometheus) -> None:
    labels = [it["labels"] for it in all_up(scraping)]
    jobs = Counter(it["job"] for it in labels)
    assert jobs == {"penstock-head": 1, "penstock-gateway": 2, "penstock-node": 1}
    names = {it["id"] for it in system.admin("gateways")}
    assert {it["gateway"] for it in labels if "gateway" in it} == names
    nodes = {it["id"] for it in system.admin("nodes")}
    assert {it["node"] for it in labels if "node" in it} == nodes


def test_a_request_is_counted_where_prometheus_looks(
    everything: Watched, scraping: Prometheus
) -> None:
    """By the gateway, with its trace beside it, by the head, and by the replica that answered."""
    of_one = 'deployment="once"'
    body = {"model": "once", "messages": [{"role": "user", "content": "Hello"}]}
    system, trace = everything.system, "ab" * 16
    headers = {"authorization": f"Bearer {everything.keys['acme']}", **sampled(trace)}
    answer = httpx.post(f"{system.base_url}/chat/completions", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    at_head = f'penstock_head_deployment_requests_total{{job="penstock-head",{of_one}}}'
    tokens = f'sum(penstock_replica_completion_tokens_total{{job="penstock-node",{of_one}}})'
    requests = f'penstock_gateway_requests_total{{{of_one},outcome="succeeded",code="200"}}'
    scraping.comes_to(at_head, 1)
    scraping.comes_to(tokens, 8)
    labels = scraping.comes_to(requests, 1)
    assert labels["job"] == "penstock-gateway"
    assert labels["instance"] == f"127.0.0.1:{system.metrics_port}"
    in_all = f"gen_ai_server_request_duration_seconds_bucket{{{of_one}}}"
    assert scraping.traces(in_all) == {trace}


def test_what_replicas_do_is_labelled_by_replica_and_deployment(
    system: System, scraping: Prometheus
) -> None:
    replicas = {it["id"] for it in system.replicas() if it["deployment"] == "sim"}
    assert len(replicas) == 2
    for metric in ("penstock_node_replica_metrics_up", "penstock_replica_calls"):

        def of_both(query: str = f'{metric}{{deployment="sim"}}') -> bool:
            return scraping.labels(query, "replica") == replicas

        eventually(of_both, within=30, what=f"both replicas in {metric}")
    scraping.comes_to('penstock_head_deployment_replicas_ready{deployment="sim"}', 2)


def test_drops_of_each_reason_are_told_before_there_is_one(scraping: Prometheus) -> None:
    """Else a counter would begin with its first drops, which are no increase."""
    reasons = {"explain": ("budget", "tenant_share"), "traces": ("collector", "queue_full")}
    for of, known in reasons.items():
        told = scraping.series(f'penstock_gateway_{of}_dropped_total{{gateway="gw-1"}}')
        assert {labels["reason"]: drops for labels, drops in told} == dict.fromkeys(known, 0)


def test_every_sample_of_a_page_is_a_series_of_its_own(scraping: Prometheus) -> None:
    own = '{instance!="",__name__!~"up|scrape_.+|ALERTS.*"}'
    told_twice = f"scrape_samples_scraped - on (instance) count by (instance) ({own})"

    def of_all() -> bool:
        counted = {labels["instance"]: count for labels, count in scraping.series(told_twice)}
        if len(counted) != 4 or any(counted.values()):
            raise ValueError(counted)  # a page changes from one scrape to the next
        return True

    eventually(of_all, within=30, what="each sample is stored once")


def test_each_fault_is_told_and_each_query_of_a_dashboard_finds_data(
    everything: Watched, scraping: Prometheus
) -> None:
    with all_at_once(everything):
        scraping.fires(*FAULTS)
        for board in BOARDS:
            scraping.find_data({query for query in asked_of_all(board) if "vllm:" not in query})


@pytest.mark.long
@pytest.mark.timeout(900)
def test_each_alert_is_in_time_as_shipped_and_ends_with_its_fault(
    everything: Watched, folder: Path
) -> None:
    system, shipped = everything.system, folder / "shipped"
    shipped.mkdir()
    admin = f"http://127.0.0.1:{system.admin_port}"
    with watching(shipped, admin, system.data, every=AS_SHIPPED) as scraping:
        all_up(scraping)  # else what has happened before it looked is no increase
        with all_at_once(everything):
            scraping.fires(*FAULTS)
        with in_calm(everything):
            scraping.ends(*FAULTS)
