"""`penstock engines` and `penstock run`: a model that serves for a while."""

from __future__ import annotations

import asyncio
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any

import typer

from penstock.control.admin.rollout.engine_models import EngineModel
from penstock.control.cli.admin_calls import Head
from penstock.control.cli.asking import asks_head, in_words, say, say_fields, say_list, verb
from penstock.control.cli.options import Reason
from penstock.control.cli.tables import day
from penstock.control.errors import NotFound, PenstockError, invalid_setting
from penstock.control.outside.admin_client import AdminClient
from penstock.control.outside.chat_client import streamed
from penstock.control.serving.options import parse_engine_args
from penstock.control.state.rollout.engines import USUAL_TTL_S

engines = typer.Typer(
    name="engines",
    no_args_is_help=True,
    help="A model that serves for a while, by one request: start, list, show, stop.",
)

COLUMNS = ("name", "state", "start", "ready ms", "model", "by", "ends")
# A request that was broken off may reach the head after what ends its engine.
LATE, AGAIN = 20, 0.1  # times, seconds

Model = Annotated[
    str,
    typer.Argument(help="A path on the nodes, a Hugging Face id, or what comes with Penstock."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the engine, or its id.")]
Engine = Annotated[str, typer.Option(help="vllm, simulated, or a provider.")]
EngineArg = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A setting of the engine. Repeatable."),
]
Adapter = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME@VERSION", help="That it holds, or DEPLOYMENT:ALIAS. Repeatable."),
]
Ttl = Annotated[
    int, typer.Option(min=0, metavar="SECONDS", help="After which it ends; 0: never, for admins.")
]


@verb(engines, "start")
def start(
    head: Head,
    model: Model,
    name: Annotated[str, typer.Option(help='What clients say as "model". Default: its id.')] = "",
    engine: Engine = "vllm",
    engine_arg: EngineArg = None,
    adapter: Adapter = None,
    ttl: Ttl = USUAL_TTL_S,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Return once it answers.")] = True,
    reason: Reason = "",
) -> None:
    """Serve a model until it is stopped, or its time is over.

    \b
    Examples:
      penstock engines start penstock-mini
      penstock engines start Qwen/Qwen2.5-0.5B-Instruct --name try --engine-arg max_model_len=4096
      penstock engines start penstock-mini --adapter pirate@1 --ttl 600
    """
    asked = _asked(model, name, engine, engine_arg, adapter, ttl)
    made = head.ask(lambda admin: admin.start_engine(asked, wait=wait, reason=reason))
    say(head, made, f"{made.name} is {made.state}{_took(made)}: {made.base_url or 'no gateway'}")


@verb(engines, "list")
def list_engines(head: Head) -> None:
    """Show the engines that there are.

    Example: penstock engines list
    """
    found = head.ask(lambda admin: admin.engines())
    say_list(head, "Engines", COLUMNS, found, engine_row)


@verb(engines, "show")
def show(head: Head, name: Name) -> None:
    """Show one engine, with how long each part of its start took.

    Example: penstock engines show try
    """
    say_fields(head, head.ask(lambda admin: admin.engine(name)), _told)


@verb(engines, "stop")
def stop(head: Head, name: Name, reason: Reason = "") -> None:
    """End an engine; it finishes the requests that it has.

    Example: penstock engines stop try
    """
    head.ask(lambda admin: admin.end_engine(name, reason=reason))
    say(head, {"ended": name}, f"{name} is ended")


