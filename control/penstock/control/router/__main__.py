"""`python -m penstock.control.router`: how the node agent starts it. Nobody else has to."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from penstock.control.router import sandbox


def main() -> int:
    """Runs it; returns the exit code."""
    given = _parser().parse_args()
    sandbox.enter(given.with_parent)
    from penstock.control.router.process import run_router  # within the bounds, and not twice

    return run_router(given.announce, given.text, given.digest, given.module)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("penstock.control.router")
    parser.add_argument("--announce", type=Path, required=True, help="a new file, that says where")
    parser.add_argument("--with-parent", type=int, default=0)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--text", type=Path, help="a program's file; none: those that ship")
    which.add_argument("--module")
    parser.add_argument("--digest", default="", help="that the text must have")
    return parser


if __name__ == "__main__":
    sys.exit(main())
