"""What an embedding deployment is asked about a pair, and what it said: where the answers lie, as
far as texts mean the same. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.evals.comparison.pair import Pair
from penstock.evals.comparison.text import cut

MOST_LETTERS: Final = 1_500
"""Of each text: models that embed read some hundred tokens. What is longer loses its middle."""
_MOST: Final = 1e30


def texts_of_pair(pair: Pair) -> tuple[str, ...]:
    """The primary's, the candidate's and the primary's second one; empty: there is nothing to
    compare, since one failed or is empty, or the primary was not asked again."""
    if pair.again is None:
        return ()
    arms = (pair.primary, pair.candidate, pair.again)
    if any(each.failed or not each.text.strip() for each in arms):
        return ()
    return tuple(cut(each.text, MOST_LETTERS) for each in arms)


def question(model: str, texts: Sequence[str]) -> dict[str, Any]:
    """The request for embeddings; each text once."""
    return {"model": model, "input": list(dict.fromkeys(texts)), "encoding_format": "float"}


def places(reply: Mapping[str, Any], texts: Sequence[str]) -> tuple[Sequence[float], ...] | None:
    """Where each of the texts lies, as the reply says it; None: nobody can tell."""
    data = reply.get("data")
    found: dict[object, Sequence[float]] = {}
    for each in data if isinstance(data, list) else ():
        if isinstance(each, Mapping) and (place := _place(each.get("embedding"))):
            found[each.get("index")] = place
    number = {text: index for index, text in enumerate(dict.fromkeys(texts))}
    if found.keys() < set(number.values()):
        return None
    return tuple(found[number[text]] for text in texts)


def _place(told: object) -> Sequence[float]:
    """Empty: it is none."""
    numbers = told if isinstance(told, list) else []
    return numbers if all(map(_is_number, numbers)) else ()


def _is_number(told: object) -> bool:
    """One that can be reckoned with: JSON may hold any, and what is no number."""
    return isinstance(told, int | float) and not isinstance(told, bool) and -_MOST < told < _MOST
