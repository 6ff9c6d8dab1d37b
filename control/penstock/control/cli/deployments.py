"""`penstock deploy`, `scale` and `delete`: what is to be served."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from penstock.control.admin.models import DeploymentModel, SpecModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import asks_head, say_json
from penstock.control.cli.options import AsJson
from penstock.control.errors import InvalidSetting
from penstock.control.serving.options import parse_adapter, parse_engine_args

Name = Annotated[str, typer.Argument(help='What clients say as "model".')]
Model = Annotated[
    str | None,
    typer.Option(help="A path on the nodes, a Hugging Face id, penstock-mini or penstock-embed."),
]
Engine = Annotated[str | None, typer.Option(help="vllm or simulated.")]
Replicas = Annotated[int | None, typer.Option(min=0, help="Processes that answer.")]
EngineArg = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A setting of the engine. Repeatable."),
]
AdapterOption = Annotated[
    list[str] | None,
    typer.Option(metavar="ALIAS=NAME@VERSION=SOURCE", help="A LoRA adapter. Repeatable."),
]
SpecFile = Annotated[
    Path | None,
    typer.Option(
        "-f", "--file", help="The spec as JSON, as the API gives it; - is stdin. Options win."
    ),
]
OnlyNew = Annotated[bool, typer.Option("--new", help="Fail where the deployment exists.")]


@asks_head("deploy")
def deploy(
    head: Head,
    name: Name,
    model: Model = None,
    engine: Engine = None,
    replicas: Replicas = None,
    engine_arg: EngineArg = None,
    adapter: AdapterOption = None,
    file: SpecFile = None,
    only_new: OnlyNew = False,
    as_json: AsJson = False,
) -> None:
    """Serve a model, or change what is served under a name.

    What is not said takes its default: a deployment is replaced whole.

    \b
    Examples:
      penstock deploy mini --model penstock-mini --replicas 2
      penstock deploy qwen --model Qwen/Qwen2.5-0.5B-Instruct --engine-arg max_model_len=4096
      penstock deploy mini -f mini.json --new
    """
    given = {"model": model, "engine": engine, "replicas": replicas}
    spec = _from_file(file) | {key: value for key, value in given.items() if value is not None}
    if engine_arg:
        spec["engine_args"] = parse_engine_args(engine_arg)
    if adapter:
        spec["adapters"] = [_adapter(text) for text in adapter]
    checked = _checked(spec)
    _say(head.ask(lambda admin: admin.deploy(name, checked, only_new=only_new)), as_json=as_json)


@asks_head("scale")
def scale(
    head: Head,
    name: Name,
    replicas: Annotated[int, typer.Argument(min=0, help="Processes that answer.")],
    as_json: AsJson = False,
) -> None:
    """Change how many replicas a deployment has.

    Example: penstock scale mini 3
    """
    _say(head.ask(lambda admin: admin.scale(name, replicas)), as_json=as_json)


@asks_head("delete")
def delete(head: Head, name: Name, as_json: AsJson = False) -> None:
    """Serve a deployment no longer; its replicas finish what they have.

    Example: penstock delete mini
    """
    head.ask(lambda admin: admin.delete_deployment(name))
    typer.echo(json.dumps({"deleted": name}) if as_json else f"{name} is deleted")


def _say(deployment: DeploymentModel, *, as_json: bool) -> None:
    if as_json:
        say_json(deployment)
        return
    status = deployment.status
    why = f": {status.message}" if status.message else ""
    typer.echo(
        f"{deployment.name} is {status.phase}, {status.ready} of {status.wanted} replicas ready"
        f" (generation {deployment.generation}){why}"
    )


def _from_file(file: Path | None) -> dict[str, Any]:
    """The spec in a file: alone, or inside of what the API tells of a deployment."""
    if file is None:
        return {}
    try:
        found = json.loads(sys.stdin.read() if str(file) == "-" else file.read_text())
    except OSError as error:
        raise InvalidSetting(f"-f is {file}: {error.strerror}") from error
    except ValueError as error:
        raise InvalidSetting(f"-f is {file}, which is not JSON: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("spec", {}), dict):
        raise InvalidSetting(f"-f is {file}: it must hold a JSON object, the deployment's spec")
    return dict(found.get("spec", found))


def _adapter(text: str) -> dict[str, str]:
    adapter = parse_adapter(text)
    return {"alias": adapter.alias, "adapter": adapter.name, "source": adapter.source}


def _checked(spec: dict[str, Any]) -> SpecModel:
    try:
        return SpecModel.model_validate(spec)
    except ValidationError as error:
        lines = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InvalidSetting("; ".join(lines)) from error
