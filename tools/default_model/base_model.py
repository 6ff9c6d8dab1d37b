"""The base model: a Llama of about two million parameters, trained from nothing.

Needs torch and transformers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

import torch
from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from tools.default_model.tokens import BOS, END, LONGEST, PAD, Encoder, make_tokenizer
from tools.default_model.training import Course, settle, train

_TEXTS: Final = 3000  # conversations that the tokenizer learns from
_MORE_LESSONS: Final = 0.45  # of all examples, when the model is trained further
_REFRESHERS: Final = 0.12


def make_model(
    out: Path, seed: int, course: Course, report: Callable[[str, str], None]
) -> PreTrainedTokenizerFast:
    """Trains the model and writes it and its tokenizer to `out`; returns the tokenizer."""
    rng = Random(seed)
    settle(seed)
    tokenizer = make_tokenizer(rng, texts=_TEXTS)
    model = new_model(len(tokenizer))
    report("model", f"{model.num_parameters():,} parameters, vocabulary {len(tokenizer)}")
    train(model, Encoder(tokenizer), rng, course, lambda line: report("model", line))
    _save(model, out)
    tokenizer.save_pretrained(out)
    return tokenizer


def train_on(
    out: Path,
    tokenizer: PreTrainedTokenizerFast,
    seed: int,
    course: Course,
    report: Callable[[str, str], None],
) -> None:
    """Trains the model in `out` further, with more lessons: to copy words is learnt last.

    What the refreshers teach would else drown in talk.
    """
    rng = Random(f"{seed} further")
    settle(seed)
    model = LlamaForCausalLM.from_pretrained(out, dtype=torch.float32)
    encoder = Encoder(tokenizer, lessons=_MORE_LESSONS, refreshers=_REFRESHERS)
    train(model, encoder, rng, course, lambda line: report("further", line))
    _save(model, out)


def _save(model: LlamaForCausalLM, out: Path) -> None:
    # Nearly greedy unless the client asks for more heat: a model this small has little to vary.
    model.generation_config = GenerationConfig(
        bos_token_id=BOS, eos_token_id=END, pad_token_id=PAD, do_sample=True, temperature=0.1
    )
    model.to(torch.bfloat16).save_pretrained(out)


def new_model(vocabulary: int) -> LlamaForCausalLM:
    """An untrained model. Its heads are 32 wide: vLLM's CPU attention takes 32, 64, 96, 128."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=192,
            intermediate_size=576,
            num_hidden_layers=4,
            num_attention_heads=6,
            num_key_value_heads=6,
            max_position_embeddings=LONGEST,
            bos_token_id=BOS,
            eos_token_id=END,
            pad_token_id=PAD,
            tie_word_embeddings=True,
        )
    )
