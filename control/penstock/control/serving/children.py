"""The head and the node agent as children of `penstock serve`: started, and started again."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from penstock.control import log_files
from penstock.control.data_dir import cluster_token_path
from penstock.control.errors import CannotStart, LaunchFailed
from penstock.control.serving.options import ServeOptions
from penstock.control.settings import reachable
from penstock.control.supervision.clock import Clock
from penstock.control.supervision.process import Launcher, Process
from penstock.control.supervision.restart_policy import (
    OWN_PROCESSES,
    Ending,
    GiveUp,
    after_end,
    describe,
)
from penstock.control.supervision.supervisor import supervise

# Words of a child's command line that tell whose it is: see `leftover_mark`.
PARENT_FLAG = "--with-parent"
TAKE_OVER = "--take-over"
EXISTING_STORE = "--existing-store"


class Child:
    """One process that is to run as long as `penstock serve` does."""

    def __init__(
        self,
        name: str,
        argv: list[str],
        log_path: Path,
        launcher: Launcher,
        clock: Clock,
        tell: Callable[[str], None],
        again: tuple[str, ...] = (),
    ) -> None:
        """`again`: further words of its command line once it was seen working."""
        self.name = name
        self._again = again
        self.log_path = log_path
        self._argv = argv
        self._launcher = launcher
        self._clock = clock
        self._tell = tell
        self._process: Process | None = None
        self._wanted = asyncio.Event()
        self._proven = False
        self._failures = 0  # in a row
        self._unlogged = ""  # why its output is dropped
        self._began = 0.0

    @property
    def pid(self) -> int:
        """Of the running process; 0 if there is none."""
        return self._process.pid if self._process else 0

    def begin(self) -> None:
        """Its time has come; until then `keep_running` waits."""
        self._wanted.set()

    def proven(self) -> None:
        """It was seen working: from now on its end is an accident, and it is started again."""
        if not self._proven:
            self._argv = [*self._argv, *self._again]
        self._proven = True

    async def keep_running(self) -> None:
        """Runs until cancelled. Raises `CannotStart` if the process ends before it has worked."""
        await self._wanted.wait()
        await supervise(self)

    async def stop(self, within: timedelta) -> None:
        """Asks the process to stop with all that it has started; returns when it has, or when the
        time is over."""
        process = self._process
        if process is None:
            return
        process.interrupt()
        try:
            async with asyncio.timeout(max(0.0, within.total_seconds())):
                await process.wait()
        except TimeoutError:
            self._tell(f"the {self.name} did not stop in time")

    # ---- the life that `supervise` lives through

    async def start(self) -> Process:
        """Starts the process, with a log that begins anew."""
        unlogged, self._unlogged = self._unlogged, log_files.begin(self.log_path)
        if self._unlogged and self._unlogged != unlogged:
            self._tell(f"the {self.name}: {self._unlogged}")
        self._began = self._clock.monotonic()
        self._process = await self._launcher.start(self._argv, log_path=self.log_path)
        self._argv = [word for word in self._argv if word != TAKE_OVER]  # for once
        return self._process

    async def accompany(self, process: Process) -> int | None:
        """Waits for its end."""
        return await process.wait()

    async def ended(self, exit_code: int | None, refusal: LaunchFailed | None) -> timedelta | None:
        """Tells of it; raises where it never worked."""
        self._process = None
        if not self._proven:
            raise refusal or CannotStart(self._last_words(exit_code))
        how = f"could not be started ({refusal})" if refusal else describe(exit_code)
        self._tell(f"the {self.name} {how}{'' if refusal else self._cause()}: started again")
        ran = timedelta(seconds=self._clock.monotonic() - self._began)
        decision = after_end(OWN_PROCESSES, self._failures, Ending(exit_code, ran))
        if isinstance(decision, GiveUp):  # the exit code of a replica; of ours it says nothing
            return OWN_PROCESSES.longest_delay
        self._failures = decision.failures
        return decision.after

    async def pause(self, duration: timedelta) -> bool:
        """Waits before the next start."""
        await self._clock.sleep(duration)
        return True

    # ---- what it said

    def _last_words(self, exit_code: int | None) -> str:
        ended = f"the {self.name} {describe(exit_code)} while it started; see {self.log_path}"
        return self._last_error() or ended

    def _last_error(self) -> str:
        if self._unlogged:  # what lies there was said by one before it
            return ""
        for line in reversed(log_files.tail(self.log_path, 100)):
            if ": error: " in line and not line.startswith("{"):
                return line.partition(": error: ")[2]
        return ""

    def _cause(self) -> str:
        """What it said last; on a full disk it could say nothing."""
        if log_files.disk_full(self.log_path):
            return f", the disk of {self.log_path.parent} is full"
        said = self._last_error()
        return f" ({said})" if said else ""


def head_command(options: ServeOptions) -> list[str]:
    """How the head is started."""
    command = [*_begin("head", options), "--gateway", options.gateway, "--admin", options.admin]
    command += ["--node-id", options.node_id]
    command += ["--rpc", options.rpc, "--gateway-metrics", options.metrics]
    if options.public_url:
        command += ["--public-url", options.public_url]
    if options.head_metrics:
        command += ["--head-metrics", options.head_metrics]
    if options.gateway_threads is not None:
        command += ["--gateway-threads", str(options.gateway_threads)]
    if options.gateway_binary is not None:
        command += ["--gateway-binary", str(options.gateway_binary)]
    if (tls := options.gateway_tls) is not None:
        command += ["--gateway-tls-cert", str(tls.cert), "--gateway-tls-key", str(tls.key)]
    if options.open_gateway:
        command += ["--open"]
    if not options.client_addresses:
        command += ["--no-client-addresses"]
    command += options.traces.flags
    if options.explain_budget_bytes is not None:
        command += ["--explain-budget-bytes", str(options.explain_budget_bytes)]
    for name in options.allow_hosts:
        command += ["--allow-host", name]
    for origin in options.cors_origins:
        command += ["--cors-origin", origin]
    return [*command, TAKE_OVER] if options.take_over else command


def node_command(options: ServeOptions) -> list[str]:
    """How the node agent is started."""
    head = reachable(options.rpc, flag="--rpc")
    command = [*_begin("node", options), "--head", head, "--node-id", options.node_id]
    command += ["--start-limit", f"{options.start_limit.total_seconds():g}"]
    command += ["--adapter-cache-gib", f"{options.adapter_cache_gib:g}"]
    if options.secrets_dir is not None:
        command += ["--secrets-dir", str(options.secrets_dir)]
    if options.program_modules:
        command += ["--program-modules", ",".join(options.program_modules)]
    if options.provider_hosts:
        command += ["--provider-hosts", ",".join(options.provider_hosts)]
    if options.warm is not None:
        command += ["--warm", str(options.warm)]
    if options.node_metrics:
        command += ["--node-metrics", options.node_metrics]
    return [*command, "--allow-model-code"] if options.allow_model_code else command


def leftover_mark(data_dir: Path) -> list[str]:
    """Words in a row that only the children of a serve on this data directory have."""
    return ["--data-dir", str(data_dir), PARENT_FLAG]


def _begin(role: str, options: ServeOptions) -> list[str]:
    command = [sys.executable, "-m", "penstock.control.main", role]
    command += [*leftover_mark(options.data_dir), str(os.getpid())]
    command += ["--cluster-token-file", str(cluster_token_path(options.data_dir))]
    command += ["--log-keep-gib", f"{options.logs.gib:g}"]
    command += ["--log-keep-days", f"{options.logs.days:g}"]
    return [*command, "--log-level", options.log_level]
