"""Which model answers a call: the call says so, whatever name stands in the client's body.

vLLM finds base model and adapter by the body's `model`, and answers with the adapter's own name.
Here both come from the `Call`: its adapter's weights, or the base model's, and its model name in
the answer. An adapter that is not loaded is refused before vLLM sees the call.

Imports vLLM: only after `environment.prepare`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from vllm.entrypoints.launchers.api_server import app_state
from vllm.entrypoints.openai.models.serving import OpenAIServingModels

from penstock.replica.vllm.serving.tap import CURRENT


class CallAdapters(dict[str, Any]):
    """vLLM's LoRA requests by engine name; within a call, any name means the call's adapter."""

    def __contains__(self, name: object) -> bool:
        tap = CURRENT.get()
        return super().__contains__(name if tap is None else tap.call.adapter)

    def __getitem__(self, name: str) -> Any:
        tap = CURRENT.get()
        return super().__getitem__(name if tap is None else tap.call.adapter)


class CallModels(OpenAIServingModels):  # type: ignore[misc]
    """vLLM's table of models, asked on behalf of a call."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lora_requests = CallAdapters()

    def is_base_model(self, model_name: str) -> bool:
        tap = CURRENT.get()
        return super().is_base_model(model_name) if tap is None else not tap.call.adapter

    def model_name(self, lora_request: Any = None) -> str:
        tap = CURRENT.get()
        name: str = super().model_name(lora_request) if tap is None else tap.call.model
        return name


@contextlib.contextmanager
def call_models() -> Iterator[None]:
    """While it lasts, `init_app_state` makes `CallModels` for its serving objects."""
    app_state.OpenAIServingModels = CallModels
    try:
        yield
    finally:
        app_state.OpenAIServingModels = OpenAIServingModels
