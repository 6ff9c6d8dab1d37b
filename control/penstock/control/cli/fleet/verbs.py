"""`penstock drain` and `replace`: machines and gateways that are to go without being missed."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import asks_head, say, verb
from penstock.control.cli.options import HandOver
from penstock.control.errors import invalid_setting

nodes = typer.Typer(
    name="nodes", no_args_is_help=True, help="Machines: forget those that are gone."
)


@verb(nodes, "delete", has_json=False)
def delete_node(
    head: Head,
    node: Annotated[str, typer.Argument(help="Its id, as `penstock status` shows it.")],
) -> None:
    """Forget a node whose machine is gone for good, and the replicas that it had.

    Example: penstock nodes delete gpu-7
    """
    head.ask(lambda admin: admin.delete_node(node))
    typer.echo(f"{node} is forgotten; should it come back, it registers anew")


@asks_head("drain")
def drain(
    head: Head,
    node: Annotated[str, typer.Argument(help="Its id, as `penstock status` shows it.")],
    undo: Annotated[bool, typer.Option("--undo", help="Let it have replicas again.")] = False,
    hand_over: HandOver = False,
) -> None:
    """Move a node's replicas elsewhere, before its machine goes.

    Replacements are ready before the old ones stop.

    \b
    Examples:
      penstock drain gpu-7
      penstock drain gpu-7 --hand-over
    """
    if undo and hand_over:
        raise invalid_setting("--undo keeps the node's replicas: leave --hand-over out")
    shown = head.ask(lambda admin: admin.drain(node, undo=undo, hand_over=hand_over))
    words = "gets no replicas; `penstock status` shows those that it still has"
    words = "may have replicas again" if undo else words
    say(head, shown, f"{shown.id} {words}")


@asks_head("replace")
def replace(
    head: Head,
    gateway: Annotated[str, typer.Argument(help="Its id, as `penstock status` shows it.")],
) -> None:
    """Start a gateway anew on its port, without ending a stream or refusing a request.

    The old one ends when its last client has left. Example: penstock replace gw-1
    """
    shown = head.ask(lambda admin: admin.replace_gateway(gateway))
    words = f"{shown.id} (pid {shown.pid}) has taken the place of {gateway}"
    say(head, shown, words)
