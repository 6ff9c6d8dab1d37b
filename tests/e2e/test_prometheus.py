"""A Prometheus with the scrape configuration of the docs sees gateway, head and node."""

from __future__ import annotations

import re
import shutil
import subprocess
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.system import System, eventually, get_json, running
from tests.fakes.ports import free_ports

WATCHING = Path(__file__).parents[2] / "docs" / "operate" / "watching.md"
# Both come with one package, which puts them where not every PATH leads.
PROMETHEUS = shutil.which("prometheus") or "/usr/bin/prometheus"
PROMTOOL = shutil.which("promtool") or "/usr/bin/promtool"
EACH_SECOND = "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
JOBS = {"penstock-gateway", "penstock-head", "penstock-node"}


@dataclass(frozen=True, slots=True)
class Prometheus:
    """One that runs."""

    url: str

    def get(self, path: str) -> Any:
        """What its HTTP API says."""
        answer = get_json(f"{self.url}/api/v1/{path}")
        assert answer["status"] == "success", answer
        return answer["data"]

    def targets(self) -> dict[str, dict[str, Any]]:
        """What it scrapes, by job."""
        active = self.get("targets")["activeTargets"]
        found = {target["labels"]["job"]: target for target in active}
        assert len(found) == len(active), active
        return found

    def series(self, query: str) -> list[tuple[dict[str, str], float]]:
        """What a query finds now: labels, and the value."""
        found = self.get("query?" + urllib.parse.urlencode({"query": query}))
        return [(each["metric"], float(each["value"][1])) for each in found["result"]]

    def labels(self, query: str, name: str) -> set[str]:
        """The values of a label of the series that a query finds."""
        return {labels[name] for labels, _ in self.series(query)}

    def comes_to(self, query: str, value: float) -> dict[str, str]:
        """The labels of the one series that a query finds, once it has that value."""

        def there() -> list[dict[str, str]]:
            ((labels, seen),) = self.series(query)
            if seen != value:
                raise ValueError(seen)
            return [labels]

        return eventually(there, within=30, what=f"{query} is {value}")[0]


def scrape_configuration(gateway: int, head: int, node: int) -> str:
    """That of the docs, with these ports in place of those that `penstock serve` has by itself."""
    page = WATCHING.read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    found = [str(block) for block in blocks if "scrape_configs" in block]
    assert len(found) == 1, page
    text = found[0]
    for usual, port in ((8083, gateway), (8084, head), (8085, node)):
        assert text.count(f'"127.0.0.1:{usual}"') == 1, text
        text = text.replace(f'"127.0.0.1:{usual}"', f'"127.0.0.1:{port}"')
    return text


@contextmanager
def prometheus(folder: Path, config: Path) -> Iterator[Prometheus]:
    """One that answers, on a port of its own; killed at the end."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    log = folder / "prometheus.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                PROMETHEUS,
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address={address}",
            ],
            stdout=output,
            stderr=output,
        )
    try:

        def ready() -> bool:
            assert process.poll() is None, log.read_text()
            with suppress(httpx.TransportError):
                return httpx.get(f"http://{address}/-/ready").status_code == 200
            return False

        eventually(ready, within=60, what="Prometheus is ready")
        yield Prometheus(f"http://{address}")
    finally:
        process.kill()
        process.wait(timeout=10)


@pytest.fixture(scope="module")
def metrics_ports() -> tuple[int, int]:
    """Of the head's and the node's metrics."""
    head, node = free_ports(2)
    return head, node


@pytest.fixture(scope="module")
def system(folder: Path, metrics_ports: tuple[int, int]) -> Iterator[System]:
    """Two simulated replicas, and metrics on ports that the tests know."""
    head, node = metrics_ports
    settings = "tokens_per_second=0 answer_tokens=8"
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", settings)
    metrics = ("--head-metrics", f"127.0.0.1:{head}", "--node-metrics", f"127.0.0.1:{node}")
    with running(folder, *options, *metrics, replicas=2, within=60) as system:
        yield system


@pytest.fixture(scope="module")
def scraping(system: System, folder: Path, metrics_ports: tuple[int, int]) -> Iterator[Prometheus]:
    """A Prometheus that scrapes the system as the docs say, but each second."""
    config = folder / "prometheus.yml"
    config.write_text(EACH_SECOND + scrape_configuration(system.metrics_port, *metrics_ports))
    checked = subprocess.run(
        [PROMTOOL, "check", "config", str(config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )
    assert checked.returncode == 0, checked.stdout
    with prometheus(folder, config) as scraping:
        yield scraping


def test_every_target_of_the_readme_is_up(scraping: Prometheus) -> None:
    def all_up() -> dict[str, dict[str, Any]] | None:
        found = scraping.targets()
        states = {job: (target["health"], target["lastError"]) for job, target in found.items()}
        if states != dict.fromkeys(JOBS, ("up", "")):
            raise ValueError(states)
        return found

    targets = eventually(all_up, within=30, what="all targets are up")
    assert {target["scrapeInterval"] for target in targets.values()} == {"1s"}
    assert {target["scrapeUrl"].rpartition("/")[2] for target in targets.values()} == {"metrics"}


def test_a_request_is_counted_where_prometheus_looks(system: System, scraping: Prometheus) -> None:
    """By the gateway, by the head in its report, and by the replica that made the tokens."""
    requests = 'penstock_gateway_requests_total{deployment="sim",outcome="succeeded",code="200"}'
    at_head = 'penstock_head_deployment_requests_total{job="penstock-head",deployment="sim"}'
    tokens = 'sum(penstock_replica_completion_tokens_total{job="penstock-node"})'
    body = {"model": "sim", "messages": [{"role": "user", "content": "Hello"}]}
    answer = httpx.post(f"{system.base_url}/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    scraping.comes_to(at_head, 1)
    scraping.comes_to(tokens, 8)
    labels = scraping.comes_to(requests, 1)
    assert labels["job"] == "penstock-gateway"
    assert labels["instance"] == f"127.0.0.1:{system.metrics_port}"


def test_what_replicas_do_is_labelled_by_replica_and_deployment(
    system: System, scraping: Prometheus
) -> None:
    replicas = {replica["id"] for replica in system.replicas()}
    assert len(replicas) == 2
    for query in ("penstock_node_replica_metrics_up == 1", "penstock_replica_calls"):

        def of_both(query: str = query) -> bool:
            return scraping.labels(query, "replica") == replicas

        eventually(of_both, within=30, what=f"both replicas in {query}")
        assert scraping.labels(query, "deployment") == {"sim"}
        assert scraping.labels(query, "job") == {"penstock-node"}
    scraping.comes_to('penstock_head_deployment_replicas_ready{deployment="sim"}', 2)


def test_every_sample_of_a_page_is_a_series_of_its_own(scraping: Prometheus) -> None:
    stored = 'count by (job) ({job!="",__name__!~"up|scrape_.+"})'
    told_twice = f"scrape_samples_scraped - on (job) {stored}"

    def of_all() -> dict[str, float] | None:
        counted = {labels["job"]: count for labels, count in scraping.series(told_twice)}
        return counted if counted.keys() == JOBS else None

    counted = eventually(of_all, within=30, what="each page is scraped")
    assert counted == dict.fromkeys(JOBS, 0)
