"""Which engines a test of the contract is for, where that is not all of them."""

from __future__ import annotations

import pytest

_VLLM = pytest.param("vllm", marks=pytest.mark.vllm)

ALL = ("simulated", _VLLM, "canned", "openai", "bedrock")

MOVING = ("simulated", _VLLM)
"""Those that move KV."""

LOCAL = pytest.mark.parametrize("replica", ["simulated", _VLLM], indirect=True)
"""Those that have tokens, steps and adapters of their own."""

PROVIDED = pytest.mark.parametrize("replica", ["canned", "openai", "bedrock"], indirect=True)
"""Those whose answers are another party's, or written beforehand."""

COMPLETING = pytest.mark.parametrize(
    "replica", ["simulated", _VLLM, "canned", "openai"], indirect=True
)
"""Those that serve completions of plain text."""

SLOW = pytest.mark.parametrize("replica", ["simulated", _VLLM, "openai", "bedrock"], indirect=True)
"""Those whose answers follow from the prompt, and take time."""
