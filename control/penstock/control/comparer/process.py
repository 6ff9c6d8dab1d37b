"""The comparer as a process: its ports, and its end.

Gateways reach the one, with TLS where the head has it; the head the other, on the loopback. Both
ask for the cluster's token.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from penstock.control.cluster_security import cluster_security
from penstock.control.comparer.comparer import Comparer
from penstock.control.comparer.ledger import Ledger
from penstock.control.data_dir import COMPARER, announce, shadows_path
from penstock.control.rpc.comparer_server import serve_comparer
from penstock.control.settings import TlsFiles

log = logging.getLogger(__name__)

GRACE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class ComparerSettings:
    """What the head tells it."""

    data_dir: Path
    listen: str  # host:port for gateways; port 0: any that is free
    cluster_token_file: Path | None = None
    tls: TlsFiles = field(default_factory=TlsFiles)


async def run_comparer(settings: ComparerSettings) -> None:
    """Compares until SIGTERM or SIGINT. Raises CannotStart."""
    security = cluster_security(settings.cluster_token_file, settings.tls)
    stop = _catch_signals()
    ledger = Ledger(shadows_path(settings.data_dir))
    try:
        comparer = Comparer(ledger)
        server, ports = await serve_comparer(settings.listen, comparer, security)
        announce(settings.data_dir, ports._asdict(), COMPARER)
        log.info("comparer started", extra={"port": ports.gateways})
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(comparer.run())
            await stop.wait()
            await server.stop(GRACE_SECONDS)
            asking.cancel()
    finally:
        ledger.close()


def _catch_signals() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
