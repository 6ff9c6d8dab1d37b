"""`python -m penstock.control.comparer`: how the head starts it. Nobody else has to."""

from __future__ import annotations

import argparse
import asyncio
import sys
from datetime import timedelta
from pathlib import Path

from penstock.control.comparer.process import ComparerSettings, read_redaction, run_comparer
from penstock.control.comparer.records import Bounds
from penstock.control.errors import CannotStart
from penstock.control.outside.logs import configure_logs
from penstock.control.outside.process_tree import stop_with_parent
from penstock.control.settings import TlsFiles


def main() -> int:
    """Runs it; returns the exit code."""
    given = _parser().parse_args()
    configure_logs("comparer", given.log_level)
    try:
        if given.check:
            read_redaction(given.redaction)
            return 0
        stop_with_parent(given.with_parent)
        asyncio.run(run_comparer(_settings(given)))
    except CannotStart as error:
        sys.stderr.write(f"comparer: error: {error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("penstock.control.comparer")
    parser.add_argument("--check", action="store_true", help="read --redaction, and end")
    parser.add_argument("--data-dir", type=Path, default=Path())
    parser.add_argument("--listen", default="", help="host:port for gateways")
    parser.add_argument("--with-parent", type=int, default=0)
    parser.add_argument("--cluster-token-file", type=Path)
    parser.add_argument("--tls-cert", type=Path)
    parser.add_argument("--tls-key", type=Path)
    parser.add_argument("--record-keep-days", type=float, default=30.0)
    parser.add_argument("--record-keep-gib", type=float, default=1.0)
    parser.add_argument("--record-key-file", type=Path)
    parser.add_argument("--redaction", type=Path)
    parser.add_argument("--log-level", default="info")
    return parser


def _settings(given: argparse.Namespace) -> ComparerSettings:
    return ComparerSettings(
        given.data_dir,
        given.listen,
        given.cluster_token_file,
        TlsFiles(given.tls_cert, given.tls_key),
        Bounds(timedelta(days=given.record_keep_days), int(given.record_keep_gib * (1 << 30))),
        given.record_key_file,
        given.redaction,
    )


if __name__ == "__main__":
    sys.exit(main())
