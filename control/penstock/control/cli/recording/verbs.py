"""`penstock record`: clients' requests as a file, which can be sent once more."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.control.admin.recording.models import RecordingModel, RecordingSpecModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import confirm, say, say_fields, say_list, verb
from penstock.control.cli.named_settings import Vocabulary, named_settings
from penstock.control.cli.options import DryRun, Yes
from penstock.control.cli.tables import notes, show
from penstock.control.declared.listing import listing
from penstock.control.outside.admin_client import AdminClient
from penstock.control.serving.settings_text import checked
from penstock.control.state.recording.spec import RecordingSpec

record = typer.Typer(
    name="record",
    no_args_is_help=True,
    help="Keep clients' requests as a file that can be replayed: start, stop, list, show, export, "
    "delete.",
)

COLUMNS = ("name", "primary", "share", "record", "state", "requests")
KNOWN = Vocabulary(
    RecordingSpec,
    apart=("name", "primary"),
    names={
        "until_requests": "until.requests",
        "until_mib": "until.mib",
        "until_at": "until.at",
    },
    inner={"until.": "until"},
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the recording.")]


@verb(record, "start")
@listing(keys=KNOWN.listed())
def start(
    head: Head,
    name: Name,
    primary: Annotated[
        str, typer.Argument(metavar="DEPLOYMENT", help="Or deployment:alias: whose requests.")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="As the list below has them."),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Keep requests of a deployment, with when they came and how they were answered, until there
    are enough. Tenants with shadow=never are left out.

    \b
    Keys, with their defaults:
      {keys}

    \b
    Examples:
      penstock record start monday chat share_permille=1000 until.requests=500
      penstock record export monday > monday.jsonl
      penstock replay monday.jsonl --speed 2
    """
    named = {"name": name, "primary": primary}
    wanted = {**named_settings(settings or (), KNOWN), **named}
    asked = checked(RecordingSpecModel, wanted).model_dump(mode="json", exclude_unset=True)
    made = head.ask(lambda admin: admin.start_recording(asked, dry_run=dry_run))
    _say(head, made, "would be started" if dry_run else "is started")


@verb(record, "stop")
def stop(head: Head, name: Name) -> None:
    """Record nothing more; what was recorded stays.

    Example: penstock record stop monday
    """
    _say(head, head.ask(lambda admin: admin.stop_recording(name)), "is stopped")


@verb(record, "list")
def list_recordings(head: Head) -> None:
    """Show all recordings.

    Example: penstock record list
    """
    found = head.ask(lambda admin: admin.recordings())
    say_list(head, "Recordings", COLUMNS, found, _row)
    if not head.as_json:
        show(*notes((it.name, it.message) for it in found))


@verb(record, "show")
def show_recording(head: Head, name: Name) -> None:
    """Show one recording with all its settings.

    Example: penstock record show monday
    """
    found = head.ask(lambda admin: admin.recording(name))
    say_fields(head, found, exclude_none=True)


@verb(record, "export", has_json=False)
def export(head: Head, name: Name) -> None:
    """Print what was recorded as JSON Lines: what `penstock replay` and `shadow-compare
    --recording` read. It holds what clients asked: keep it accordingly.

    Example: penstock record export monday > monday.jsonl
    """
    head.ask(lambda admin: _write(admin, name))


@verb(record, "delete")
def delete(head: Head, name: Name, yes: Yes = False) -> None:
    """End a recording, and forget all that it recorded.

    At a terminal it asks first; elsewhere it takes --yes.

    Example: penstock record delete monday
    """
    if not yes:
        known = head.ask(lambda admin: admin.recording(name))
        confirm(f"recording {known.name} and its {known.kept:,} requests are forgotten")
    head.ask(lambda admin: admin.delete_recording(name))
    say(head, {"deleted": name}, f"recording {name} is deleted")


async def _write(admin: AdminClient, name: str) -> None:
    out = typer.get_binary_stream("stdout")
    async for part in admin.recording_file(name):
        out.write(part)
    out.flush()


def _say(head: Head, found: RecordingModel, what: str) -> None:
    words = f"recording {found.name} {what}: {found.record.value} requests of {found.primary}"
    say(head, found, words)


def _row(it: RecordingModel) -> tuple[str, ...]:
    share = f"{it.share_permille / 10:g} %"
    return (it.name, it.primary, share, it.record.value, it.state, f"{it.requests:,}")
