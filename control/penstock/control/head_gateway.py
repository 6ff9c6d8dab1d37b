"""Composition of the head's local gateway: which program, with which flags."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

from penstock.control.data_dir import programs_path
from penstock.control.errors import CannotStart
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.fleet.gateway_process import GatewayCommand
from penstock.control.managers.fleet.gateway_signs import GatewaySigns
from penstock.control.managers.fleet.local_gateway import GatewayDependencies
from penstock.control.managers.fleet.proxies import GatewayManager
from penstock.control.outside.clock import SystemClock
from penstock.control.outside.http_probe import HttpLivenessProbe
from penstock.control.outside.processes import ProcessLauncher
from penstock.control.settings import HeadSettings, reachable
from penstock.control.state.fleet.gateway_liveness import GatewayPatience

GATEWAY_BINARY = "penstock-gateway"
# After a SIGTERM that is not the head's: long enough to notice and to start another one.
HANDOVER = timedelta(seconds=10)


def gateway_manager(
    settings: HeadSettings,
    control: str,
    cluster: ClusterStore,
    signs: GatewaySigns,
) -> GatewayManager | None:
    """What looks after the gateway of this machine, `control` being the head's own address for
    it; None where none is wanted. Raises CannotStart where there is no program to run."""
    if not settings.run_gateway:
        return None
    needs = GatewayDependencies(
        ProcessLauncher(), HttpLivenessProbe(), cluster, SystemClock(), signs, GatewayPatience()
    )
    command = GatewayCommand(
        name=settings.gateway_id,
        binary=settings.gateway_binary or _find_gateway(),
        listen=settings.gateway,
        control=reachable(control, flag="--rpc"),
        data_dir=settings.data_dir.absolute(),
        metrics=settings.metrics,
        tls=settings.gateway_tls,
        threads=settings.gateway_threads,
        log_level=settings.log_level,
        flags=_flags(settings),
    )
    return GatewayManager(command, needs)


def _flags(settings: HeadSettings) -> tuple[str, ...]:
    flags = ["--handover-ms", f"{HANDOVER.total_seconds() * 1000:.0f}"]
    flags += ["--programs-dir", str(programs_path(settings.data_dir.absolute()))]
    flags += ["--open"] if settings.open_gateway else []
    flags += [] if settings.client_addresses else ["--no-client-addresses"]
    flags += settings.traces.flags
    if settings.explain_budget_bytes is not None:
        flags += ["--explain-budget-bytes", str(settings.explain_budget_bytes)]
    for flag, place in (("--node", settings.node), ("--zone", settings.zone)):
        flags += [flag, place] if place else []
    if settings.cluster_token_file is not None:
        flags += ["--cluster-token-file", str(settings.cluster_token_file.absolute())]
    if settings.tls.ca is not None and settings.tls.cert is not None:  # rpc is served with TLS
        flags += ["--tls-ca", str(settings.tls.ca.absolute())]
    for name in settings.allow_hosts:
        flags += ["--allow-host", name]
    for origin in settings.cors_origins:
        flags += ["--cors-origin", origin]
    return tuple(flags)


def _find_gateway() -> Path:
    """The gateway of this checkout, or the one on PATH."""
    for parent in Path(__file__).resolve().parents:
        built = parent / "gateway_cpp" / "build" / "release" / GATEWAY_BINARY
        if built.is_file():
            return built
    installed = shutil.which(GATEWAY_BINARY)
    if installed is None:
        raise CannotStart(
            f"no {GATEWAY_BINARY}, neither built in this checkout nor on PATH: build it with "
            "`make serve`, name one with --gateway-binary, or pass --no-gateway"
        )
    return Path(installed)
