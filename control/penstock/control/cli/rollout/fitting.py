"""`penstock fit`: what memory a model takes, told without starting it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final

import typer

from penstock.control.admin.fit_models import MemoryFitModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import asks_head, say_json
from penstock.control.cli.rollout.deployments import EngineArg
from penstock.control.errors import invalid_setting
from penstock.control.node_agent.fitting import fit_of
from penstock.control.outside.devices import open_devices
from penstock.control.outside.fit_process import FitProcess
from penstock.control.serving.options import parse_engine_args, resolve_model
from penstock.control.state.fleet.memory import FitVerdict, MemoryFit
from penstock.control.state.rollout.engine_args import check_engine_args
from penstock.control.state.rollout.template import Template

LIMIT_SECONDS: Final = 60.0
MIB: Final = 1 << 20
WORDS: Final = {
    FitVerdict.FITS: "It fits.",
    FitVerdict.TIGHT: "It starts; under load, memory may run out.",
    FitVerdict.TOO_LARGE: "It does not fit.",
    FitVerdict.UNKNOWN: "It cannot be told whether it fits.",
}

Gpu = Annotated[
    str, typer.Option(metavar="NAME", help="On such a GPU: a10g, l4, a100-80, h100, ...")
]
NodeName = Annotated[
    str, typer.Option("--node", help="On this node, with what is free there. Asks the head.")
]
Adapters = Annotated[int, typer.Option(min=0, help="LoRA adapters that it holds at once.")]
Rank = Annotated[int, typer.Option(min=0, help="The largest rank of one; 0: the usual.")]


@asks_head("fit")
def fit(
    head: Head,
    model: Annotated[str, typer.Argument(help="A path, a hub id, or a name that comes along.")],
    engine_arg: EngineArg = None,
    gpu: Gpu = "",
    node: NodeName = "",
    max_adapters: Adapters = 0,
    max_adapter_rank: Rank = 0,
) -> None:
    """Show what memory a model takes, before it is started.

    Without --node and --gpu: on this machine, whether or not a head runs.

    \b
    Examples:
      penstock fit penstock-mini --engine-arg max_model_len=2048
      penstock fit /models/llama-8b-awq --gpu a10g --engine-arg max_num_seqs=128
      penstock fit /models/llama-8b --node gpu-7
    """
    if gpu and node:
        raise invalid_setting("--gpu and --node: say one of them")
    given = parse_engine_args(engine_arg or ())
    settings = [f"{key}={value}" for key, value in given.items()]
    counts = {"max_adapters": max_adapters, "max_adapter_rank": max_adapter_rank}
    if node:
        told = head.ask(lambda admin: admin.fit(node, model, settings, **counts))
    else:
        check_engine_args(Template("vllm", model, tuple(given.items())))
        told = MemoryFitModel.drawn(_here(model, settings, gpu, counts))
    if head.as_json:
        say_json(told)
        return
    typer.echo(f"{model} on {gpu or (f'node {node}' if node else 'this machine')}")
    for line in lines_of(told):
        typer.echo(line)


def lines_of(told: MemoryFitModel) -> Iterator[str]:
    """The sum for a person."""
    for line in told.lines:
        yield _row(line.what, line.bytes, line.note)
    if told.lines:
        yield _row("needed", told.needed_bytes, "")
        yield _row("free", told.free_bytes, "")
    yield WORDS[told.verdict]
    if told.reason:
        yield f"Why: {told.reason}."
    if told.advice:
        yield f"What helps: {', or '.join(told.advice)}."


def _row(what: str, count: int, note: str) -> str:
    return f"  {what:<14}{count / MIB:>9,.0f} MiB  {note}".rstrip()


def _here(model: str, settings: Sequence[str], gpu: str, counts: Mapping[str, int]) -> MemoryFit:
    words = ["--gpu", gpu] if gpu else _this_machine()
    words += [word for each in settings for word in ("--engine-arg", each)]
    words += [str(word) for k, v in counts.items() for word in (f"--{k.replace('_', '-')}", v)]
    told = FitProcess(limit=LIMIT_SECONDS).told([*words, "--", resolve_model(model)])
    return fit_of(asyncio.run(told))


def _this_machine() -> list[str]:
    """Its first accelerator, where it has any."""
    library = open_devices()
    devices = library.devices() if library else ()
    if not devices:
        return []
    first = devices[0]
    free = first.memory_bytes - first.memory_used_bytes
    return ["--device-bytes", str(first.memory_bytes), "--free", str(free)]
