"""The models that come with Penstock: where their weights lie, and how vLLM is to run them.

penstock-mini talks, penstock-embed makes embeddings. This module knows paths and settings and
nothing else, so that anybody may import it without torch. How they were made is no part of the
product: `tools/default_model/` in the repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

WEIGHTS: Final = Path(__file__).parent / "weights"
"""Where penstock-mini lies: the model, and a directory for each adapter."""
EMBED_WEIGHTS: Final = Path(__file__).parent / "embed" / "weights"
"""Where penstock-embed lies."""

_SHIPPED: Final = {
    "penstock-mini": WEIGHTS / "model",
    "penstock-mini/pirate": WEIGHTS / "adapters" / "pirate",
    "penstock-mini/json": WEIGHTS / "adapters" / "json",
    "penstock-embed": EMBED_WEIGHTS / "model",
}
_ENGINE_ARGS: Final = {
    "penstock-mini": {
        "enable_auto_tool_choice": "true",
        "tool_call_parser": "hermes",
        # It would call what it sees, and the call would be told as if it were its words.
        "exclude_tools_when_tool_choice_none": "true",
        # Names and arguments of every call keep to the tool's schema: a model this small errs.
        "tool_strict_level": "parameter",
        # It writes JSON without whitespace, and could fill a page with it where it may.
        "structured_outputs_config": '{"backend":"xgrammar","disable_any_whitespace":true}',
    }
}


def shipped(name: str) -> Path | None:
    """The directory of a model or adapter that comes with Penstock; None for any other name."""
    return _SHIPPED.get(name)


def engine_args(name: str) -> Mapping[str, str]:
    """What vLLM is told for a model that comes with Penstock, unless the deployment says else."""
    return _ENGINE_ARGS.get(name, {})
