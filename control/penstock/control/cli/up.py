"""`penstock up`: everything on one machine, as files say."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from penstock.control import spec_files
from penstock.control.cli.options import Files, Force
from penstock.control.cli.serve import EngineName, asked, serving
from penstock.control.errors import invalid_setting
from penstock.control.serving import options as serve_options

HELP = """Serve on this machine what files say, until Ctrl-C, and follow them when they change.

\b
Examples:
  penstock up -f penstock.yaml
  penstock up -f fleet/ --gateway 0.0.0.0:8080 --open

It is `penstock serve` with the files of `penstock apply` in the place of a model.
What they say no longer is deleted, as far as an earlier `up` made it. Files that
are refused change nothing: what stands goes on, and the refusal is printed.
"""
# Of `penstock serve`: what files say here.
SAID_BY_FILES = (
    *("model", "engine", "replicas", "engine_arg", "engine_args", "adapter", "max_adapters"),
    *("max_adapter_rank", "settings", "name"),
)
Watch = Annotated[
    bool, typer.Option("--watch/--no-watch", help="Apply the files again when they change.")
]


def _asked(
    context: typer.Context, file: Files, watch: Watch = True, force: Force = False, **own: Any
) -> serve_options.ServeOptions:
    """What the command line and the files ask for."""
    if spec_files.STDIN in file:
        raise invalid_setting("--file is '-': `penstock up` follows files, name one")
    found = [each.said for each in spec_files.read(file)]
    deployments = [each for each in found if each.get("kind") == "deployment"]
    if not deployments:
        raise invalid_setting(f"no deployment in {', '.join(file)}: nothing would answer")
    first, *others = (str(each.get("name", "")) for each in deployments)
    options = asked(context, engine=EngineName.SIMULATED, **own)
    replicas = _vllm_replicas(deployments)
    return replace(
        options,
        name=first,
        model=str(deployments[0].get("model", "")),
        engine=EngineName.VLLM if replicas else EngineName.SIMULATED,
        replicas=replicas,
        adapters=(),
        files=serve_options.Files(tuple(file), watch, force, tuple(others)),
    )


def _vllm_replicas(deployments: Sequence[Any]) -> int:
    """For which there has to be memory on this machine."""
    counts = (
        each.get("replicas", 1)
        for each in deployments
        if each.get("engine", EngineName.VLLM) == EngineName.VLLM
    )
    return sum(count for count in counts if isinstance(count, int))


def _parameters() -> inspect.Signature:
    """Its own, and those of `serve` that files do not say."""
    own = inspect.signature(_asked, eval_str=True).parameters.values()
    shared = inspect.signature(asked, eval_str=True).parameters.values()
    mine = [each for each in own if each.kind is not inspect.Parameter.VAR_KEYWORD]
    names = {each.name for each in mine} | set(SAID_BY_FILES)
    both = [*mine, *(each for each in shared if each.name not in names)]
    return inspect.Signature([each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in both])


_asked.__signature__ = _parameters()  # type: ignore[attr-defined]
up = serving("up", _asked, HELP)