@asks_head("run", has_json=False)
def run(
    head: Head,
    model: Model,
    prompt: Annotated[str, typer.Argument(help="The question; - is stdin.")],
    engine: Engine = "vllm",
    engine_arg: EngineArg = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Of the answer. Default: as the model has it.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the engine to its --ttl; its name is printed.")
    ] = False,
    ttl: Ttl = USUAL_TTL_S,
    base_url: Annotated[
        str | None, typer.Option(help="Of the gateway. Default: as the head says.")
    ] = None,
    api_key: Annotated[
        str, typer.Option(envvar="PENSTOCK_API_KEY", help="For the gateway, if it wants one.")
    ] = "",
) -> None:
    """Start an engine, print its answer as it comes, and give the engine back: after Ctrl-C and
    errors, too.

    \b
    Examples:
      penstock run penstock-mini "What is a gateway?"
      penstock run penstock-mini - --max-tokens 50 < question.txt
    """
    asked = _asked(model, f"run-{secrets.token_hex(4)}", engine, engine_arg, None, ttl)
    question: dict[str, Any] = {"messages": [{"role": "user", "content": _words(prompt)}]}
    question |= {"max_tokens": max_tokens} if max_tokens else {}

    async def answered(admin: AdminClient) -> None:
        with _cancelled_by_signals():
            async with _lent(admin, asked, keep=keep) as lent:
                url = base_url or lent.base_url
                if url is None:
                    raise invalid_setting("the head knows no gateway: name one with --base-url")
                chat = {**question, "model": lent.name}
                async for piece in streamed(url, api_key, head.ca, chat):
                    typer.echo(piece, nl=False)
                typer.echo()

    try:
        head.ask(answered)
    except asyncio.CancelledError:
        raise typer.Exit(128 + signal.SIGINT) from None


def _words(prompt: str) -> str:
    """What is asked. Raises `invalid-setting`."""
    if prompt == "-" and sys.stdin is None:
        raise invalid_setting("the question is -, and stdin is closed")
    try:
        words = sys.stdin.read() if prompt == "-" else prompt
        words.encode()
    except UnicodeError as error:
        raise invalid_setting(f"the question is no text: {error}") from None
    return words


@contextmanager
def _cancelled_by_signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM end what runs in here as an error would, so that it tidies up; the second
    of them ends that, too."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, task.cancel)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@asynccontextmanager
async def _lent(
    admin: AdminClient, asked: dict[str, Any], *, keep: bool
) -> AsyncIterator[EngineModel]:
    """An engine for as long as it is needed."""
    name = asked["name"]
    try:
        engine = await admin.start_engine(asked)
    except asyncio.CancelledError:
        await _give_back(admin, name, times=LATE)
        raise
    except PenstockError:  # a head that was restarted may have begun
        await _give_back(admin, name, times=1)
        raise
    stays = ", and stays" if keep else ""
    typer.echo(f"{name} is ready{_took(engine)}{stays}", err=True)
    try:
        yield engine
    finally:
        if not keep:
            await _give_back(admin, name, times=1)


async def _give_back(admin: AdminClient, name: str, *, times: int) -> None:
    """Whatever comes in the way: its time ends it."""
    for left in reversed(range(times)):
        try:
            await admin.end_engine(name)
            return
        except NotFound:
            if left:
                await asyncio.sleep(AGAIN)
        except PenstockError as error:
            typer.echo(f"note: {name} could not be ended, its --ttl does that: {error}", err=True)
            return


def engine_row(it: EngineModel) -> tuple[str, ...]:
    """An engine as a row of `COLUMNS`."""
    took = f"{it.ready_ms}" if it.ready_ms else ""
    return (it.name, it.state, it.start or "", took, it.model, it.by, day(it.expires_at) or "never")


def _took(it: EngineModel) -> str:
    """From the request to ready, and how."""
    start = f", {it.start}" if it.start else ""
    return f" after {it.ready_ms} ms{start}" if it.ready_ms else ""


def _told(name: str, value: Any) -> str:
    if name == "stages":
        return ", ".join(f"{each['name']} {each['ms']} ms" for each in value)
    return "" if value is None else in_words(value)


def _asked(
    model: str,
    name: str,
    engine: str,
    engine_arg: list[str] | None,
    adapter: list[str] | None,
    ttl_s: int,
) -> dict[str, Any]:
    return {
        "model": model,
        "name": name,
        "engine": engine,
        "engine_args": parse_engine_args(engine_arg or ()),
        "adapters": adapter or [],
        "ttl_s": ttl_s,
    }
