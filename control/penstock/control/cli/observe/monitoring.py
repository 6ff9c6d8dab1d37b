"""`penstock monitoring config`: how Prometheus watches this fleet."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from penstock.control.admin.observe.scrape_targets import HEAD_JOB
from penstock.control.admin.observe.target_models import ScrapeTargetModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import verb
from penstock.control.outside.admin_client import AdminClient
from penstock.control.state.cluster import GatewayState
from penstock.control.state.fleet.replica import NodeState

monitoring = typer.Typer(
    name="monitoring", no_args_is_help=True, help="How Prometheus and Grafana watch this."
)

EVERY = "15s"  # the rules' times are made for it
TOKEN_FILE = Path("/etc/prometheus/penstock.token")
RULES = Path("deploy", "monitoring", "rules")
# Two kinds of processes, and the option by which they say where their metrics are.
FLAGS = {"gateway": "--metrics", "node": "--node-metrics"}
HEAD_UNWATCHED = (
    "the head is not watched: start it with --head-metrics host:port, which Prometheus has to"
    " reach; until then PenstockHeadGone fires"
)


@verb(monitoring, "config", has_json=False)
def config(
    head: Head,
    token_file: Annotated[
        Path,
        typer.Option(
            help="Where Prometheus finds a token of role viewer, which"
            " `penstock tokens create prometheus` makes."
        ),
    ] = TOKEN_FILE,
    rules: Annotated[
        Path | None,
        typer.Option(
            help="Folder where Prometheus finds the rules. Default: this checkout's"
            f" {RULES}; outside of one, none."
        ),
    ] = None,
) -> None:
    """Write a configuration for Prometheus: it asks this head what there is to scrape, again and
    again, so that nothing of it changes with the fleet.

    \b
    Examples:
      penstock monitoring config > prometheus.yml
      penstock monitoring config --admin https://head.example:8081 --rules /etc/prometheus/penstock
    """
    told = head.ask(_told)
    typer.echo(prometheus_config(head.url, token_file, rules or _rules_of_checkout(), head.ca))
    for line in told:
        typer.echo(line, err=True)


def prometheus_config(url: str, token_file: Path, rules: Path | None, ca: Path | None) -> str:
    """Of a Prometheus that watches the head at this URL and all that it knows."""
    trust = f"\n        tls_config: {{ca_file: {_quoted(ca)}}}" if ca else ""
    return f"""\
# Written by `penstock monitoring config`. What each alert means: docs/operate/alerts.
global: {{scrape_interval: {EVERY}, evaluation_interval: {EVERY}}}
rule_files: [{_quoted(rules / "*.yml") if rules else ""}]
scrape_configs:
  - job_name: penstock
    http_sd_configs:
      - url: {json.dumps(f"{url.rstrip('/')}/admin/v1/scrape-targets")}
        refresh_interval: {EVERY}
        authorization: {{type: Bearer, credentials_file: {_quoted(token_file)}}}{trust}"""


async def _told(admin: AdminClient) -> list[str]:
    """What has to be said beside it: of processes that cannot be watched as they are."""
    targets = await admin.scrape_targets()
    gateways, nodes = await admin.gateways(), await admin.nodes()
    known = {
        "gateway": [it.id for it in gateways if it.state != GatewayState.STOPPED],
        "node": [it.id for it in nodes if it.state != NodeState.LOST],
    }
    headless = all(it.labels.get("job") != HEAD_JOB for it in targets)
    return [HEAD_UNWATCHED] * headless + [
        f"{kind} {name} is not watched: start it with {FLAGS[kind]} host:port, which Prometheus"
        " has to reach"
        for kind, names in known.items()
        for name in _left_out(kind, names, targets)
    ]


def _left_out(
    kind: str, names: Iterable[str], targets: Iterable[ScrapeTargetModel]
) -> Iterable[str]:
    return sorted(set(names) - {target.labels.get(kind, "") for target in targets})


def _rules_of_checkout() -> Path | None:
    for parent in Path(__file__).resolve().parents:
        if (parent / RULES).is_dir():
            return parent / RULES
    return None


def _quoted(path: Path | None) -> str:
    """A path as YAML has it, whatever it holds; absolute, since Prometheus starts elsewhere."""
    return json.dumps(str(path.absolute())) if path else ""
