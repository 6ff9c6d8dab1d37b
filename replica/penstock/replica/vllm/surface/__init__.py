"""What the replica reaches for inside vLLM, checked as it starts: a vLLM that has moved any of it
is told by name, with the files that need it, before it can go wrong in a call.

The lists are `of_engine.py`, `of_app.py`, `of_moving.py`, `of_resume.py`, `of_worker.py` and
`of_pool.py`.
What a name promises is written behind it:

    module:name(first, second, *, third)    takes these: in this order, and by this name
    module:Class{one, two}                  has these, as its own or once it is made
    module:mapping[KEY, OTHER]              has these keys

Imports vLLM: only what is asked about, and that is imported in any case.
"""

from __future__ import annotations

import dis
import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from penstock.replica.values import CannotLoad
from penstock.replica.vllm.surface.of_app import OF_APP
from penstock.replica.vllm.surface.of_engine import OF_ENGINE
from penstock.replica.vllm.surface.of_moving import OF_MOVING
from penstock.replica.vllm.surface.of_pool import OF_POOL
from penstock.replica.vllm.surface.of_resume import OF_RESUME
from penstock.replica.vllm.surface.of_worker import OF_WORKER
from penstock.replica.vllm.surface.values import Stage, Touch

TOUCH_POINTS: Final = (*OF_ENGINE, *OF_APP, *OF_MOVING, *OF_RESUME, *OF_WORKER, *OF_POOL)
"""All of them."""

_NAME: Final = re.compile(
    r"(?P<module>[\w.]+)(:(?P<path>[\w.]+))?(?P<bracket>[({\[])?(?P<promised>[^)}\]]*)[)}\]]?"
)


def check(stage: Stage, touches: Iterable[Touch] = TOUCH_POINTS) -> None:
    """Raises `CannotLoad` if vLLM has moved anything that this stage of a replica needs."""
    found = [
        f"{told} (for {', '.join(touch.users)})"
        for touch in touches
        if touch.stage is stage
        for name in touch.names
        for told in moved(name)
    ]
    if found:
        raise CannotLoad(
            f"this vLLM has moved what the replica reaches into: {'; '.join(found)}; install the "
            "tested version, or mend the files that are named"
        )


def moved(name: str) -> Iterator[str]:
    """What of a name of the list this vLLM has no more."""
    parts = _NAME.fullmatch(name)
    assert parts is not None, name
    try:
        thing = importlib.import_module(parts["module"])
        for step in (parts["path"] or "").split("."):
            thing = getattr(thing, step) if step else thing
    except (ImportError, AttributeError) as error:
        yield f"{name}: {error}"
        return
    promised = [one.strip() for one in parts["promised"].split(",") if one.strip()]
    if promised:
        missing = _LOOKS[parts["bracket"]](thing, promised)
        if missing:
            yield f"{parts['module']}:{parts['path']} has no {', '.join(missing)}"


def _parameters(function: Any, promised: list[str]) -> list[str]:
    known = [one for one in inspect.signature(function).parameters if one not in ("self", "cls")]
    ordered = promised[: promised.index("*")] if "*" in promised else promised
    places = zip(ordered, [*known, *[""] * len(ordered)], strict=False)
    wrong = [one for one, place in places if one != place]
    return wrong + [one for one in promised[len(ordered) + 1 :] if one not in known]


def _attributes(thing: Any, promised: list[str]) -> list[str]:
    parts = [vars(one) for one in thing.__mro__] if inspect.isclass(thing) else [{"": thing}]
    return [name for name in promised if not any(_has(part, name) for part in parts)]


def _has(part: Any, name: str) -> bool:
    """Whether a class, by what is in it, or a function makes something of this name."""
    if name in part or name in part.get("__annotations__", {}):
        return True
    functions = (getattr(one, "__wrapped__", one) for one in part.values())
    codes = [one.__code__ for one in functions if inspect.isfunction(one)]
    return any(
        step.opname == "STORE_ATTR" and step.argval == name
        for code in codes
        if name in code.co_names
        for step in dis.get_instructions(code)
    )


def _keys(mapping: Any, promised: list[str]) -> list[str]:
    return [key for key in promised if key not in mapping]


_LOOKS: Final[dict[str, Callable[[Any, list[str]], list[str]]]] = {
    "(": _parameters,
    "{": _attributes,
    "[": _keys,
}
