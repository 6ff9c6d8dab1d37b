"""vLLM's engine client with the tap on it: what the serving layer calls to generate.

Touch points: `AsyncLLM.generate` (keyword arguments pass through), `AsyncLLM.abort`,
`EngineDeadError`, `EngineGenerateError`, `errored`.
Imports vLLM: only after `environment.prepare`.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

from penstock.replica.vllm import errors
from penstock.replica.vllm.tap import CURRENT, CallTap


class TappedLLM(AsyncLLM):  # type: ignore[misc]
    """AsyncLLM whose outputs pass the tap of the call they belong to."""

    death: Callable[[], str]
    """Says in one line why the engine is dead."""

    def generate(
        self, prompt: Any, sampling_params: Any, request_id: str, **more: Any
    ) -> AsyncGenerator[Any, None]:
        outputs: AsyncGenerator[Any, None] = super().generate(
            prompt, sampling_params, request_id, **more
        )
        tap = CURRENT.get()
        if tap is None:
            return outputs
        constrained = sampling_params.structured_outputs is not None
        first = tap.begin(sampling_params.n, constrained=constrained)
        return self._tapped(tap, first, request_id, outputs)

    async def _tapped(
        self, tap: CallTap, first: int, request_id: str, outputs: AsyncGenerator[Any, None]
    ) -> AsyncGenerator[Any, None]:
        async with contextlib.aclosing(outputs):
            try:
                async for output in outputs:
                    tap.saw(first, output)
                    yield output
            except EngineDeadError:
                tap.lost = errors.engine_dead(self.death(), aboard=True)
                raise
            except EngineGenerateError as error:
                tap.lost = errors.not_generated(error.__cause__ or error, begun=tap.head_known())
                # vLLM keeps the state of a request that could not be handed to its engine.
                await self.abort(request_id)
                raise

    def __del__(self) -> None:
        # Whoever made the engine shuts it down; AsyncLLM's own __del__ does so once more, at a
        # time when the interpreter may be half gone.
        pass


__all__ = ["TappedLLM"]
