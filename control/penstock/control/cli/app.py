"""The `penstock` command as a whole."""

from __future__ import annotations

from importlib import metadata
from typing import Annotated

import typer

from penstock.control.cli.adapters.aliases import alias
from penstock.control.cli.adapters.verbs import adapters
from penstock.control.cli.backup import backup, restore
from penstock.control.cli.fleet.status import status
from penstock.control.cli.fleet.verbs import drain, nodes, replace
from penstock.control.cli.processes import head, node
from penstock.control.cli.recording.replaying import replay
from penstock.control.cli.recording.verbs import record
from penstock.control.cli.rollout.deployments import change_settings, delete, deploy, scale
from penstock.control.cli.rollout.trying import spend, try_out
from penstock.control.cli.routing.quarantine import quarantine
from penstock.control.cli.serve import HELP as SERVE_HELP
from penstock.control.cli.serve import serve
from penstock.control.cli.shadow.verbs import shadow
from penstock.control.cli.tenancy.keys import keys
from penstock.control.cli.tenancy.tenants import tenants
from penstock.control.cli.tenancy.tokens import tokens
from penstock.control.cli.tenancy.usage import usage

app = typer.Typer(
    name="penstock",
    help="An OpenAI-compatible gateway for teams that serve their own LLMs.",
    epilog="Start here: penstock serve",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"penstock {metadata.version('penstock')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """An OpenAI-compatible gateway for teams that serve their own LLMs."""


app.command(rich_help_panel="On one machine", help=SERVE_HELP)(serve)
app.command(rich_help_panel="Looking")(status)
app.command(rich_help_panel="Looking")(usage)
app.command(rich_help_panel="Looking")(spend)
app.command("test", rich_help_panel="Looking")(try_out)
app.command(rich_help_panel="Looking")(replay)
app.command(rich_help_panel="Changing")(deploy)
# "-1" is a number that is too small, and no option.
app.command(rich_help_panel="Changing", context_settings={"ignore_unknown_options": True})(scale)
app.command("set", rich_help_panel="Changing")(change_settings)
for verb in (delete, drain, replace):
    app.command(rich_help_panel="Changing")(verb)
app.add_typer(nodes, rich_help_panel="Changing")
app.add_typer(adapters, rich_help_panel="Changing")
app.add_typer(alias, rich_help_panel="Changing")
app.add_typer(shadow, rich_help_panel="Looking")
app.add_typer(record, rich_help_panel="Looking")
app.add_typer(quarantine, rich_help_panel="Changing")
app.add_typer(tenants, rich_help_panel="Changing")
app.add_typer(keys, rich_help_panel="Changing")
app.add_typer(tokens, rich_help_panel="Changing")
app.command(rich_help_panel="Keeping")(backup)
app.command(rich_help_panel="Keeping")(restore)
app.command(rich_help_panel="On many machines")(head)
app.command(rich_help_panel="On many machines")(node)
