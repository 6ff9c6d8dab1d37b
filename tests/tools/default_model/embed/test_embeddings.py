"""What the shipped penstock-embed is worth: near sentences are near, at every width."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from torch.nn.functional import normalize
from transformers import AutoModel, AutoTokenizer

from penstock.replica.default_model import EMBED_WEIGHTS, shipped
from tools.default_model import record
from tools.default_model.embed.encoder import WIDTHS, embed

# Written by hand, none of them by the generator that it learnt from.
PAIRS: Final = (
    ("How do I reset my password?", "I forgot my password, how can I change it?"),
    ("The cat sat on the mat.", "A cat was sitting on a rug."),
    ("Where can I buy a cheap car?", "I want to get an inexpensive automobile."),
    ("The doctor is ill today.", "Our physician is sick."),
    ("It is raining heavily in the city.", "There is a lot of rain downtown."),
    ("My computer is broken.", "The laptop does not work."),
    ("Please cancel my booking.", "I want to call off my reservation."),
    ("How long is the Nile?", "Tell me the length of the Nile."),
    ("What is a gateway?", "Explain the gateway to me."),
    ("The child reads a book.", "A kid is reading a novel."),
    ("The movie was boring.", "That film was not interesting."),
    ("I love hot coffee in the morning.", "A warm espresso at dawn is what I like."),
    ("The train is late.", "The railway is delayed again."),
    ("How do I send a letter?", "What is the way to mail a note?"),
    ("The price of the ticket is too high.", "The ticket is very expensive."),
    ("She repaired the bicycle.", "The woman fixed her bike."),
    ("The invoice has not been paid.", "Nobody paid the bill."),
    ("A dog barks at night.", "In the evening the hound is loud."),
    ("What happens when a replica dies?", "Tell me about failover."),
    ("The house is old and beautiful.", "It is a pretty, ancient home."),
)


@pytest.fixture(autouse=True)
def _few_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def _parts() -> tuple[Any, Any]:
    place = EMBED_WEIGHTS / "model"
    model = AutoModel.from_pretrained(place, dtype=torch.float32, add_pooling_layer=False)
    return model.eval(), AutoTokenizer.from_pretrained(place)


def _scores(width: int) -> torch.Tensor:
    """How near each first sentence is to each second one."""
    model, tokenizer = _parts()
    with torch.no_grad():
        vectors = embed(model, tokenizer, [text for pair in PAIRS for text in pair])
    near = normalize(vectors[:, :width], dim=-1)
    return near[::2] @ near[1::2].T


@pytest.mark.parametrize("width", WIDTHS)
def test_sentences_of_one_meaning_are_nearer_than_others(width: int) -> None:
    scores = _scores(width)
    together = scores.diag()
    apart = (scores.sum() - together.sum()) / (scores.numel() - len(PAIRS))
    assert together.mean() - apart > 0.4


def test_the_nearest_of_all_is_nearly_always_the_one_that_means_the_same() -> None:
    right = _scores(WIDTHS[-1]).argmax(dim=1) == torch.arange(len(PAIRS))
    assert int(right.sum()) >= 17


def test_it_is_small_and_what_it_was_made_with_stands_beside_it() -> None:
    made = json.loads((EMBED_WEIGHTS / record.FILE).read_text())
    files = [path for path in EMBED_WEIGHTS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 3_000_000
    assert made["sha256"] == record.digests(EMBED_WEIGHTS)
    assert set(made["versions"]) == set(record.ENCODER)
    assert made["seed"] == 7


def test_its_heads_suit_vllm_and_its_widths_are_told() -> None:
    place = shipped("penstock-embed")
    assert place is not None
    config = json.loads((place / "config.json").read_text())
    assert config["hidden_size"] // config["num_attention_heads"] == 32
    assert config["matryoshka_dimensions"] == list(WIDTHS)
