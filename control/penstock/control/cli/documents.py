"""`penstock apply`, `diff`, `export` and `schema`: files that say what there is to be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from penstock.control import spec_files
from penstock.control.admin.apply.models import OverwrittenModel, PlanModel, StepModel
from penstock.control.admin.apply.schema import schema as schema_of
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import asks_head, say_json
from penstock.control.cli.options import AbortCanary, DryRun, Files, Force, HandOver, Reason, Wait
from penstock.control.cli.outcome import finish
from penstock.control.cli.rollout.following import follow
from penstock.control.errors import BadDocuments
from penstock.control.state.applying import Action
from penstock.control.state.fleet.memory import FitVerdict

GIB = 1 << 30
DIFFERS, FAILED = 1, 2  # as `diff` and kubectl have them

SetName = Annotated[
    str, typer.Option(help="Of the files that are applied together: what it made, --prune deletes.")
]
Prune = Annotated[
    bool,
    typer.Option("--prune", help="Delete what this set made before and the files say no longer."),
]


@asks_head("apply")
def apply(
    head: Head,
    file: Files,
    dry_run: DryRun = False,
    prune: Prune = False,
    set_name: SetName = "default",
    force: Force = False,
    reason: Reason = "",
    wait: Wait = False,
    abort_canary: AbortCanary = False,
    hand_over: HandOver = False,
) -> None:
    """Make what files say: all of it, or nothing.

    The same files twice change nothing. What a document does not name stays as it is; what it named
    when it was applied last and names no longer takes its default.

    \b
    Examples:
      penstock apply -f penstock.yaml --dry-run
      penstock apply -f fleet/ --prune --wait --reason "as reviewed"
      penstock export | sed s/old/new/ | penstock apply -f -
    """
    how = {"prune": prune, "force": force, "dry_run": dry_run, "abort_canary": abort_canary}
    how["hand_over"] = hand_over
    plan = _sent(head, file, set_name, reason=reason, **how)
    if head.as_json:
        say_json(plan)
    else:
        for line in lines_of(plan):
            typer.echo(line)
    for step in plan.steps if wait and not dry_run else ():
        if step.kind == "deployment" and step.action in (Action.CREATE, Action.CHANGE):
            _follow(head, step.name)


@asks_head("diff", failing=FAILED)
def diff(head: Head, file: Files, prune: Prune = False, set_name: SetName = "default") -> None:
    """Say what applying files would change, and nothing else: exit code 0 where they say what there
    is, 1 where they differ, 2 where they cannot be applied.

    Example: penstock diff -f penstock.yaml
    """
    plan = _sent(head, file, set_name, prune=prune, dry_run=True)
    if head.as_json:
        say_json(plan)
    elif plan.same != len(plan.steps):
        for line in lines_of(plan):
            typer.echo(line)
    if plan.same != len(plan.steps):
        finish(DIFFERS)


@asks_head("export")
def export(head: Head) -> None:
    """Write what there is as a file that `penstock apply` takes, and that changes nothing.

    Keys, secrets and contents of adapters are no part of it.

    Example: penstock export > now.yaml
    """
    documents = head.ask(lambda admin: admin.export())
    if head.as_json:
        typer.echo(json.dumps(documents, indent=2))
    else:
        typer.echo(spec_files.written(documents), nl=False)


def schema() -> None:
    """Write the JSON schema of such files, by which editors complete and check them.

    Example: penstock schema > penstock.schema.json
    """
    typer.echo(json.dumps(schema_of(), indent=2))


def lines_of(plan: PlanModel) -> Iterator[str]:
    """What a plan does, or would do, a line for each object that does not stay as it is."""
    would = "" if plan.applied else "would be "
    said = {Action.CREATE: "created", Action.CHANGE: "changed", Action.DELETE: "deleted"}
    for step in plan.steps:
        if step.action is not Action.SAME:
            yield f"{_name(step)} {would}{said[step.action]}{_details(step, plan)}"
    yield (
        f"{plan.created} {would}created, {plan.changed} {would}changed, {plan.deleted}"
        f" {would}deleted, {plan.same} the same"
    )


def _details(step: StepModel, plan: PlanModel) -> str:
    theirs = {each.field: _theirs(each, plan) for each in step.overwrites}
    fields = [
        f"{each.field} {_shown(each.before)} -> {_shown(each.after)}{theirs.get(each.field, '')}"
        for each in step.fields
        if step.action is Action.CHANGE
    ]
    refused = "" if plan.applied else step.refused
    forced = [f"by force alone: {refused}"] if refused else []
    effects = [*_effects(step), *_memory(step), *forced]
    return (": " if fields else "") + ", ".join(fields) + "".join(f"\n  {each}" for each in effects)


def _theirs(change: OverwrittenModel, plan: PlanModel) -> str:
    who = change.by or "somebody else"
    return f" ({who} had set it)" if plan.applied else f" ({who} has set it: by force alone)"


def _effects(step: StepModel) -> Iterator[str]:
    effect = step.effect
    if effect and effect.replaces:
        yield f"{effect.replaces} replicas are replaced, {effect.surge or 1} at a time"
    if effect and not effect.fits:
        yield effect.message


def _memory(step: StepModel) -> Iterator[str]:
    """What is known of the memory that a replica would take."""
    fit = step.memory
    if fit is None:
        return
    if fit.verdict in (FitVerdict.FITS, FitVerdict.TIGHT):
        needs = f"a replica needs {_gib(fit.needed_bytes)} GiB"
        said = ": under load, memory may run out" if fit.verdict is FitVerdict.TIGHT else ""
        yield f"{needs}, {_gib(fit.free_bytes)} are free on node {fit.node}{said}"
    elif fit.verdict is FitVerdict.TOO_LARGE:
        helps = f"; what helps: {', or '.join(fit.advice)}" if fit.advice else ""
        needs = f"a replica needs {_gib(fit.needed_bytes)} GiB, {_gib(fit.free_bytes)} are free"
        yield f"node {fit.node} would refuse it: {needs}; {fit.reason}{helps}"
    elif fit.node:
        yield f"not known what memory it takes: {fit.reason}"


def _gib(count: int) -> str:
    return f"{count / GIB:.1f}"


def _name(step: StepModel) -> str:
    return step.kind if step.name == step.kind else f"{step.kind} {step.name}"


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def _sent(head: Head, files: Sequence[str], set_name: str, **how: Any) -> PlanModel:
    documents = spec_files.read(files)
    said = [each.said for each in documents]
    try:
        return head.ask(lambda admin: admin.apply(said, set_name=set_name, **how))
    except BadDocuments as error:
        raise spec_files.placed(error, documents) from None


def _follow(head: Head, name: str) -> None:
    if made := head.ask(lambda admin: admin.deployment(name)):
        follow(head, made)
