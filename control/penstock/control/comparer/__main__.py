"""`python -m penstock.control.comparer`: how the head starts it. Nobody else has to."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from penstock.control.comparer.process import ComparerSettings, run_comparer
from penstock.control.errors import CannotStart
from penstock.control.outside.logs import configure_logs
from penstock.control.outside.process_tree import stop_with_parent
from penstock.control.settings import TlsFiles


def main() -> int:
    """Runs it; returns the exit code."""
    parser = argparse.ArgumentParser("penstock.control.comparer")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--listen", required=True, help="host:port for gateways")
    parser.add_argument("--with-parent", type=int, required=True)
    parser.add_argument("--cluster-token-file", type=Path)
    parser.add_argument("--tls-cert", type=Path)
    parser.add_argument("--tls-key", type=Path)
    parser.add_argument("--log-level", default="info")
    given = parser.parse_args()
    configure_logs("comparer", given.log_level)
    try:
        stop_with_parent(given.with_parent)
        tls = TlsFiles(given.tls_cert, given.tls_key)
        settings = ComparerSettings(given.data_dir, given.listen, given.cluster_token_file, tls)
        asyncio.run(run_comparer(settings))
    except CannotStart as error:
        sys.stderr.write(f"comparer: error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
