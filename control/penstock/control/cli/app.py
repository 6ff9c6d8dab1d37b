"""The `penstock` command as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from penstock.control.cli.loading import loading
from penstock.control.cli.root import without_verbs


class Verb(NamedTuple):
    """Where a verb is, below this package, and under which heading the help names it."""

    module: str
    attribute: str
    panel: str
    settings: Mapping[str, Any] | None = None


ONE_MACHINE = "On one machine"
LOOKING = "Looking"
CHANGING = "Changing"
KEEPING = "Keeping"
MANY_MACHINES = "On many machines"

# "-1" is a number that is too small, and no option.
_NUMBERS = {"ignore_unknown_options": True}
VERBS: Mapping[str, Verb] = {
    "serve": Verb("serve", "serve", ONE_MACHINE),
    "up": Verb("up", "up", ONE_MACHINE),
    "status": Verb("fleet.status", "status", LOOKING),
    "describe": Verb("rollout.describing", "describe", LOOKING),
    "events": Verb("events", "events", LOOKING),
    "requests": Verb("observe.requests", "requests", LOOKING),
    "explain": Verb("observe.requests", "explain", LOOKING),
    "logs": Verb("fleet.logs", "logs", LOOKING),
    "usage": Verb("tenancy.usage", "usage", LOOKING),
    "spend": Verb("rollout.trying", "spend", LOOKING),
    "test": Verb("rollout.trying", "try_out", LOOKING),
    "replay": Verb("recording.replaying", "replay", LOOKING),
    "fit": Verb("rollout.fitting", "fit", LOOKING),
    "diff": Verb("documents", "diff", LOOKING),
    "export": Verb("documents", "export", LOOKING),
    "schema": Verb("documents", "schema", LOOKING),
    "apply": Verb("documents", "apply", CHANGING),
    "deploy": Verb("rollout.deployments", "deploy", CHANGING),
    "scale": Verb("rollout.deployments", "scale", CHANGING, _NUMBERS),
    "set": Verb("rollout.deployments", "change_settings", CHANGING),
    "delete": Verb("rollout.deployments", "delete", CHANGING),
    "drain": Verb("fleet.verbs", "drain", CHANGING),
    "replace": Verb("fleet.verbs", "replace", CHANGING),
    "run": Verb("rollout.engines", "run", CHANGING),
    "backup": Verb("backup", "backup", KEEPING),
    "restore": Verb("backup", "restore", KEEPING),
    "head": Verb("processes", "head", MANY_MACHINES),
    "node": Verb("processes", "node", MANY_MACHINES),
    "engines": Verb("rollout.engines", "engines", CHANGING),
    "rollout": Verb("rollout.judging", "rollout", CHANGING),
    "nodes": Verb("fleet.verbs", "nodes", CHANGING),
    "adapters": Verb("adapters.verbs", "adapters", CHANGING),
    "alias": Verb("adapters.aliases", "alias", CHANGING),
    "canary": Verb("canary.verbs", "canary", CHANGING),
    "shadow": Verb("shadow.verbs", "shadow", LOOKING),
    "record": Verb("recording.verbs", "record", LOOKING),
    "program": Verb("routing.programs", "program", LOOKING),
    "monitoring": Verb("observe.monitoring", "monitoring", LOOKING),
    "quarantine": Verb("routing.quarantine", "quarantine", CHANGING),
    "tenants": Verb("tenancy.tenants", "tenants", CHANGING),
    "keys": Verb("tenancy.keys", "keys", CHANGING),
    "tokens": Verb("tenancy.tokens", "tokens", CHANGING),
}


class VerbsOnDemand(TyperGroup):
    """Imports a verb when it is named: all together take longer than any of them runs, and where
    the process stays, memory for weeks."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All, in the order of the help."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb; for a name that there is none of, all are there to be suggested."""
        for name in [cmd_name] if cmd_name in VERBS else VERBS:
            if name not in self.commands:
                self.add_command(_command(name, VERBS[name]), name)
        return super().get_command(ctx, cmd_name)


def _command(name: str, verb: Verb) -> Any:
    """As typer makes it of a command with this verb alone."""
    alone = without_verbs(TyperGroup)
    with loading():
        found = getattr(import_module(f"penstock.control.cli.{verb.module}"), verb.attribute)
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=name, rich_help_panel=verb.panel)
    else:
        settings = dict(verb.settings or {})
        alone.command(name, rich_help_panel=verb.panel, context_settings=settings)(found)
    return typer.main.get_group(alone).commands[name]


app = without_verbs(VerbsOnDemand)
