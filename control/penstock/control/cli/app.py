"""The `penstock` command as a whole."""

from __future__ import annotations

from penstock.control.cli.adapters.aliases import alias
from penstock.control.cli.adapters.verbs import adapters
from penstock.control.cli.backup import backup, restore
from penstock.control.cli.canary.verbs import canary
from penstock.control.cli.documents import apply, diff, export, schema
from penstock.control.cli.events import events
from penstock.control.cli.fleet.logs import logs
from penstock.control.cli.fleet.status import status
from penstock.control.cli.fleet.verbs import drain, nodes, replace
from penstock.control.cli.observe.monitoring import monitoring
from penstock.control.cli.observe.requests import explain, requests
from penstock.control.cli.processes import head, node
from penstock.control.cli.recording.replaying import replay
from penstock.control.cli.recording.verbs import record
from penstock.control.cli.rollout.deployments import change_settings, delete, deploy, scale
from penstock.control.cli.rollout.describing import describe
from penstock.control.cli.rollout.engines import engines, run
from penstock.control.cli.rollout.fitting import fit
from penstock.control.cli.rollout.judging import rollout
from penstock.control.cli.rollout.trying import spend, try_out
from penstock.control.cli.root import without_verbs
from penstock.control.cli.routing.programs import program
from penstock.control.cli.routing.quarantine import quarantine
from penstock.control.cli.serve import HELP as SERVE_HELP
from penstock.control.cli.serve import serve
from penstock.control.cli.shadow.verbs import shadow
from penstock.control.cli.tenancy.keys import keys
from penstock.control.cli.tenancy.tenants import tenants
from penstock.control.cli.tenancy.tokens import tokens
from penstock.control.cli.tenancy.usage import usage
from penstock.control.cli.up import HELP as UP_HELP
from penstock.control.cli.up import up

app = without_verbs()

app.command(rich_help_panel="On one machine", help=SERVE_HELP)(serve)
app.command(rich_help_panel="On one machine", help=UP_HELP)(up)
app.command(rich_help_panel="Looking")(status)
app.command(rich_help_panel="Looking")(describe)
app.command(rich_help_panel="Looking")(events)
app.command(rich_help_panel="Looking")(requests)
app.command(rich_help_panel="Looking")(explain)
app.command(rich_help_panel="Looking")(logs)
app.command(rich_help_panel="Looking")(usage)
app.command(rich_help_panel="Looking")(spend)
app.command("test", rich_help_panel="Looking")(try_out)
app.command(rich_help_panel="Looking")(replay)
app.command(rich_help_panel="Looking")(fit)
app.command(rich_help_panel="Looking")(diff)
app.command(rich_help_panel="Looking")(export)
app.command(rich_help_panel="Looking")(schema)
app.command(rich_help_panel="Changing")(apply)
app.command(rich_help_panel="Changing")(deploy)
# "-1" is a number that is too small, and no option.
app.command(rich_help_panel="Changing", context_settings={"ignore_unknown_options": True})(scale)
app.command("set", rich_help_panel="Changing")(change_settings)
for verb in (delete, drain, replace):
    app.command(rich_help_panel="Changing")(verb)
app.command(rich_help_panel="Changing")(run)
app.add_typer(engines, rich_help_panel="Changing")
app.add_typer(rollout, rich_help_panel="Changing")
app.add_typer(nodes, rich_help_panel="Changing")
app.add_typer(adapters, rich_help_panel="Changing")
app.add_typer(alias, rich_help_panel="Changing")
app.add_typer(canary, rich_help_panel="Changing")
app.add_typer(shadow, rich_help_panel="Looking")
app.add_typer(record, rich_help_panel="Looking")
app.add_typer(program, rich_help_panel="Looking")
app.add_typer(monitoring, rich_help_panel="Looking")
app.add_typer(quarantine, rich_help_panel="Changing")
app.add_typer(tenants, rich_help_panel="Changing")
app.add_typer(keys, rich_help_panel="Changing")
app.add_typer(tokens, rich_help_panel="Changing")
app.command(rich_help_panel="Keeping")(backup)
app.command(rich_help_panel="Keeping")(restore)
app.command(rich_help_panel="On many machines")(head)
app.command(rich_help_panel="On many machines")(node)
