"""A dataset: questions, each with what its answers are held to. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.evals.adapter_regression.checks import Check, Known, check
from penstock.evals.comparison.bad_check import BadCheck
from penstock.evals.comparison.questions import Question, WrongLine, read

_FIELDS: Final = ("reference", "checks")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One line: what is asked, and what is made of the answers."""

    question: Question
    references: tuple[str, ...]
    checks: tuple[Check, ...]

    @property
    def id(self) -> str:
        """As reports name it."""
        return self.question.id

    @property
    def messages(self) -> tuple[Mapping[str, str], ...]:
        """The conversation."""
        return self.question.messages


@dataclass(frozen=True, slots=True)
class Dataset:
    """All prompts of a file, and the file's SHA-256."""

    sha256: str
    prompts: tuple[Prompt, ...]

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of checks that any prompt has."""
        return frozenset(each.kind for prompt in self.prompts for each in prompt.checks)


def parse(data: bytes, refusals: tuple[re.Pattern[str], ...]) -> Dataset:
    """Reads the bytes of a file. Raises `BadDataset`, for the first line that is wrong."""

    def prompt(question: Question, told: Mapping[str, Any]) -> Prompt:
        references = _references(told.get("reference"))
        known = Known(references, refusals)
        return Prompt(question, references, _checks(told.get("checks"), known))

    return Dataset(hashlib.sha256(data).hexdigest(), tuple(read(data, _FIELDS, prompt)))


def _references(told: object) -> tuple[str, ...]:
    if told is None:
        return ()
    texts = [told] if isinstance(told, str) else told
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) and t for t in texts):
        raise WrongLine("reference: must be a text or a list of texts, none of them empty")
    return tuple(texts)


def _checks(told: object, known: Known) -> tuple[Check, ...]:
    if told is None and known.references:
        told = {"similarity": True}
    if not isinstance(told, dict) or not told:
        raise WrongLine("checks: must be an object of at least one check, or give a reference")
    return tuple(_checked(told, known))


def _checked(told: Mapping[str, object], known: Known) -> Iterable[Check]:
    for kind, wish in told.items():
        try:
            yield check(kind, wish, known)
        except BadCheck as bad:
            raise WrongLine(f"checks.{kind}: {bad}") from bad
