"""`penstock canary`: a share of the clients for something new, step by step on evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from penstock.control.admin.canary.models import CanaryRunModel
from penstock.control.admin.canary.spec_models import CanarySpecModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import confirm, say, say_json, say_list, verb
from penstock.control.cli.canary.following import follow
from penstock.control.cli.canary.side_by_side import parts_of
from penstock.control.cli.canary_tables import COLUMNS, canary_row
from penstock.control.cli.options import DryRun, Reason, Yes
from penstock.control.cli.tables import notes, show
from penstock.control.declared.fields import grouped, named
from penstock.control.declared.listing import json_of, key_list, listing
from penstock.control.errors import invalid_setting
from penstock.control.serving.settings_text import checked, pairs
from penstock.control.state.canary.spec import Guards

canary = typer.Typer(
    name="canary",
    no_args_is_help=True,
    help="A share of the clients for something new: start, status, list, pause, resume, promote,"
    " abort, delete.",
)

STEP = ("permille", "min_sessions", "min_seconds")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the canary.")]


@verb(canary, "start")
@listing(guards=key_list(named(Guards)))
def start(
    head: Head,
    name: Name,
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="Deployment, or deployment:alias, whose clients."),
    ],
    candidate: Annotated[
        str | None,
        typer.Argument(
            metavar="[CANDIDATE]", help="Deployment; for an alias an adapter version, name@version."
        ),
    ] = None,
    revisions: Annotated[
        bool,
        typer.Option(
            "--revisions",
            help="Instead of CANDIDATE: each new revision of a deployment that says"
            " update.canary=NAME.",
        ),
    ] = False,
    step: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PERMILLE[:SESSIONS[:SECONDS]]",
            help="A share, sessions that each arm has to have, and how long it stands at least."
            " Repeatable. Default: 10, 50, 250, 500, 1000, each with 100:60.",
        ),
    ] = None,
    guard: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="As the list below has them. Repeatable."),
    ] = None,
    shadow: Annotated[
        str | None,
        typer.Option(help="Whose verdict has to be equal or better before each next step."),
    ] = None,
    reason: Reason = "",
    dry_run: DryRun = False,
) -> None:
    """Give a candidate a share of the clients. It goes on step by step where it is not worse than
    what they have beside it, holds where that is not known, and goes back by itself where it is.

    \b
    Guards, with their defaults:
      {guards}

    \b
    Examples:
      penstock canary start next chat chat-next
      penstock canary start next chat chat-next --step 50:200:300 --step 1000
      penstock canary start next chat chat-next --guard ttft.margin=0.1
      penstock canary start pirate2 chat:pirate pirate@2
      penstock canary start careful chat --revisions
    """
    if (candidate is None) is not revisions:
        raise invalid_setting(
            "say who the candidate is, CANDIDATE, or --revisions for each new revision of TARGET:"
            " one of the two"
        )
    wanted: dict[str, Any] = {"name": name, "target": target, "candidate": candidate or ""}
    if step:
        wanted["steps"] = [_step(each) for each in step]
    if guard:
        wanted["guards"] = _guards(guard)
    if shadow:
        wanted["shadow"] = shadow
    asked = checked(CanarySpecModel, wanted).model_dump(exclude_unset=True)
    made = head.ask(lambda admin: admin.start_canary(asked, reason=reason, dry_run=dry_run))
    _say(head, made, "would start" if dry_run else _began(made))


@verb(canary, "status")
def status(
    head: Head,
    name: Name,
    follows: Annotated[
        bool, typer.Option("-f", "--follow", help="Until it ends; 1 where it is not promoted.")
    ] = False,
) -> None:
    """Show both arms of a canary side by side, what each guard says, and what is missing before the
    next step.

    \b
    Examples:
      penstock canary status next
      penstock canary status next --follow
    """
    if follows:
        return follow(head, name)
    found = head.ask(lambda admin: admin.canary(name))
    if head.as_json:
        return say_json(found)
    return show(*parts_of(found))


@verb(canary, "list")
def list_canaries(head: Head) -> None:
    """Show all canaries, those that have ended too.

    Example: penstock canary list
    """
    found = head.ask(lambda admin: admin.canaries())
    say_list(head, "Canaries", COLUMNS, found, canary_row)
    if not head.as_json:
        show(*notes((it.name, it.why) for it in found))


@verb(canary, "pause")
def pause(head: Head, name: Name, reason: Reason = "") -> None:
    """Go no further until it is resumed: the share stays, and a guard still takes it back.

    Example: penstock canary pause next
    """
    _move(head, name, "pause", reason)


@verb(canary, "resume")
def resume(head: Head, name: Name, reason: Reason = "") -> None:
    """Go on with a canary that was paused.

    Example: penstock canary resume next
    """
    _move(head, name, "resume", reason)


@verb(canary, "promote")
def promote(head: Head, name: Name, reason: Reason = "") -> None:
    """Give everybody the candidate for good, whatever is missing.

    Example: penstock canary promote next --reason "seen enough"
    """
    _move(head, name, "promote", reason)


@verb(canary, "abort")
def abort(head: Head, name: Name, reason: Reason = "") -> None:
    """Give everybody what they had before; what is under way ends where it began.

    Example: penstock canary abort next --reason "answers are odd"
    """
    _move(head, name, "abort", reason)


@verb(canary, "delete")
def delete(head: Head, name: Name, yes: Yes = False) -> None:
    """Forget a canary that has ended, or waits for a revision.

    At a terminal it asks first; elsewhere it takes --yes.

    Example: penstock canary delete next
    """
    if not yes:
        known = head.ask(lambda admin: admin.canary(name))
        confirm(f"canary {known.name} and what it counted are forgotten")
    head.ask(lambda admin: admin.delete_canary(name))
    say(head, {"deleted": name}, f"canary {name} is deleted")


def _move(head: Head, name: str, word: str, reason: str) -> None:
    found = head.ask(lambda admin: admin.move_canary(name, word, reason=reason))
    _say(head, found, f"is {found.state}".replace("_", " "))


def _say(head: Head, found: CanaryRunModel, what: str) -> None:
    candidate = found.candidate_arm or "each new revision"
    why = f" ({found.why})" if found.why else ""
    say(head, found, f"canary {found.name} {what}: {candidate} beside {found.target}{why}")


def _began(made: CanaryRunModel) -> str:
    return "waits" if made.state == "waiting" else "starts"


def _step(text: str) -> dict[str, Any]:
    parts = text.split(":")
    if len(parts) > len(STEP) or not all(each.isascii() and each.isdecimal() for each in parts):
        raise invalid_setting(
            f"--step is {text!r}: say PERMILLE[:SESSIONS[:SECONDS]], such as 50:200:300"
        )
    return dict(zip(STEP, map(int, parts), strict=False))


def _guards(words: Sequence[str]) -> dict[str, Any]:
    said = pairs(words, "--guard", "errors.ratio=2")
    return grouped({name: json_of(text) for name, text in said.items()})
