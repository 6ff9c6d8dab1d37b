"""The adapters: LoRA weights of rank 8 that teach the base model another manner of speech.

Needs torch, transformers and peft.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from tools.default_model.grammar import STYLES
from tools.default_model.tokens import Encoder
from tools.default_model.training import Course, settle, train

_RANK: Final = 8
_PROJECTIONS: Final = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def make_adapter(
    name: str,
    out: Path,
    tokenizer: PreTrainedTokenizerFast,
    seed: int,
    course: Course,
    report: Callable[[str, str], None],
) -> None:
    """Trains one adapter on the model in `out/model` and writes it to `out/adapters/name`."""
    rng = Random(f"{seed} {name}")
    settle(seed)
    base = LlamaForCausalLM.from_pretrained(out / "model", dtype=torch.float32)
    config = LoraConfig(
        task_type="CAUSAL_LM", r=_RANK, lora_alpha=2 * _RANK, target_modules=list(_PROJECTIONS)
    )
    adapter = get_peft_model(base, config)
    encoder = Encoder(tokenizer, STYLES[name])
    train(base, encoder, rng, course, lambda line: report(name, line))
    place = out / "adapters" / name
    adapter.to(torch.bfloat16).save_pretrained(place)
    _tidy(place)


def _tidy(place: Path) -> None:
    """Takes out of the adapter's files what is only true on the machine that made them."""
    path = place / "adapter_config.json"
    config = json.loads(path.read_text())
    config["base_model_name_or_path"] = "penstock-mini"
    config["target_modules"] = sorted(config["target_modules"])
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    (place / "README.md").unlink(missing_ok=True)
