"""A head, its gateway, an agent and replicas, each started by hand and of a checkout of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.e2e.system import MARK, eventually, get_json
from tests.fakes.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
GATEWAY = Path("gateway_cpp/build/release/penstock-gateway")
REPLICAS = 2
DEPLOYMENT = {
    "name": "sim", "model": "m", "engine": "simulated", "replicas": REPLICAS,
    "engine_args": {"tokens_per_second": "40", "answer_tokens": "40"},
    "max_adapters": 2, "update": {"min_ready_ms": 200},
}  # fmt: skip


class Apart:
    """Processes on one machine as they are on several: head and agent have data of their own."""

    def __init__(self, folder: Path) -> None:
        self.head_data, self.node_data = folder / "head", folder / "node"
        self._folder = folder
        self._gateway = folder / "penstock-gateway"  # names the one of a checkout
        gateway, admin, rpc, metrics = (f"127.0.0.1:{port}" for port in free_ports(4))
        self.base_url = f"http://{gateway}/v1"
        self._admin, self._rpc = admin, rpc
        self._head_flags = (
            *("--gateway", gateway, "--admin", admin, "--rpc", rpc),
            *("--gateway-metrics", metrics, "--gateway-binary", str(self._gateway)),
        )
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def begin(self, tree: Path) -> None:
        """All of one checkout, with the deployment ready."""
        self.node_data.mkdir(parents=True)
        self.use_gateway(tree)
        self.start_head(tree)
        shutil.copy(self.head_data / "cluster.token", self.node_data)
        self.start_node(tree)
        self.change("POST", "deployments", DEPLOYMENT)
        self.wait_whole()

    def use_gateway(self, tree: Path) -> None:
        """From the next start on the gateway is that of this checkout."""
        draft = self._gateway.with_suffix(".next")
        draft.symlink_to(tree / GATEWAY)
        draft.rename(self._gateway)

    def start_head(self, tree: Path, *flags: str) -> None:
        """Returns once it answers."""
        self._start("head", tree, self.head_data, *self._head_flags, *flags)
        eventually(lambda: self.admin("version"), within=30, what="a head that answers")

    def start_node(self, tree: Path) -> None:
        """Returns at once."""
        self._start("node", tree, self.node_data, "--head", self._rpc, "--node-id", "n1")

    def end(self, role: str, number: int = signal.SIGTERM) -> None:
        """Ends the head or the agent by a signal."""
        self._processes[role].send_signal(number)
        self._processes[role].wait(timeout=60)

    def admin(self, path: str) -> Any:
        """A GET on the admin API."""
        return self.change("GET", path)

    def change(self, method: str, path: str, body: Any = None) -> Any:
        """A request to the admin API; its answer."""
        token = (self.head_data / "admin.token").read_text().strip()
        try:
            reply = httpx.request(
                method,
                f"http://{self._admin}/admin/v1/{path}",
                json=body,
                headers={"authorization": f"Bearer {token}", "content-type": "application/json"},
                trust_env=False,
                timeout=60,
            )
        except httpx.TransportError as error:
            raise OSError(f"{method} {path}: {error!r}") from error
        if reply.is_error:
            raise OSError(f"{method} {path}: {reply.status_code} {reply.text}")
        return reply.json() if reply.content else None

    def replicas(self) -> set[int]:
        """The processes of those that serve."""
        return {each["pid"] for each in self.admin("replicas") if each["state"] == "ready"}

    def gateway(self) -> int:
        """The process of the one that serves."""
        found = {each["pid"] for each in self.admin("gateways") if each["state"] == "ready"}
        return int(*found)

    def wait_whole(self) -> None:
        """Returns when every part is heard and serves, and nothing else is left."""

        def whole() -> bool:
            if held := self.admin("version")["held"]:
                raise ValueError(held)
            nodes = [each["state"] for each in self.admin("nodes")]
            gateways = [each["state"] for each in self.admin("gateways")]
            rollout = self.admin("deployments/sim")["status"]["rollout"]
            done = (rollout["state"], rollout["ready"], rollout["old"]) == ("served", REPLICAS, 0)
            states = [each["state"] for each in self.admin("replicas")]
            return done and (nodes, gateways, states) == (["ready"], ["ready"], ["ready"] * 2)

        eventually(whole, within=60, what="a whole system")

    def prepare(self) -> str:
        """Everybody may ask, there are an adapter and a tenant; the key of that tenant."""
        source = {"name": "pirate", "version": "1", "base": "sim", "source": "penstock-mini/pirate"}
        self.change("POST", "adapters", source)
        self.change("PUT", "aliases/sim/pirate", {"target": "pirate@1"})
        self.change("PUT", "tenants/counted", {})
        key = str(self.change("POST", "tenants/counted/keys", {})["key"])
        self.change("PUT", "access", {"anonymous": "allowed"})
        eventually(self._takes_all, within=20, what="a gateway that knows all of it")
        return key

    def _takes_all(self) -> bool:
        found = get_json(f"{self.base_url}/models")["data"]
        return {"sim", "sim:pirate"} <= {each["id"] for each in found}

    def logs(self) -> str:
        """The ends of what everybody wrote."""
        found = sorted(self._folder.rglob("*.log"))
        return "\n".join(f"--- {p.name}\n{p.read_text(errors='replace')[-3000:]}" for p in found)

    def destroy(self) -> None:
        """Ends all that runs."""
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get(MARK) == str(self._folder):
                    process.kill()
        for own in self._processes.values():
            own.wait(timeout=10)

    def _start(self, role: str, tree: Path, data: Path, *flags: str) -> None:
        command = [str(tree / ".venv/bin/penstock"), role, "--data-dir", str(data), *flags]
        with (self._folder / f"{role}.log").open("ab") as log:
            self._processes[role] = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, MARK: str(self._folder)}
            )
