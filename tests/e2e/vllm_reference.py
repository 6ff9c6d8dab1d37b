"""Prints nothing; writes what vLLM's own offline class answers to chats, greedily.

Usage: vllm_reference.py CHATS_AS_JSON OUTPUT_FILE. A program of its own, whose engine runs in it:
another process would import vLLM once more.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Answers every chat with the default model and writes text, finish reason and token counts."""
    os.environ.update(
        VLLM_CPU_KVCACHE_SPACE="1",
        VLLM_ENABLE_V1_MULTIPROCESSING="0",
        OMP_NUM_THREADS="1",
        HF_HUB_OFFLINE="1",
    )
    from vllm import LLM, SamplingParams

    from penstock.replica.default_model import shipped

    model = shipped("penstock-mini")
    llm = LLM(model=str(model), enforce_eager=True, max_model_len=2048)
    outputs = llm.chat(json.loads(sys.argv[1]), SamplingParams(temperature=0, max_tokens=200))
    answers = [
        {
            "text": each.outputs[0].text,
            "finish_reason": each.outputs[0].finish_reason,
            "completion_tokens": len(each.outputs[0].token_ids),
            "prompt_tokens": len(each.prompt_token_ids),
        }
        for each in outputs
    ]
    Path(sys.argv[2]).write_text(json.dumps(answers))


if __name__ == "__main__":
    main()
