"""Verbs that ask the head: the options that name it, added to each, and errors as one line."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import typer
from pydantic import BaseModel

from penstock.control.cli.admin_calls import Head
from penstock.control.cli.options import AdminTokenFile, AdminUrl, AsJson, DataDir, TlsCa
from penstock.control.cli.outcome import explained
from penstock.control.cli.tables import listing, show
from penstock.control.errors import invalid_setting
from penstock.control.settings import DATA_DIR

M = TypeVar("M", bound=BaseModel)

_SHARED = {
    "as_json": (AsJson, False),
    "admin": (AdminUrl, None),
    "data_dir": (DataDir, Path(DATA_DIR)),
    "admin_token_file": (AdminTokenFile, None),
    "tls_ca": (TlsCa, None),
}
Verb = Callable[..., None]


def asks_head(name: str, *, has_json: bool = True, failing: int = 1) -> Callable[[Verb], Verb]:
    """Makes a command of a function whose first parameter is a `Head`.

    `name` is the verb as users type it, for error messages. `has_json`: it can answer programs;
    `failing`: the exit code of an error.
    """

    def decorated(verb: Verb) -> Verb:
        def command(
            *, admin: str | None, data_dir: Path, admin_token_file: Path | None,
            tls_ca: Path | None, as_json: bool = False, **own: Any,
        ) -> None:  # fmt: skip
            with explained(name, failing):
                verb(Head(admin, data_dir, admin_token_file, tls_ca, as_json), **own)

        _disguise(command, verb, [each for each in _SHARED if has_json or each != "as_json"])
        return command

    return decorated


def verb(group: typer.Typer, name: str, *, has_json: bool = True) -> Callable[[Verb], Verb]:
    """The same, as a command of a group."""
    command = asks_head(f"{group.info.name} {name}", has_json=has_json)
    return lambda function: group.command(name)(command(function))


def confirm(what: str) -> None:
    """Asks whether what cannot be taken back is meant; ends the command where it is not. Raises
    `invalid-setting` where nobody can be asked."""
    if not sys.stdin.isatty():
        raise invalid_setting(f"{what}: where there is no terminal to ask at, say --yes")
    typer.confirm(f"{what}. Go on?", abort=True)


def say_json(model: BaseModel) -> None:
    """One model as an object."""
    typer.echo(model.model_dump_json(indent=2))


def say(head: Head, told: BaseModel | Mapping[str, Any], words: str) -> None:
    """What came of it, for people, or what tells it to programs."""
    if not head.as_json:
        typer.echo(words)
    elif isinstance(told, BaseModel):
        say_json(told)
    else:
        typer.echo(json.dumps(told))


def say_fields(
    head: Head,
    model: BaseModel,
    told: Callable[[str, Any], str] = lambda _, value: in_words(value),
    *,
    exclude_none: bool = False,
) -> None:
    """Each field on a line, in the words of `told`, or the model as an object."""
    if head.as_json:
        say_json(model)
        return
    for name, value in model.model_dump(mode="json", exclude_none=exclude_none).items():
        typer.echo(f"{name}: {told(name, value)}")


def in_words(value: Any) -> str:
    """A field's value on one line."""
    if isinstance(value, list):
        return ",".join(value)
    return json.dumps(value) if isinstance(value, dict) else str(value)


def say_list(
    head: Head,
    title: str,
    columns: Sequence[str],
    models: Sequence[M],
    row: Callable[[M], Sequence[str]],
) -> None:
    """Models as rows for people, or as the list that the admin API gives."""
    if head.as_json:
        typer.echo(json.dumps([model.model_dump(mode="json") for model in models], indent=2))
    else:
        show(listing(title, columns, map(row, models)))


def _disguise(command: Verb, verb: Verb, shared: Sequence[str]) -> None:
    """Lets the command line read the verb's parameters and the shared ones off the command."""
    _, *own = inspect.signature(verb, eval_str=True).parameters.values()
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    for name in shared:
        kind, default = _SHARED[name]
        parameters.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
            )
        )
    command.__name__, command.__doc__ = verb.__name__, verb.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
