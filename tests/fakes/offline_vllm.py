"""What vLLM answers by itself: its own offline class, greedy, in a process of its own, which has
imported vLLM and computes too: another one would import it once more."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection
from typing import Any

from penstock.replica.default_model import shipped
from tests.fakes.engine_nursery import forked
from tests.fakes.greedy_chats import CHATS, TOKENS


def offline_answers() -> list[dict[str, Any]]:
    """The default model's text, finish reason and token counts for each of `CHATS`."""
    hears, says = multiprocessing.Pipe(duplex=False)
    process = forked(_answer, says)
    says.close()
    answers: list[dict[str, Any]] = hears.recv()
    process.join()
    return answers


def _answer(says: Connection) -> None:
    del os.environ["VLLM_LOGGING_CONFIG_PATH"]  # of the fork server, which has removed its file
    os.environ.update(VLLM_CPU_KVCACHE_SPACE="1", VLLM_ENABLE_V1_MULTIPROCESSING="0")
    from vllm import LLM, SamplingParams

    model = str(shipped("penstock-mini"))
    llm = LLM(model=model, enforce_eager=True, max_model_len=2048)
    outputs = llm.chat(CHATS, SamplingParams(temperature=0, max_tokens=TOKENS), use_tqdm=False)
    says.send(
        [
            {
                "text": each.outputs[0].text,
                "finish_reason": each.outputs[0].finish_reason,
                "completion_tokens": len(each.outputs[0].token_ids),
                "prompt_tokens": len(each.prompt_token_ids),
            }
            for each in outputs
        ]
    )
