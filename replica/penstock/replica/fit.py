"""What memory a model takes, before it is started: `python -m penstock.replica.fit MODEL`.

Reads files and starts nothing, so a node agent asks it before each start, and `penstock fit` shows
it to a person. Ends with 0 whatever the sum says; with 72 where model or settings cannot be used.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from penstock.replica.adapters.values import SLOTS_BY_RANK
from penstock.replica.endings import ExitCode
from penstock.replica.settings import engine_args_of
from penstock.replica.values import CannotLoad
from penstock.replica.vllm.start import checks
from penstock.replica.vllm.start.memory import judging
from penstock.replica.vllm.start.memory.gpus import gpu_bytes, gpu_names
from penstock.replica.vllm.start.memory.sums import MIB, Machine, Sum, Verdict

_WORDS = {
    Verdict.FITS: "It fits.",
    Verdict.TIGHT: "It starts; under load, memory may run out.",
    Verdict.TOO_LARGE: "It does not fit.",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line."""
    args = _parser().parse_args(argv)
    try:
        told = _judged(args)
    except (CannotLoad, OSError) as error:
        sys.stderr.write(f"penstock-replica: error: {error}\n")
        return ExitCode.CANNOT_LOAD
    shown = json.dumps(told) if args.json else "\n".join(text_of(told))
    sys.stdout.write(f"{shown}\n")
    return 0


def text_of(told: dict[str, Any]) -> list[str]:
    """The sum for a person."""
    if not told["lines"]:
        return [f"{told['model']}: {told['reason']}"]
    lines = [f"{told['model']} on {told['where']}"]
    lines += [_row(each["what"], each["bytes"], each["note"]) for each in told["lines"]]
    lines.append(_row("needed", told["needed"], ""))
    if told["free"] >= 0:
        lines.append(_row("free", told["free"], ""))
    lines.append(_WORDS[Verdict(told["verdict"])])
    if told["reason"]:
        lines.append(f"Why: {told['reason']}.")
    if told["advice"]:
        lines.append(f"What helps: {', or '.join(told['advice'])}.")
    return lines


def _row(what: str, count: int, note: str) -> str:
    return f"  {what:<14}{count / MIB:>9,.0f} MiB  {note}".rstrip()


def _judged(args: argparse.Namespace) -> dict[str, Any]:
    model = judging.read_model(checks.find_model(args.model))
    slots = max(args.max_adapters or (SLOTS_BY_RANK if args.max_adapter_rank else 0), args.adapters)
    order = judging.Order(engine_args_of(args.engine_arg), slots, args.max_adapter_rank)
    machine = _machine(args)
    found = judging.judge(model, order, machine)
    why_not = found.verdict in (Verdict.TIGHT, Verdict.TOO_LARGE)
    advice = judging.advice(model, order, machine) if why_not else ()
    said = judging.refusal(model, found, advice) if why_not else ""
    return _told(model, found, machine, advice) | {"refusal": said}


def _told(
    model: judging.Model, found: Sum, machine: Machine, advice: Sequence[str]
) -> dict[str, Any]:
    return {
        "model": model.place.name,
        "where": machine.name or ("each accelerator" if machine.device else "CPUs"),
        "verdict": found.verdict.value,
        "reason": found.reason,
        "lines": [line._asdict() for line in found.lines],
        "needed": found.needed,
        "least": found.least,
        "free": found.free,
        "advice": list(advice),
    }


def _machine(args: argparse.Namespace) -> Machine:
    """Where it is to run; without an accelerator, on this machine's CPUs."""
    device = args.device_bytes
    if args.gpu:
        device = gpu_bytes(args.gpu)
        if not device:
            raise CannotLoad(f"GPU {args.gpu} is not known, known are {', '.join(gpu_names())}")
    free = device if device else checks.free_memory()
    return Machine(device, args.free if args.free >= 0 else free, args.gpu)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m penstock.replica.fit",
        description="What memory a model takes, told without starting it.",
    )
    add = parser.add_argument
    add("model", help="directory, hub id, or a name that the replica ships")
    add("--engine-arg", action="append", default=[], metavar="KEY=VALUE", help="may be repeated")
    add("--adapters", type=int, default=0, help="adapters that it begins with")
    add("--max-adapters", type=int, default=0, help="adapters that it holds at once")
    add("--max-adapter-rank", type=int, default=0, help="of any of them (0: the engine's)")
    add("--gpu", default="", metavar="NAME", help=f"one of {', '.join(gpu_names())}")
    add("--device-bytes", type=int, default=0, help="of each accelerator (0: on CPUs)")
    add("--free", type=int, default=-1, help="bytes that can be had there (-1: look)")
    add("--json", action="store_true", help="for programs")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
