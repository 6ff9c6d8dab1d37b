"""`penstock adapters`: LoRA adapter versions, from registered to removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.adapters.adapter import AdapterRef, BadAdapterRef
from penstock.control.admin.adapters.models import (
    AdapterManifestModel,
    AdapterModel,
    AdapterPolicyModel,
    WhereModel,
)
from penstock.control.cli.adapters.uploading import shown_upload
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import confirm, say, say_fields, say_json, say_list, verb
from penstock.control.cli.options import AbortCanary, Yes
from penstock.control.errors import invalid_setting
from penstock.control.serving.settings_text import checked, pairs

adapters = typer.Typer(
    name="adapters",
    no_args_is_help=True,
    help="LoRA adapter versions: add, list, show, diff, promote, retire, where, remove, policy.",
)

COLUMNS = ("adapter", "state", "family", "rank", "size", "digest", "aliases")
WHERE_COLUMNS = ("replica", "deployment", "node", "state", "kept", "reason")
MIB = 1 << 20
PATH_LIKE = ("/", "./", "../", "~")

Ref = Annotated[str, typer.Argument(metavar="NAME@VERSION", help="An adapter version.")]


@verb(adapters, "add")
def add(
    head: Head,
    adapter: Ref,
    source: Annotated[
        str,
        typer.Argument(
            help="A directory here, which is uploaded; or what the head reads: "
            "s3://bucket/prefix, hf:org/name, a name that comes with Penstock."
        ),
    ],
    base: Annotated[
        str, typer.Option(help="The deployment that it is for, or the model that one serves.")
    ],
    label: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="For people. Repeatable.")
    ] = None,
    on_head: Annotated[
        bool, typer.Option("--on-head", help="SOURCE is a directory on the head's machine.")
    ] = False,
) -> None:
    """Register an adapter version. It is checked and stored, or refused with nothing kept.

    \b
    Examples:
      penstock adapters add pirate@2 ./pirate-lora --base mini
      penstock adapters add support@7 s3://models/support/7 --base mini --label run=1234
    """
    name = _ref(adapter)
    labels = pairs(label or (), "label", "run=1234")
    manifest = checked(
        AdapterManifestModel,
        {"name": name.name, "version": name.version, "base": base, "labels": labels},
    )
    directory = Path(source).expanduser()
    if not on_head:
        _check_path(source, directory)
    if directory.is_dir() and not on_head:
        with shown_upload(manifest.model_dump(), directory) as upload:
            made, is_new = head.ask(
                lambda admin: admin.upload_adapter(upload.content(), upload.content_type)
            )
    else:
        made, is_new = head.ask(
            lambda admin: admin.register_adapter(
                manifest.name, manifest.version, base, source, labels
            )
        )
    what = "is registered" if is_new else "was registered before, with the same bytes"
    words = f"{made.adapter} {what} (sha256 {made.digest[:12]}, {_size(made)})"
    say(head, made, words)


@verb(adapters, "list")
def list_adapters(head: Head) -> None:
    """Show all versions.

    Example: penstock adapters list
    """
    found = head.ask(lambda admin: admin.adapters())
    say_list(head, "Adapters", COLUMNS, found, _row)


@verb(adapters, "show")
def show(head: Head, adapter: Ref) -> None:
    """Show everything about one version.

    Example: penstock adapters show pirate@1
    """
    found = head.ask(lambda admin: admin.adapter(adapter))
    say_fields(head, found, lambda _, value: _told(value))
    if head.as_json:
        return
    for each in head.ask(lambda admin: admin.evidence(adapter)):
        verdict = "passed" if each.passed else "failed"
        typer.echo(f"evidence: {each.kind} {verdict} {each.at:%Y-%m-%d %H:%M} ({each.id})")


@verb(adapters, "diff")
def diff(
    head: Head,
    one: Ref,
    other: Annotated[str, typer.Argument(metavar="NAME@VERSION", help="Another.")],
) -> None:
    """Show in what two versions differ.

    Example: penstock adapters diff pirate@1 pirate@2
    """
    left, right = (
        head.ask(lambda admin: admin.adapter(one)),
        head.ask(lambda admin: admin.adapter(other)),
    )
    a, b = left.model_dump(mode="json"), right.model_dump(mode="json")
    differs = {key: [a[key], b[key]] for key in a if a[key] != b[key]}
    if head.as_json:
        typer.echo(json.dumps(differs, indent=2))
        return
    if a["digest"] == b["digest"]:
        typer.echo("the bytes are the same")
    for key, (was, now) in differs.items():
        typer.echo(f"{key}:\n  - {_told(was)}\n  + {_told(now)}")


@verb(adapters, "promote")
def promote(
    head: Head, adapter: Ref, to: Annotated[str, typer.Option(help="canary or live.")] = "live"
) -> None:
    """Bring a version forward. `penstock adapters policy` says which evidence that takes.

    Example: penstock adapters promote pirate@2 --to canary
    """
    if to not in ("canary", "live"):
        raise invalid_setting(f"--to is {to!r}: say canary or live")
    _say_state(head, head.ask(lambda admin: admin.promote_adapter(adapter, to)))


@verb(adapters, "retire")
def retire(head: Head, adapter: Ref, abort_canary: AbortCanary = False) -> None:
    """Have nobody ask for a version any more. No alias may name it.

    Example: penstock adapters retire pirate@1
    """
    over = {"abort_canary": abort_canary}
    _say_state(head, head.ask(lambda admin: admin.retire_adapter(adapter, **over)))


@verb(adapters, "where")
def where(head: Head, adapter: Ref) -> None:
    """Show on which replicas a version is, by their own word.

    Example: penstock adapters where pirate@1
    """
    found = head.ask(lambda admin: admin.where_adapter(adapter))
    say_list(head, f"Where {adapter} is", WHERE_COLUMNS, found, _where_row)


@verb(adapters, "remove")
def remove(head: Head, adapter: Ref, yes: Yes = False, abort_canary: AbortCanary = False) -> None:
    """Delete a version for good: its name is never given again. No alias may name it.

    At a terminal it asks first; elsewhere it takes --yes.

    Example: penstock adapters remove pirate@1
    """
    if not yes:
        known = head.ask(lambda admin: admin.adapter(adapter))
        confirm(f"{known.adapter} is deleted for good, its name is never given again")
    head.ask(lambda admin: admin.remove_adapter(adapter, abort_canary=abort_canary))
    say(head, {"deleted": adapter}, f"{adapter} is deleted")


@verb(adapters, "policy")
def policy(
    head: Head,
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="What is to change.")
    ] = None,
) -> None:
    """Show or change what a promotion asks for.

    \b
    Keys, with their defaults:
      evidence_for=            states that take evidence: canary, live, or both with a comma
      kind=adapter-regression  of the evidence
      not_older_than_hours=0   0: as old as it may be

    \b
    Examples:
      penstock adapters policy
      penstock adapters policy evidence_for=live not_older_than_hours=168
    """
    found = head.ask(lambda admin: admin.adapter_policy())
    if named := pairs(settings or (), "setting", "evidence_for=live"):
        asked = {**found.model_dump(), **{key: _setting(key, named[key]) for key in named}}
        wanted = checked(AdapterPolicyModel, asked)
        found = head.ask(lambda admin: admin.set_adapter_policy(wanted))
    if head.as_json:
        say_json(found)
        return
    states = ", ".join(found.evidence_for)
    typer.echo(f"evidence before: {states or 'nothing'}")
    if states:
        age = f", at most {found.not_older_than_hours} h old" if found.not_older_than_hours else ""
        typer.echo(f"of kind: {found.kind}{age}")


def _check_path(source: str, directory: Path) -> None:
    """A path that leads nowhere here is no business of the head's machine."""
    if source.startswith(PATH_LIKE) and not directory.is_dir():
        what = "is no directory" if directory.exists() else "is not there"
        raise invalid_setting(
            f"{source} {what}, on this machine: name the directory of the adapter's files here, or"
            " one of the head's machine with --on-head"
        )


def _ref(text: str) -> AdapterRef:
    try:
        return AdapterRef.parse(text)
    except BadAdapterRef as error:
        raise invalid_setting(str(error)) from None


def _setting(key: str, text: str) -> Any:
    if key == "evidence_for":
        return [part.strip() for part in text.split(",") if part.strip()]
    return int(text) if text.isascii() and text.isdecimal() else text


def _say_state(head: Head, adapter: AdapterModel) -> None:
    say(head, adapter, f"{adapter.adapter} is {adapter.state}")


def _told(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_told(each) for each in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}={each}" for key, each in value.items())
    return str(value)


def _size(adapter: AdapterModel) -> str:
    if adapter.bytes < MIB:
        return f"{adapter.bytes / 1024:.0f} KiB"
    return f"{adapter.bytes / MIB:.1f} MiB"


def _row(it: AdapterModel) -> tuple[str, ...]:
    aliases = ", ".join(it.aliases)
    return (it.adapter, it.state, it.family, str(it.rank), _size(it), it.digest[:12], aliases)


def _where_row(it: WhereModel) -> tuple[str, ...]:
    kept = "pinned" if it.pinned else "yes" if it.kept else ""
    return (it.replica, it.deployment, it.node, it.state, kept, it.reason)
