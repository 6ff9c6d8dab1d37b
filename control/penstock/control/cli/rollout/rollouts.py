"""`penstock rollout`: what replicas were made of, back to it, and how far a change has come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from penstock.control.admin.rollout.revision_models import RevisionModel, SettingsChangeModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import say, say_list, verb
from penstock.control.cli.options import AbortCanary, HandOver, Reason, Wait
from penstock.control.cli.rollout.following import follow, words
from penstock.control.cli.tables import day
from penstock.control.errors import Code, NotFound
from penstock.control.state.rollout.template import Template

rollout = typer.Typer(
    name="rollout",
    no_args_is_help=True,
    help="What replicas are made of: history, undo, restart, pause, resume, status.",
)

COLUMNS = ("revision", "state", "model", "settings", "at", "by", "reason")
SETTINGS_COLUMNS = ("change", "settings", "at", "by", "reason")
Settings = Annotated[
    bool, typer.Option("--settings", help="Of its settings that take no new replicas.")
]
Name = Annotated[str, typer.Argument(help="The deployment, as clients name it.")]


@verb(rollout, "status")
def status(
    head: Head,
    name: Name,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Say how it stands, and end.")] = False,
) -> None:
    """Follow a change of a deployment until all its replicas are of it, and ready.

    Ends with 0 then, with 1 where something else came of it. Example: penstock rollout status mini
    """
    known = head.ask(lambda admin: admin.deployment(name))
    if known is None:
        raise NotFound(f"no deployment {name!r}", Code.UNKNOWN_DEPLOYMENT)
    if no_wait:
        return say(head, known, f"{name}: {words(known)}")
    return follow(head, known)


@verb(rollout, "history")
def history(head: Head, name: Name, settings: Settings = False) -> None:
    """Show the revisions of a deployment that are kept, newest first; or changes of its settings.

    Example: penstock rollout history mini
    """
    if settings:
        changes = head.ask(lambda admin: admin.settings_changes(name))
        return say_list(head, f"Settings of {name}", SETTINGS_COLUMNS, changes, _change)
    found = head.ask(lambda admin: admin.revisions(name))
    say_list(head, f"Revisions of {name}", COLUMNS, found, _row)


@verb(rollout, "undo")
def undo(
    head: Head,
    name: Name,
    to: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="The revision, or the change of settings. Default: the last revision that served,"
            " the settings before the last change.",
        ),
    ] = None,
    settings: Settings = False,
    reason: Reason = "",
    wait: Wait = False,
    abort_canary: AbortCanary = False,
    hand_over: HandOver = False,
) -> None:
    """Make a deployment's replicas again of what an earlier revision made them of; or its settings
    as they were after a change, or before the last one.

    Example: penstock rollout undo mini --reason "answers too slow"
    """
    body: dict[str, int | None] = {"revision": to}
    if settings:
        body = {"settings": -1 if to is None else to}  # -1: before the last change
    over = {"abort_canary": abort_canary, "hand_over": hand_over}
    _move(head, name, "rollback", body, reason=reason, wait=wait, **over)


@verb(rollout, "restart")
def restart(
    head: Head,
    name: Name,
    reason: Reason = "",
    wait: Wait = False,
    abort_canary: AbortCanary = False,
    hand_over: HandOver = False,
) -> None:
    """Replace every replica of a deployment by a new one of the same, without a lost request.

    \b
    Examples:
      penstock rollout restart mini
      penstock rollout restart mini --hand-over
    """
    over = {"abort_canary": abort_canary, "hand_over": hand_over}
    _move(head, name, "restart", reason=reason, wait=wait, **over)


@verb(rollout, "pause")
def pause(head: Head, name: Name, reason: Reason = "", abort_canary: AbortCanary = False) -> None:
    """Stop a change of a deployment where it is; what runs stays.

    Example: penstock rollout pause mini
    """
    _move(head, name, "pause", reason=reason, wait=False, abort_canary=abort_canary)


@verb(rollout, "resume")
def resume(
    head: Head,
    name: Name,
    reason: Reason = "",
    wait: Wait = False,
    abort_canary: AbortCanary = False,
    hand_over: HandOver = False,
) -> None:
    """Go on with a change that was paused, or try one that failed once more.

    Example: penstock rollout resume mini --wait
    """
    over = {"abort_canary": abort_canary, "hand_over": hand_over}
    _move(head, name, "resume", reason=reason, wait=wait, **over)


def _move(
    head: Head,
    name: str,
    verb: str,
    body: Mapping[str, int | None] | None = None,
    /,
    *,
    reason: str,
    wait: bool,
    **over: bool,
) -> None:
    made = head.ask(lambda admin: admin.move_rollout(name, verb, body, reason=reason, **over))
    say(head, made, f"{made.name}: {words(made)}")
    if wait:
        follow(head, made)


def _change(it: SettingsChangeModel) -> tuple[str, ...]:
    said = ", ".join(f"{name}: {old} -> {it.after[name]}" for name, old in it.before.items())
    return (f"{it.number}", said, day(it.at), it.by, it.reason)


def _row(it: RevisionModel) -> tuple[str, ...]:
    made = it.spec.model_dump()
    engine_args = made.pop("engine_args")
    model, engine = made.pop("model"), made.pop("engine")
    unset = Template(engine, model)
    said = {name: value for name, value in made.items() if value != getattr(unset, name)}
    settings = " ".join(f"{name}={value}" for name, value in {**said, **engine_args}.items())
    number = f"{it.number}{' (current)' if it.current else ''}"
    return (number, it.state, model, settings, day(it.at), it.by, it.reason)
