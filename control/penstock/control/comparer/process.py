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
from penstock.control.comparer.keeping import Keeping
from penstock.control.comparer.ledger import Ledger
from penstock.control.comparer.records import Bounds
from penstock.control.comparer.vault import Vault
from penstock.control.data_dir import COMPARER, announce, shadows_path
from penstock.control.errors import CannotStart
from penstock.control.rpc.comparer_server import serve_comparer
from penstock.control.settings import TlsFiles
from penstock.evals.comparison.bad_check import BadCheck
from penstock.evals.comparison.redaction import Rules, rules
from penstock.evals.comparison.redaction_file import rules_of

log = logging.getLogger(__name__)

GRACE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class ComparerSettings:
    """What the head tells it."""

    data_dir: Path
    listen: str  # host:port for gateways; port 0: any that is free
    cluster_token_file: Path | None = None
    tls: TlsFiles = field(default_factory=TlsFiles)
    bounds: Bounds = field(default_factory=Bounds)  # of prompts and answers that are kept
    record_key_file: Path | None = None  # that they are encrypted under
    redaction: Path | None = None  # what is taken out of them beside what always is


async def run_comparer(settings: ComparerSettings) -> None:
    """Compares until SIGTERM or SIGINT. Raises CannotStart."""
    security = cluster_security(settings.cluster_token_file, settings.tls)
    stop = _catch_signals()
    held = read_redaction(settings.redaction)
    keeping = Keeping(Vault(settings.record_key_file), held, settings.bounds)
    ledger = Ledger(shadows_path(settings.data_dir), keeping)
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


def read_redaction(path: Path | None) -> Rules:
    """What redaction takes out. Raises CannotStart, which names the file's field and value."""
    if path is None:
        return rules()
    try:
        return rules_of(path.read_text("utf-8"))
    except (OSError, ValueError, BadCheck) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise CannotStart(f"--redaction {path}: {why}") from error


def _catch_signals() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
