"""`penstock rollout evidence` and `policy`: what was found of revisions, and what has to be."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.control.admin.rollout.evidence_models import (
    DeploymentPolicyModel,
    NewRevisionEvidenceModel,
    RevisionEvidenceModel,
)
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import say, say_json, say_list, verb
from penstock.control.cli.rollout.rollouts import Name
from penstock.control.cli.rollout.rollouts import rollout as rollout
from penstock.control.cli.tables import day
from penstock.control.errors import invalid_setting
from penstock.control.serving.settings_text import checked, pairs

COLUMNS = ("evidence", "kind", "verdict", "at", "of", "report")


@verb(rollout, "evidence")
def evidence(
    head: Head,
    name: Name,
    revision: Annotated[int | None, typer.Argument(min=1, help="Default: the present one.")] = None,
    put: Annotated[
        str, typer.Option(metavar="KIND", help="Keep a finding of this kind, dated now.")
    ] = "",
    passed: Annotated[bool | None, typer.Option("--passed/--failed", help="Its verdict.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="A file with its report, a JSON object.")
    ] = None,
) -> None:
    """Show what was found of what a revision's replicas are made of, or keep a finding.

    \b
    Examples:
      penstock rollout evidence chat 4
      penstock rollout evidence chat 4 --put quantization-regression --passed --report report.json
    """
    number = revision or _present(head, name)
    if put:
        told = checked(NewRevisionEvidenceModel, _found(put, passed, report))
        made = head.ask(lambda admin: admin.put_revision_evidence(name, number, told))
        return say(head, made, f"revision {number} of {name} {_verdict(made)} {made.kind}")
    if passed is not None or report is not None:
        raise invalid_setting("--passed, --failed and --report go with --put KIND: say of which")
    found = head.ask(lambda admin: admin.revision_evidence(name, number))
    say_list(head, f"Evidence of revision {number} of {name}", COLUMNS, found, _row)


@verb(rollout, "policy")
def policy(
    head: Head,
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="What is to change.")
    ] = None,
) -> None:
    """Show or change what has to be found of a template before clients have it.

    \b
    Keys, with their defaults:
      evidence_for=           canary (a share of the clients), live (all of them, without a canary
                              that passed), or both with a comma
      kind=                   of the evidence; empty: any
      not_older_than_hours=0  0: as old as it may be

    \b
    Examples:
      penstock rollout policy
      penstock rollout policy evidence_for=live not_older_than_hours=168
    """
    found = head.ask(lambda admin: admin.deployment_policy())
    if named := pairs(settings or (), "setting", "evidence_for=live"):
        asked = {**found.model_dump(), **{key: _setting(key, named[key]) for key in named}}
        wanted = checked(DeploymentPolicyModel, asked)
        found = head.ask(lambda admin: admin.set_deployment_policy(wanted))
    if head.as_json:
        return say_json(found)
    stages = ", ".join(found.evidence_for)
    typer.echo(f"evidence before: {stages or 'nothing'}")
    if stages:
        age = f", at most {found.not_older_than_hours} h old" if found.not_older_than_hours else ""
        typer.echo(f"of kind: {found.kind or 'any'}{age}")


def _present(head: Head, name: str) -> int:
    return max(each.number for each in head.ask(lambda admin: admin.revisions(name)))


def _found(kind: str, passed: bool | None, report: Path | None) -> dict[str, Any]:
    if passed is None:
        raise invalid_setting("--put takes a verdict: --passed or --failed")
    said = {"kind": kind, "passed": passed, "at": datetime.now(UTC).isoformat()}
    if report is None:
        return said
    try:
        return {**said, "report": json.loads(report.read_bytes())}
    except (OSError, ValueError) as error:
        raise invalid_setting(f"--report {report}: {error}") from None


def _setting(key: str, text: str) -> Any:
    if key == "evidence_for":
        return [part.strip() for part in text.split(",") if part.strip()]
    return int(text) if text.isascii() and text.isdecimal() else text


def _verdict(it: RevisionEvidenceModel) -> str:
    return "passed" if it.passed else "failed"


def _row(it: RevisionEvidenceModel) -> tuple[str, ...]:
    of = f"revision {it.revision} of {it.deployment}"
    return (it.id, it.kind, _verdict(it), day(it.at), of, "yes" if it.has_report else "")
