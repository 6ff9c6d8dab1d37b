"""`penstock alias`: names of deployments for adapter versions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from penstock.control.admin.adapters.alias_models import AliasModel, MoveModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import confirm, say, say_list, verb
from penstock.control.cli.options import AbortCanary, Yes
from penstock.control.errors import invalid_setting
from penstock.control.outside.admin_client import AdminClient

alias = typer.Typer(
    name="alias",
    no_args_is_help=True,
    help="Names of deployments for adapter versions: set, split, undo, history, list, delete.",
)

COLUMNS = ("model", "names", "preload", "pinned", "moved", "by")
MOVE_COLUMNS = ("at", "named", "by", "")

Alias = Annotated[
    str, typer.Argument(metavar="DEPLOYMENT:ALIAS", help='What clients say as "model".')
]
Preload = Annotated[
    str | None,
    typer.Option(
        help="Replicas that load it before anybody asks: all, or a number; 0: none. Without it as "
        "it is, of a new alias all.",
    ),
]
Pinned = Annotated[
    bool | None,
    typer.Option(
        "--pinned/--no-pinned",
        help="It makes room for no other adapter there. Without it as it is, of a new alias not.",
    ),
]


@verb(alias, "set")
def set_alias(
    head: Head,
    name: Alias,
    target: Annotated[str, typer.Argument(metavar="NAME@VERSION")],
    preload: Preload = None,
    pinned: Pinned = None,
    abort_canary: AbortCanary = False,
) -> None:
    """Make an alias, or move it: new requests get the version from now on, those under way keep
    theirs.

    Example: penstock alias set mini:pirate pirate@2
    """
    _put(head, name, {"target": target, **_given(preload, pinned)}, abort_canary=abort_canary)


@verb(alias, "split")
def split(
    head: Head,
    name: Alias,
    weights: Annotated[
        list[str], typer.Argument(metavar="NAME@VERSION=WEIGHT...", help="At least two.")
    ],
    preload: Preload = None,
    pinned: Pinned = None,
    abort_canary: AbortCanary = False,
) -> None:
    """Share an alias out between versions; a session stays with its own.

    Example: penstock alias split mini:pirate pirate@1=90 pirate@2=10
    """
    _put(
        head,
        name,
        {"split": _weights(weights), **_given(preload, pinned)},
        abort_canary=abort_canary,
    )


@verb(alias, "undo")
def undo(head: Head, name: Alias, abort_canary: AbortCanary = False) -> None:
    """Take the last move of an alias back; once more, the one before it.

    Example: penstock alias undo mini:pirate
    """
    deployment, own = _parts(name)
    over = {"abort_canary": abort_canary}
    _say(head, head.ask(lambda admin: admin.undo_alias(deployment, own, **over)))


@verb(alias, "history")
def history(head: Head, name: Alias) -> None:
    """Show the moves of an alias, the newest first.

    Example: penstock alias history mini:pirate
    """
    deployment, own = _parts(name)
    found = head.ask(lambda admin: admin.alias_history(deployment, own))
    say_list(head, f"Moves of {name}", MOVE_COLUMNS, found, _move_row)


@verb(alias, "list")
def list_aliases(head: Head) -> None:
    """Show all aliases.

    Example: penstock alias list
    """
    found = head.ask(lambda admin: admin.aliases())
    say_list(head, "Aliases", COLUMNS, found, _row)


@verb(alias, "delete")
def delete(head: Head, name: Alias, yes: Yes = False, abort_canary: AbortCanary = False) -> None:
    """Have nobody say an alias any more; the versions that it named stay.

    At a terminal it asks first; elsewhere it takes --yes.

    Example: penstock alias delete mini:pirate
    """
    deployment, own = _parts(name)
    if not yes:
        known = [it.alias for it in head.ask(lambda admin: admin.aliases(deployment))]
        if own in known:
            confirm(f"{name} and its history are deleted, who says it gets 404")
    head.ask(lambda admin: admin.delete_alias(deployment, own, abort_canary=abort_canary))
    say(head, {"deleted": name}, f"{name} is deleted")


def _put(head: Head, name: str, spec: dict[str, Any], *, abort_canary: bool) -> None:
    """Sends the spec; what it does not say of an alias that there is stays as it is."""
    deployment, own = _parts(name)

    async def put(admin: AdminClient) -> AliasModel:
        standing = (it for it in await admin.aliases(deployment) if it.alias == own)
        kept = {key: value for it in standing for key, value in _options(it).items()}
        return await admin.put_alias(deployment, own, kept | spec, abort_canary=abort_canary)

    _say(head, head.ask(put))


def _options(it: AliasModel) -> dict[str, Any]:
    return {"preload": it.preload, "pinned": it.pinned}


def _given(preload: str | None, pinned: bool | None) -> dict[str, Any]:
    """The options that were given."""
    given: dict[str, Any] = {} if preload is None else {"preload": _preload(preload)}
    return given if pinned is None else given | {"pinned": pinned}


def _parts(name: str) -> tuple[str, str]:
    deployment, colon, own = name.partition(":")
    if not (deployment and colon and own):
        raise invalid_setting(f"the alias is {name!r}: say DEPLOYMENT:ALIAS, such as mini:pirate")
    return deployment, own


def _preload(text: str) -> int | None:
    if text == "all":
        return None
    if not (text.isascii() and text.isdecimal()):
        raise invalid_setting(f"--preload is {text!r}: say all, or a number of replicas")
    return int(text)


def _weights(words: Iterable[str]) -> dict[str, int]:
    weights: dict[str, int] = {}
    for word in words:
        ref, _, weight = word.partition("=")
        if not (ref and weight.isascii() and weight.isdecimal()):
            raise invalid_setting(f"{word!r} is no share: say NAME@VERSION=WEIGHT, as pirate@2=10")
        if ref in weights:
            raise invalid_setting(f"{ref} stands twice: give it one weight")
        weights[ref] = int(weight)
    return weights


def _say(head: Head, it: AliasModel) -> None:
    say(head, it, f"{it.model} names {_named(it)}")


def _named(it: AliasModel | MoveModel) -> str:
    if it.target is not None:
        return it.target
    shares = it.split or {}
    whole = sum(shares.values())
    return ", ".join(f"{ref} {100 * weight / whole:.3g} %" for ref, weight in shares.items())


def _row(it: AliasModel) -> tuple[str, ...]:
    preload = "all" if it.preload is None else str(it.preload)
    moved = f"{it.moved_at:%Y-%m-%d %H:%M:%S}"
    return (it.model, _named(it), preload, "yes" if it.pinned else "", moved, it.moved_by)


def _move_row(it: MoveModel) -> tuple[str, ...]:
    return (f"{it.at:%Y-%m-%d %H:%M:%S}", _named(it), it.by, "undone" if it.undoes else "")
