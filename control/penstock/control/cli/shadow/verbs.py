"""`penstock shadow`: is another model worse? Asked of clients' own requests, unseen by them."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from penstock.control.admin.shadow.models import (
    ShadowMadeModel,
    ShadowModel,
    ShadowReportModel,
    ShadowSpecModel,
)
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import confirm, say, say_fields, say_list, verb
from penstock.control.cli.named_settings import Vocabulary, named_settings
from penstock.control.cli.options import DryRun, Yes
from penstock.control.cli.shadow.exporting import EXPERIMENT, as_lines, to_mlflow
from penstock.control.cli.shadow.promises import beforehand, planned
from penstock.control.cli.tables import notes, show
from penstock.control.declared.listing import listing
from penstock.control.errors import PenstockError
from penstock.control.serving.settings_text import checked
from penstock.control.state.shadow.spec import ShadowSpec

shadow = typer.Typer(
    name="shadow",
    no_args_is_help=True,
    help="Is another model worse? create, list, show, report, export, pause, resume, delete.",
)

COLUMNS = ("name", "primary", "candidate", "share", "state", "pairs", "verdict")
KNOWN = Vocabulary(
    ShadowSpec,
    apart=("name", "primary", "candidate"),
    names={
        "until_pairs": "until.pairs",
        "until_at": "until.at",
        "margins": "margin.CHECK",
        "guardrails": "guardrail.NAME",
    },
    inner={"margin.": "margins", "until.": "until"},
    verbatim={"guardrail.": "guardrails"},
)
USUAL_SHARE = 100  # permille

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the shadow.")]


@verb(shadow, "create")
@listing(keys=KNOWN.listed(share_permille=USUAL_SHARE, until_pairs=""))
def create(
    head: Head,
    name: Name,
    primary: Annotated[
        str, typer.Argument(metavar="PRIMARY", help="Deployment, or deployment:alias.")
    ],
    candidate: Annotated[
        str | None,
        typer.Argument(
            metavar="[CANDIDATE]",
            help="Deployment, or deployment:name@version. Default: the primary, an A/A run.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="As the list below has them."),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Repeat requests of a deployment to another one, once they are answered, and compare the
    answers. Clients notice nothing: a repeated request gives way to theirs.

    \b
    Keys, with their defaults:
      {keys}

    \b
    Examples:
      penstock shadow create trust chat                  the model beside itself: must be equal
      penstock shadow create smaller chat chat-int8 share_permille=200 until.pairs=3000
    """
    words = list(settings or ())
    if candidate is not None and "=" in candidate:
        words, candidate = [candidate, *words], None
    named = {"name": name, "primary": primary, "candidate": candidate or primary}
    wanted = {"share_permille": USUAL_SHARE, **named_settings(words, KNOWN), **named}
    asked = checked(ShadowSpecModel, wanted).model_dump(mode="json", exclude_unset=True)
    made = head.ask(lambda admin: admin.create_shadow(asked, dry_run=dry_run))
    _say(head, made, "would be made" if dry_run else "is made")
    if not head.as_json:
        _say_beforehand(head, made, dry_run=dry_run)


@verb(shadow, "list")
def list_shadows(head: Head) -> None:
    """Show all shadows.

    Example: penstock shadow list
    """
    found = head.ask(lambda admin: admin.shadows())
    say_list(head, "Shadows", COLUMNS, found, _row)
    if not head.as_json:
        show(*notes((it.name, it.message) for it in found))


@verb(shadow, "show")
def show_shadow(head: Head, name: Name) -> None:
    """Show one shadow with all its settings.

    Example: penstock shadow show smaller
    """
    found = head.ask(lambda admin: admin.shadow(name))
    say_fields(head, found, exclude_none=True)


