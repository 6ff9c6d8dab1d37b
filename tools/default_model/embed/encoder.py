"""The model: a BERT of about a million parameters whose mean over the tokens is the embedding.

It learns from pairs: of all second sentences of a batch, the one that belongs to a first is to be
the nearest. Its first 32 and 64 numbers are embeddings as well. Needs torch and transformers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from torch.nn import functional
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from tools.default_model.embed.pairs import Pair, pair
from tools.default_model.training import settle

SPECIAL: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
PAD, _, CLS, SEP = range(len(SPECIAL))
VOCABULARY: Final = 3072
LONGEST: Final = 512  # tokens of a text
WIDTHS: Final = (32, 64, 128)  # numbers of an embedding that one may ask for
_MODULES: Final = (("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"))
_TEXTS: Final = 6000  # pairs that the tokenizer learns from
_BATCH: Final = 192  # pairs
_HEAT: Final = 0.05  # how sharply the nearest is told from the others


def make_encoder(
    out: Path, seed: int, steps: int, rate: float, report: Callable[[str], None]
) -> None:
    """Trains the model and writes it with its tokenizer to `out`."""
    rng = Random(seed)
    settle(seed)
    tokenizer = make_tokenizer(rng)
    model = new_encoder(len(tokenizer))
    report(f"{model.num_parameters():,} parameters, vocabulary {len(tokenizer)}")
    train(model, tokenizer, rng, steps, rate, report)
    model.config.matryoshka_dimensions = list(WIDTHS)
    model.to(torch.bfloat16).save_pretrained(out)
    tokenizer.save_pretrained(out)
    _write_pooling(out)


def make_tokenizer(rng: Random) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer that does not know capitals from small letters."""
    bpe = Tokenizer(models.BPE())
    bpe.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    pairs = (pair(rng) for _ in range(_TEXTS))
    bpe.train_from_iterator((text for p in pairs for text in (p.first, p.second)), trainer)
    bpe.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=LONGEST,
        clean_up_tokenization_spaces=False,
    )


def new_encoder(vocabulary: int) -> BertModel:
    """An untrained model. Its heads are 32 wide: vLLM's CPU attention takes 32, 64, 96, 128."""
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=WIDTHS[-1],
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=384,
        max_position_embeddings=LONGEST,
        type_vocab_size=1,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=PAD,
    )
    return BertModel(config, add_pooling_layer=False)


def train(
    model: BertModel,
    tokenizer: PreTrainedTokenizerFast,
    rng: Random,
    steps: int,
    rate: float,
    report: Callable[[str], None],
) -> None:
    """Trains by batches of pairs; the rate goes up in a twentieth of the steps, then down."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    model.train()
    for step in range(steps):
        batch = [pair(rng) for _ in range(_BATCH)]
        loss = _loss(model, tokenizer, batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        share = min((step + 1) / (steps / 20), (steps - step) / steps)
        for group in optimizer.param_groups:
            group["lr"] = rate * share
        optimizer.step()
        if step % 25 == 24 or step == steps - 1:
            report(f"step {step + 1}/{steps}  loss {loss.item():.4f}")


def embed(model: BertModel, tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> torch.Tensor:
    """The embeddings of the texts, not normalised."""
    rows = [encoding.ids[:LONGEST] for encoding in tokenizer.backend_tokenizer.encode_batch(texts)]
    width = max(len(row) for row in rows)
    ids = torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
    mask = (ids != PAD).long()
    with torch.autocast("cpu", torch.bfloat16):
        hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
    weights = mask.unsqueeze(-1).float()
    return (hidden * weights).sum(1) / weights.sum(1)


def _loss(model: BertModel, tokenizer: PreTrainedTokenizerFast, batch: list[Pair]) -> torch.Tensor:
    """How badly partners are found among all sentences of the batch, at each width."""
    vectors = embed(model, tokenizer, [p.first for p in batch] + [p.second for p in batch])
    keys = [p.key for p in batch]
    same = torch.tensor([[a == b for b in keys] for a in keys])
    same.fill_diagonal_(False)  # the partner itself stays, others of the same meaning do not count
    target = torch.arange(len(batch))
    losses = []
    for width in WIDTHS:
        near = functional.normalize(vectors[:, :width], dim=-1)
        scores = near[: len(batch)] @ near[len(batch) :].T / _HEAT
        scores = scores.masked_fill(same, -1e4)
        losses += [functional.cross_entropy(s, target) for s in (scores, scores.T)]
    return torch.stack(losses).mean()


def _write_pooling(out: Path) -> None:
    """Tells vLLM, and whoever reads such models, that the mean of the tokens is the embedding."""
    modules = [
        {"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{name}"}
        for at, (path, name) in enumerate(_MODULES)
    ]
    pooling = {"word_embedding_dimension": WIDTHS[-1], "pooling_mode_mean_tokens": True}
    (out / "1_Pooling").mkdir(exist_ok=True)
    (out / "modules.json").write_text(json.dumps(modules, indent=2) + "\n")
    (out / "1_Pooling" / "config.json").write_text(json.dumps(pooling, indent=2) + "\n")
