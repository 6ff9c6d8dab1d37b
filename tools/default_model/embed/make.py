"""Makes penstock-embed: `python -m tools.default_model.embed.make --out DIRECTORY`.

Writes OUT/model and OUT/made.json. The same seed makes the same files on the same machine.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from tools.default_model import record
from tools.default_model.embed.encoder import make_encoder

STEPS: Final = 200
RATE: Final = 3e-3


def main() -> None:
    """Reads the command line and makes everything."""
    parser = argparse.ArgumentParser(description="Makes penstock-embed.")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, required=True, help="directory to write to")
    parser.add_argument("--steps", type=int, default=STEPS)
    args = parser.parse_args()
    make_encoder(args.out / "model", args.seed, args.steps, RATE, _report)
    record.write(args.out, record.ENCODER, seed=args.seed, steps=args.steps)


def _report(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
