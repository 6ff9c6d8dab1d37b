"""`penstock requests` and `penstock explain`: what was decided about requests, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from penstock.control.admin.observe.request_models import (
    ExplainedModel,
    RequestModel,
)
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import asks_head, say, say_json
from penstock.control.cli.observe.following import Following
from penstock.control.cli.outcome import finish
from penstock.control.cli.tables import on_one_line
from penstock.control.errors import invalid_setting
from penstock.control.outside.request_client import TAIL
from penstock.control.state.observe.asking import GatewayAnswer


@asks_head("requests")
def requests(
    head: Head,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as they end.")] = False,
    deployment: Annotated[str, typer.Option(help="Where they ended, or were asked for.")] = "",
    tenant: Annotated[str, typer.Option(help="Whose they are.")] = "",
    status: Annotated[str, typer.Option(help="Such as 404, 4xx or 5xx.")] = "",
    reason: Annotated[str, typer.Option(help="Such as queue_full or engine_dead.")] = "",
    slower_than_ms: Annotated[int, typer.Option(min=0, help="From reading to end.")] = 0,
    since: Annotated[
        str, typer.Option(metavar="TIME", help="Such as 30m, 2h, 7d or 2026-01-31T12:00:00Z.")
    ] = "",
    last: Annotated[int, typer.Option(min=1, max=1000, help="The newest so many.")] = 100,
) -> None:
    """Show requests that have ended, the newest last: as many as their gateways keep.

    A line has: when it was received (UTC), status, outcome, how long it took, id, deployment,
    tenant, the last replica, and why it is not what was asked for; "-": none.
    Ends with 1 where a gateway did not answer. With --json and -f, each is an object on a line.

    \b
    Examples:
      penstock requests --status 5xx --since 30m
      penstock requests -f --tenant acme --slower-than-ms 2000
      penstock requests --reason queue_full --json
    """
    said = {
        "deployment": deployment,
        "tenant": tenant,
        "status": status,
        "reason": reason,
        "slower_than_ms": slower_than_ms or "",
    }
    wanted = {name: str(value) for name, value in said.items() if value}
    if follow:
        shown = RequestModel.model_dump_json if head.as_json else line
        following = Following(shown, _all_answered)
        head.ask(lambda admin: following.run(admin, wanted, since, last))
        return
    listed = {**wanted, "since": since} if since else wanted
    page = head.ask(lambda admin: admin.requests(listed, limit=last))
    if head.as_json:
        say_json(page)
    else:
        typer.echo("".join(f"{line(each)}\n" for each in reversed(page.requests)), nl=False)
    if not _all_answered(page.gateways):
        finish(1)


@asks_head("explain")
def explain(
    head: Head,
    request_id: Annotated[
        str,
        typer.Argument(metavar="ID", help="Its x-request-id, its caller's or its trace's."),
    ],
) -> None:
    """Tell what became of a request, and why: what was decided when, and with which inputs.

    \b
    Examples:
      penstock explain req_0f3a1c2b
      penstock explain req_0f3a1c2b --json
    """
    if request_id == TAIL:
        raise invalid_setting(
            f"ID is {TAIL}, by which the admin API gives all requests as they end: name the request"
            " by our id, which `penstock requests` shows"
        )
    found = head.ask(lambda admin: admin.explain(request_id))
    say(head, found, "\n".join(map(on_one_line, _story(found))))
    _all_answered(found.gateways)


def line(it: RequestModel) -> str:
    """A request in words."""
    at = f"{it.received_at:%Y-%m-%d %H:%M:%S.%f}"[:-3]
    why = f"{it.reason} ({it.rung})" if it.rung else it.reason
    told = (
        f"{at}  {it.status}  {it.outcome:<9}  {it.duration_ms:>9.1f} ms  {it.request_id}"
        f"  {it.deployment or '-'}  {it.tenant or '-'}  {it.replica or '-'}  {why}"
    )
    return on_one_line(told.rstrip())


def _story(found: ExplainedModel) -> Iterator[str]:
    story = found.story
    yield story.title
    yield ""
    width = max(len(fact.name) for fact in story.facts)
    yield from (f"{fact.name:<{width}}  {fact.text}" for fact in story.facts)
    yield f"{'kept by':<{width}}  gateway {found.gateway}"
    yield ""
    yield from (f"{moment.at_us / 1000:>12.3f} ms  {moment.text}" for moment in story.line)
    if found.namesakes:
        yield ""
        yield f"other requests that have this id: {', '.join(found.namesakes)}"


def _all_answered(gateways: Iterable[GatewayAnswer]) -> bool:
    """Whether they did; says who did not."""
    missing = [each for each in gateways if not each.answered]
    for each in missing:
        typer.echo(f"without what gateway {each.id} keeps: {each.detail}", err=True)
    return not missing
