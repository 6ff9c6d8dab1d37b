"""Makes penstock-mini and its two adapters: `python -m tools.default_model.make`.

Writes OUT/model, OUT/adapters/pirate and OUT/adapters/json, all in bf16, and OUT/made.json, which
says with what. The same seed makes the same files on the same machine. Needs torch,
transformers, tokenizers and peft.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Final

from tools.default_model import record
from tools.default_model.base_model import make_model, train_on
from tools.default_model.grammar import STYLES
from tools.default_model.lora import make_adapter
from tools.default_model.training import Course

MODEL_COURSE: Final = Course(steps=3800, rate=2.5e-3)
FURTHER_COURSE: Final = Course(steps=800, rate=8e-4)
ADAPTER_COURSE: Final = Course(steps=300, rate=2e-3)


def main() -> None:
    """Reads the command line and makes everything."""
    parser = argparse.ArgumentParser(description="Makes penstock-mini and its two adapters.")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, required=True, help="directory to write to")
    parser.add_argument("--steps", type=int, default=MODEL_COURSE.steps, help="of the model")
    parser.add_argument("--further-steps", type=int, default=FURTHER_COURSE.steps)
    parser.add_argument("--adapter-steps", type=int, default=ADAPTER_COURSE.steps)
    args = parser.parse_args()
    course = replace(MODEL_COURSE, steps=args.steps)
    tokenizer = make_model(args.out / "model", args.seed, course, _report)
    course = replace(FURTHER_COURSE, steps=args.further_steps)
    train_on(args.out / "model", tokenizer, args.seed, course, _report)
    for name in STYLES:
        course = replace(ADAPTER_COURSE, steps=args.adapter_steps)
        make_adapter(name, args.out, tokenizer, args.seed, course, _report)
    steps = ("steps", "further_steps", "adapter_steps")
    numbers = {name: getattr(args, name) for name in ("seed", *steps)}
    record.write(args.out, record.LIBRARIES, **numbers)


def _report(what: str, line: str) -> None:
    print(f"{what:>8}  {line}", flush=True)


if __name__ == "__main__":
    main()
