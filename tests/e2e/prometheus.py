"""A real Prometheus, as `penstock monitoring config` has it watch a system."""

from __future__ import annotations

import logging
import subprocess
import time
import urllib.parse
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.system import eventually, get_json
from tests.e2e.verbs import penstock
from tests.fakes.ports import free_ports
from tests.fakes.promtool import PROMETHEUS, PROMTOOL

AS_SHIPPED, EACH_SECOND = "15s", "1s"
# What an alert may take from its fault, and to end after it: windows of five minutes, that begin
# once a collector was given up, and scrapes.
FIRES_WITHIN, ENDS_WITHIN = 120.0, 420.0
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Prometheus:
    """One that runs."""

    url: str

    def get(self, path: str) -> Any:
        """What its HTTP API says."""
        answer = get_json(f"{self.url}/api/v1/{path}")
        assert answer["status"] == "success", answer
        return answer["data"]

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

    def traces(self, query: str) -> set[str]:
        """The trace ids beside the series that a query names."""
        whenever = urllib.parse.urlencode({"query": query, "start": 0, "end": 2**32})
        found = self.get(f"query_exemplars?{whenever}")
        return {it["labels"]["trace_id"] for each in found for it in each["exemplars"]}

    def firing(self) -> set[str]:
        """The alerts that fire now."""
        alerts = self.get("alerts")["alerts"]
        return {it["labels"]["alertname"] for it in alerts if it["state"] == "firing"}

    def fires(self, *alerts: str) -> None:
        """Returns once each of these has fired; the log says after how many seconds."""
        seen: set[str] = set()

        def each_has() -> bool:
            seen.update(_told("fires", self.firing() & set(alerts) - seen, began))
            return not _left(set(alerts) - seen)

        began = time.monotonic()
        eventually(each_has, within=FIRES_WITHIN, what=f"{alerts} fire")

    def ends(self, *alerts: str) -> None:
        """Returns once none of these fires; likewise."""
        seen: set[str] = set()

        def all_have() -> bool:
            left = self.firing() & set(alerts)
            seen.update(_told("ended", set(alerts) - left - seen, began))
            return not _left(left)

        began = time.monotonic()
        eventually(all_have, within=ENDS_WITHIN, what=f"{alerts} end")

    def find_data(self, queries: Set[str]) -> None:
        """Returns once each of the queries finds something."""
        assert queries
        eventually(
            lambda: not _left({each for each in queries if not self.series(each)}),
            within=30,
            what="each query finds data",
        )


def _told(what: str, alerts: set[str], began: float) -> set[str]:
    """The alerts, after a line on them for whoever wants to know how long it took."""
    for alert in sorted(alerts):
        log.warning("%s %s after %.0f s", alert, what, time.monotonic() - began)
    return alerts


def _left(over: set[str]) -> bool:
    """False where nothing is; else raises ValueError with it, for whoever waits in vain."""
    if over:
        raise ValueError(sorted(over))
    return False


@contextmanager
def watching(
    folder: Path, admin_url: str, data_dir: Path, *more: str, every: str = EACH_SECOND
) -> Iterator[Prometheus]:
    """One that watches the head there and all that it knows, by a token of role viewer. `more`: of
    `penstock monitoring config`; `every`: how often it looks and judges, of which alone it is told
    something else than what that writes."""
    head = ("--admin", admin_url, "--data-dir", str(data_dir), *more)
    token = folder / "prometheus.token"
    token.write_text(penstock("tokens", "create", "prometheus", *head).splitlines()[-1])
    text = penstock("monitoring", "config", "--token-file", str(token), *head)
    config = folder / "prometheus.yml"
    assert text.count(AS_SHIPPED) == 3, text
    config.write_text(text.replace(AS_SHIPPED, every))
    checked = subprocess.run(
        [PROMTOOL, "check", "config", str(config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )
    assert checked.returncode == 0, checked.stdout
    with _running(folder, config) as found:
        yield found


@contextmanager
def _running(folder: Path, config: Path) -> Iterator[Prometheus]:
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
                "--enable-feature=exemplar-storage",
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
