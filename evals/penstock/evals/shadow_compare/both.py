"""The options of commands that ask two endpoints the same: how, as whom, how often."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from penstock.evals import options
from penstock.evals.endpoint import Endpoint
from penstock.evals.shadow_compare.asking import Asking


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """What was said of asking both; the fields are the options."""

    primary_model: options.PrimaryModel = ""
    candidate_model: options.CandidateModel = ""
    self_permille: options.SelfPermille = 1000
    api_key: options.ApiKey = ""
    candidate_api_key: options.CandidateKey = ""
    concurrency: options.Concurrency = 4
    seed: options.Seed = 0
    max_tokens: options.MaxTokens = 256
    temperature: options.Temperature = 0.0
    timeout: options.Timeout = 120.0

    def asking(self, primary: str, candidate: str) -> Asking:
        """How those at these addresses are asked. Raises `EvalError`."""
        return Asking(
            Endpoint.of(primary, self.primary_model, self.api_key),
            Endpoint.of(candidate, self.candidate_model, self.candidate_api_key or self.api_key),
            self.self_permille,
            self.concurrency,
            self.seed,
            self.max_tokens,
            self.temperature,
            self.timeout,
            options.tell,
        )


_FIELDS: Final = tuple(inspect.signature(Both, eval_str=True).parameters.values())


def asks_both(command: Callable[..., None]) -> Callable[..., None]:
    """Makes a command of a function whose first parameter is a `Both`: its options, and those."""

    def run(**said: Any) -> None:
        both = Both(**{each.name: said.pop(each.name) for each in _FIELDS})
        command(both, **said)

    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *_FIELDS)]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
