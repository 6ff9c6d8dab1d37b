"""How the engine's processes are told of the tokens that a request's client already has.

They travel beside the request, in its sampling parameters, which reach the scheduler and every
worker. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Final

KEY: Final = "penstock_delivered"
"""Where they are among the parameters' extra arguments, which clients cannot set: see
`guards/controls.py`."""


def with_delivered(sampling_params: Any, token_ids: Sequence[int]) -> Any:
    """The parameters of a request that is to go on after these tokens."""
    told = copy(sampling_params)
    told.extra_args = {**(sampling_params.extra_args or {}), KEY: list(token_ids)}
    return told


def delivered(sampling_params: Any) -> Sequence[int]:
    """Tokens that the request's client has; of one that pools, or begins, none."""
    told = getattr(sampling_params, "extra_args", None)
    ids: Sequence[int] = told.get(KEY, ()) if told else ()
    return ids
