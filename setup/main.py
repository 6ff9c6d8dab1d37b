"""Makes this machine ready for one purpose: `python3 setup/main.py serve|test|bench|clients`."""

from __future__ import annotations

import sys

import machine


def main() -> int:
    """Runs the command line, where Penstock can run; errors are one line and exit code 1."""
    no = machine.here()
    if no is not None:
        print("penstock setup: " + no, file=sys.stderr)
        return 1
    import steps  # not before: it needs the system and the Python that `machine` asks for

    return steps.main()


if __name__ == "__main__":
    raise SystemExit(main())