@verb(shadow, "report")
def report(
    head: Head,
    name: Name,
    markdown: Annotated[bool, typer.Option("--markdown", help="As a document.")] = False,
    html: Annotated[bool, typer.Option("--html", help="As a page with plots.")] = False,
) -> None:
    """Say whether the candidate is worse, and by which check. Look as often as you like: the error
    rate holds all the same.

    \b
    Examples:
      penstock shadow report smaller
      penstock shadow report smaller --html > smaller.html
    """
    found = head.ask(lambda admin: admin.shadow_report(name))
    if head.as_json:
        typer.echo(json.dumps(found.report, indent=2))
    elif markdown or html:
        typer.echo(found.html if html else found.markdown)
    else:
        _say_report(found)


@verb(shadow, "export", has_json=False)
def export(
    head: Head,
    name: Name,
    mlflow: Annotated[
        str | None,
        typer.Option(metavar="URI", help="Leave it as a run there; wants penstock[mlflow]."),
    ] = None,
    experiment: Annotated[str, typer.Option(help="Of MLflow.")] = EXPERIMENT,
) -> None:
    """Print what was counted as JSON Lines: the shadow with its verdict, each check, what became of
    the requests. No prompt and no answer is in it. With --mlflow it becomes a run there instead.

    \b
    Examples:
      penstock shadow export smaller > smaller.jsonl
      penstock shadow export smaller --mlflow sqlite:///mlflow.db
    """
    found = head.ask(lambda admin: admin.shadow_report(name))
    if mlflow:
        typer.echo(f"shadow {name} is run {to_mlflow(found, mlflow, experiment)} of {experiment}")
        return
    for line in as_lines(found):
        typer.echo(line)


@verb(shadow, "pause")
def pause(head: Head, name: Name) -> None:
    """Repeat nothing until it is resumed; what was compared stays.

    Example: penstock shadow pause smaller
    """
    _say(head, head.ask(lambda admin: admin.pause_shadow(name)), "is paused")


@verb(shadow, "resume")
def resume(head: Head, name: Name) -> None:
    """Go on with a shadow that was paused.

    Example: penstock shadow resume smaller
    """
    _say(head, head.ask(lambda admin: admin.resume_shadow(name)), "goes on")


@verb(shadow, "delete")
def delete(head: Head, name: Name, yes: Yes = False) -> None:
    """End a shadow, and forget all that it compared.

    At a terminal it asks first; elsewhere it takes --yes.

    Example: penstock shadow delete smaller
    """
    if not yes:
        known = head.ask(lambda admin: admin.shadow(name))
        confirm(f"shadow {known.name} and its {known.pairs:,} pairs are forgotten")
    head.ask(lambda admin: admin.delete_shadow(name))
    say(head, {"deleted": name}, f"shadow {name} is deleted")


def _say(head: Head, found: ShadowModel, what: str) -> None:
    words = f"shadow {found.name} {what}: {found.candidate} beside {found.primary}"
    say(head, found, words)


def _say_beforehand(head: Head, made: ShadowMadeModel, *, dry_run: bool) -> None:
    """What its margins can show. Where it is made, a comparer that is not there yet is no
    failure."""
    if dry_run:
        plan = planned(made)
    else:
        try:
            plan = head.ask(lambda admin: admin.shadow_report(made.name)).report["plan"]
        except PenstockError as error:
            typer.echo(f"what its margins can show: penstock shadow report {made.name} ({error})")
            return
    for line in beforehand(made.pairs_a_day, plan):
        typer.echo(line)


def _say_report(found: ShadowReportModel) -> None:
    report = found.report
    typer.echo(f"{report['verdict']}: {report['candidate']} beside {report['primary']}")
    if found.message:
        typer.echo(f"  {found.state}: {found.message}")
    for reason in report["reasons"]:
        typer.echo(f"  {reason}")
    typer.echo(f"{report['pairs']:,} pairs, {report['sessions']:,} count")
    for outcome, count in sorted(report["outcomes"].items()):
        typer.echo(f"  {outcome}: {count:,}")


def _row(it: ShadowModel) -> tuple[str, ...]:
    share, pairs = f"{it.share_permille / 10:g} %", f"{it.pairs:,}"
    return (it.name, it.primary, it.candidate, share, it.state, pairs, it.verdict)
