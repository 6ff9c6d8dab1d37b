"""`penstock deploy`, `scale`, `set` and `delete`: what is to be served, and within which limits."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.control.admin.rollout.deployment_settings import SETTINGS, SettingsModel
from penstock.control.admin.rollout.models import DeploymentModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import asks_head, confirm, say
from penstock.control.cli.options import AbortCanary, HandOver, Reason, Wait, Yes
from penstock.control.cli.rollout.following import follow
from penstock.control.declared.fields import named
from penstock.control.declared.listing import key_list, listing
from penstock.control.errors import invalid_setting
from penstock.control.serving.options import parse_engine_args
from penstock.control.serving.settings_text import parse_settings
from penstock.control.serving.spec_changes import differences, spec_with
from penstock.control.state.routing.degrading import degrading

CANNED = "canned"

Name = Annotated[str, typer.Argument(help='What clients say as "model".')]
Model = Annotated[
    str | None,
    typer.Option(
        help="A path on the nodes, a Hugging Face id, penstock-mini, penstock-embed, or what a"
        " provider calls it."
    ),
]
Engine = Annotated[str | None, typer.Option(help="vllm, simulated, bedrock, openai or canned.")]
Replicas = Annotated[int | None, typer.Option(min=0, help="Processes that answer.")]
EngineArg = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A setting of the engine. Repeatable."),
]
MaxAdapters = Annotated[
    int | None, typer.Option(min=0, help="LoRA adapters that a replica holds at once; 0: none.")
]
MaxAdapterRank = Annotated[
    int | None, typer.Option(min=0, help="The largest rank of an adapter; 0: the usual one.")
]
Sleep = Annotated[
    str | None,
    typer.Option(help="What a replica that is not wanted for now does: off (it ends), 1 or 2."),
]
MicroServing = Annotated[
    str | None, typer.Option(help="Whether engines offer calls that move KV: on or off.")
]
MicroServingRest = Annotated[
    str | None, typer.Option(help="Whether these are also offered by REST: on or off.")
]
SpecFile = Annotated[
    Path | None,
    typer.Option(
        "-f", "--file", help="The spec as JSON, as the API gives it; - is stdin. Options win."
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A limit, or how requests are shared out: as in `penstock set`. Repeatable.",
    ),
]
Replace = Annotated[
    bool, typer.Option("--replace", help="What is not said takes its default: nothing is kept.")
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
    max_adapters: MaxAdapters = None,
    max_adapter_rank: MaxAdapterRank = None,
    sleep: Sleep = None,
    microserving: MicroServing = None,
    microserving_rest: MicroServingRest = None,
    settings: Set = None,
    file: SpecFile = None,
    only_new: OnlyNew = False,
    whole: Replace = False,
    reason: Reason = "",
    wait: Wait = False,
    abort_canary: AbortCanary = False,
    hand_over: HandOver = False,
) -> None:
    """Serve a model, or change what is served under a name.

    What is not said stays as it is, and what changes is printed. --engine-arg KEY= takes a setting
    away; with --replace, what is not said takes its default.

    \b
    Examples:
      penstock deploy mini --model penstock-mini --replicas 2
      penstock deploy qwen --model Qwen/Qwen2.5-0.5B-Instruct --engine-arg max_model_len=4096
      penstock deploy mini --model penstock-mini --set max_queued=20 --set kv_pressure=0.9
      penstock deploy mini --model penstock-mini --max-adapters 8
      penstock deploy mini --replicas 4
      penstock deploy mini -f mini.json --new
      penstock deploy cloud --engine openai --model gpt-4o --engine-arg api_key_env=OPENAI_API_KEY
      penstock deploy sorry --engine canned --model sorry --engine-arg text="Too busy: try again."
    """
    given: dict[str, str | int | None]
    given = {"model": model, "engine": engine, "replicas": replicas, "sleep": sleep}
    given |= {"max_adapters": max_adapters, "max_adapter_rank": max_adapter_rank}
    given |= {"microserving": microserving, "microserving_rest": microserving_rest}
    said = _from_file(file) | {key: value for key, value in given.items() if value is not None}
    said |= parse_settings(settings or ())
    known = None if only_new else head.ask(lambda admin: admin.deployment(name))
    kept = known.spec.model_dump() if known and not whole else {}
    if said.get("engine") == CANNED:  # it says its text, whatever the model
        kept = {"model": CANNED} | kept
    if "model" not in {**kept, **said}:
        raise invalid_setting(f'say what {name} is to serve: --model, or "model" in a file (-f)')
    wanted = spec_with(kept, said, parse_engine_args(engine_arg or ()))
    how: Any = {"over": known, "reason": reason, "abort_canary": abort_canary}
    how["hand_over"] = hand_over
    made = head.ask(lambda admin: admin.put_deployment(name, wanted, **how))
    for change in differences(known.spec, made.spec) if known else ():
        typer.echo(f"{name}: {change}", err=head.as_json)
    _say(head, made)
    _warn_of_missing(head, name, wanted)
    if wait:
        follow(head, made)


@asks_head("scale")
def scale(
    head: Head,
    name: Name,
    replicas: Annotated[int, typer.Argument(min=0, help="Processes that answer.")],
    reason: Reason = "",
    wait: Wait = False,
    hand_over: HandOver = False,
) -> None:
    """Change how many replicas a deployment has.

    \b
    Examples:
      penstock scale mini 3
      penstock scale mini 1 --hand-over
    """
    how: Any = {"reason": reason, "hand_over": hand_over}
    made = head.ask(lambda admin: admin.scale(name, replicas, **how))
    _say(head, made)
    if wait:
        follow(head, made)


@asks_head("set")
@listing(keys=key_list(named(*SETTINGS)))
def change_settings(
    head: Head,
    name: Name,
    settings: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE...", help="What is to change; the rest stays.")
    ],
    reason: Reason = "",
    wait: Wait = False,
    abort_canary: AbortCanary = False,
) -> None:
    """Change what gateways hold a deployment to: no replica is replaced, no request lost.

    \b
    Keys, with their defaults:
      {keys}

    \b
    Examples:
      penstock set chat max_queued=100 wait_budget_ms=2000
      penstock set chat selection_policy=prefix_aware canary=chat-next:50
      penstock set chat degrade=fallback:cloud,fallback:sorry
      penstock set chat 'degrade={"budget": ["fallback:sorry"], "default": ["fallback:cloud"]}'
      penstock set cloud budget_usd_per_day=25
      penstock set chat selection_policy=program program=./mine.py program.share=0.1
      penstock set chat roles.prefill=1 roles.decode=2
    """
    said = SettingsModel.model_validate(parse_settings(settings))
    how: Any = {"reason": reason, "abort_canary": abort_canary}
    made = head.ask(lambda admin: admin.change_settings(name, said, **how))
    _say(head, made)
    _warn_of_missing(head, name, said)
    if wait:
        follow(head, made)


@asks_head("delete")
def delete(head: Head, name: Name, yes: Yes = False, abort_canary: AbortCanary = False) -> None:
    """Serve a deployment no longer; its replicas finish what they have.

    At a terminal it asks first; elsewhere it takes --yes. Example: penstock delete mini
    """
    if not yes and (known := head.ask(lambda admin: admin.deployment(name))):
        also = f", and its aliases: {', '.join(known.aliases)}" if known.aliases else ""
        confirm(f"{name}, with {known.status.ready} replicas that serve, is deleted{also}")
    head.ask(lambda admin: admin.delete_deployment(name, abort_canary=abort_canary))
    say(head, {"deleted": name}, f"{name} is deleted")


def _say(head: Head, deployment: DeploymentModel) -> None:
    status = deployment.status
    why = f": {status.message}" if status.message else ""
    words = f"{deployment.name} is {status.phase}, {status.ready} of {status.wanted} replicas ready"
    say(head, deployment, f"{words} (generation {deployment.generation}){why}")


def _warn_of_missing(head: Head, name: str, settings: SettingsModel) -> None:
    """Says which deployments of a ladder or canary are not there: they may come later."""
    canaries = [each.deployment for each in settings.canary]
    others = dict.fromkeys((*degrading(settings.degrade, settings.context).fallbacks, *canaries))
    if not others:
        return
    known = {each.name for each in head.ask(lambda admin: admin.deployments())}
    for other in others:
        if other not in known:
            typer.echo(
                f"note: there is no deployment {other}: {name} passes it over until there is",
                err=True,
            )


def _from_file(file: Path | None) -> dict[str, Any]:
    """The spec in a file: alone, or inside of what the API tells of a deployment."""
    if file is None:
        return {}
    try:
        found = json.loads(sys.stdin.read() if str(file) == "-" else file.read_text())
    except OSError as error:
        raise invalid_setting(f"-f is {file}: {error.strerror}") from error
    except ValueError as error:
        raise invalid_setting(f"-f is {file}, which is not JSON: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("spec", {}), dict):
        raise invalid_setting(f"-f is {file}: it must hold a JSON object, the deployment's spec")
    return dict(found.get("spec", found))
