"""Composition of what compares shadows and records requests: the comparer's process, and what ends
them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

from penstock.control.data_dir import COMPARER, announced_by, logs_path, shadows_path
from penstock.control.errors import CannotStart
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.recording.recordings import RecordingLimits
from penstock.control.managers.shadow.comparer import SAYS, ComparerCommand, ComparerManager
from penstock.control.managers.shadow.limits import ShadowLimits
from penstock.control.outside.clock import SystemClock
from penstock.control.outside.comparer_client import GrpcComparerClient
from penstock.control.outside.dialer import Dialer
from penstock.control.outside.processes import ProcessLauncher
from penstock.control.settings import EVERYWHERE, HeadSettings, split_address
from penstock.control.store.usage import UsageStore


@dataclass(frozen=True, slots=True)
class HeadShadows:
    """What runs of it in a head."""

    comparer: ComparerManager
    limits: ShadowLimits
    recording_limits: RecordingLimits


def head_shadows(
    settings: HeadSettings,
    cluster: ClusterStore,
    store: UsageStore,
    dialer: Dialer,
    clock: SystemClock,
) -> HeadShadows:
    """All of it, idle. Raises `CannotStart` where the comparer could never start."""
    _check_redaction(settings)
    data_dir = settings.data_dir.absolute()
    command = ComparerCommand(
        argv=_argv(settings),
        host="" if _host(settings) in EVERYWHERE else _host(settings),
        log_path=logs_path(data_dir) / "comparer.log",
        file=shadows_path(data_dir),
        announced=lambda pid: announced_by(data_dir, COMPARER, pid),
        dial=lambda address: GrpcComparerClient(address, dialer),
    )
    comparer = ComparerManager(command, ProcessLauncher(), cluster, clock)
    return HeadShadows(
        comparer,
        ShadowLimits(cluster, store, comparer.standing, clock),
        RecordingLimits(cluster, comparer.recorded, clock),
    )


def _check_redaction(settings: HeadSettings) -> None:
    """The comparer alone can read the file: better it says now what is wrong with it than when the
    first shadow comes."""
    if settings.records.redaction is None:
        return
    argv = [sys.executable, "-m", "penstock.control.comparer", "--check"]
    argv += ["--redaction", str(settings.records.redaction.absolute())]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotStart(done.stderr.strip().removeprefix(SAYS))


def _argv(settings: HeadSettings) -> tuple[str, ...]:
    argv = [sys.executable, "-m", "penstock.control.comparer"]
    argv += ["--data-dir", str(settings.data_dir.absolute())]
    argv += ["--listen", f"{_host(settings)}:{settings.comparer_port}"]
    argv += ["--with-parent", str(os.getpid()), "--log-level", settings.log_level]
    if settings.cluster_token_file is not None:
        argv += ["--cluster-token-file", str(settings.cluster_token_file.absolute())]
    for flag, file in (("--tls-cert", settings.tls.cert), ("--tls-key", settings.tls.key)):
        argv += [flag, str(file.absolute())] if file else []
    records = settings.records
    argv += ["--record-keep-days", str(records.days), "--record-keep-gib", str(records.gib)]
    for flag, file in (("--record-key-file", records.key_file), ("--redaction", records.redaction)):
        argv += [flag, str(file.absolute())] if file else []
    return tuple(argv)


def _host(settings: HeadSettings) -> str:
    return split_address(settings.rpc, flag="--rpc")[0]
