"""From text to token ids and back: the tokenizer, the chat template, and encoded examples.

Needs tokenizers and transformers; no torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from penstock.replica.default_model.grammar import (
    STYLES,
    Conversation,
    Style,
    conversation,
    passage,
    plain,
    styled,
)

SPECIAL: Final = ("<s>", "<|pad|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
BOS, PAD, SYSTEM, USER, ASSISTANT, END = range(len(SPECIAL))
VOCABULARY: Final = 1536  # at most: the grammar has fewer words than that, so training stops before
LONGEST: Final = 4096  # tokens of context

# A role that the model was not taught is heard as the nearest one: developer as system, tool and
# any other as user. Content may be a string, absent, or a list of OpenAI content parts. Shouting
# is heard as if it were said: a word in capitals shares no token with the same word in small ones.
TEMPLATE: Final = (
    "{{- '<s>' -}}"
    "{%- for message in messages -%}"
    "{%- if message['content'] is string -%}{%- set text = message['content'] | trim -%}"
    "{%- elif message['content'] -%}"
    "{%- set text = message['content'] | selectattr('type', 'equalto', 'text')"
    " | map(attribute='text') | join | trim -%}"
    "{%- else -%}{%- set text = '' -%}{%- endif -%}"
    "{%- if message['role'] == 'assistant' -%}{{- '<|assistant|>' + text + '<|end|>' -}}"
    "{%- else -%}"
    "{%- if text == text | upper -%}{%- set text = text | lower -%}{%- endif -%}"
    "{%- if message['role'] in ('system', 'developer') -%}{{- '<|system|>' + text -}}"
    "{%- else -%}{{- '<|user|>' + text -}}{%- endif -%}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}"
)


def heard(text: str) -> str:
    """What the model hears of a message: as the template has it."""
    return text.lower() if text == text.upper() else text


@dataclass(frozen=True, slots=True)
class Example:
    """Token ids, and for each whether the model is to learn to say it."""

    ids: tuple[int, ...]
    said: tuple[bool, ...]


def make_tokenizer(rng: Random, *, texts: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer with the chat template, learnt from that many conversations."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    bpe.train_from_iterator(_words(rng, texts), trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        bos_token=SPECIAL[BOS],
        eos_token=SPECIAL[END],
        pad_token=SPECIAL[PAD],
        model_max_length=LONGEST,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def _words(rng: Random, texts: int) -> list[str]:
    """What the tokenizer learns its words from: all styles, and every number up to 120."""
    lines = []
    for _ in range(texts):
        for style in (plain, plain, plain, *STYLES.values()):
            turn = rng.choice(conversation(rng).turns)
            lines.append(f"{heard(turn.question)} {style(turn)}")
    return lines + [
        f"{n} plus {n}, from {n} to {n}." for n in range(121) for _ in range(texts // 50)
    ]


class Encoder:
    """Makes examples from the grammar, in the form of the chat template.

    Not from the template itself: the ids of a template rendered turn by turn are the same, and the
    places where the assistant speaks are known here.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast, style: Style = plain) -> None:
        self._tokenizer = tokenizer
        self._style = style

    def example(self, rng: Random) -> Example:
        """A random conversation in the encoder's style.

        For the plain style now and then one in another style, as the system prompt wishes, or a
        text without a chat around it.
        """
        if self._style is plain:
            kind = rng.random()
            if kind < 0.05:
                return self._passage(rng)
            if kind < 0.2:
                talk, style = styled(rng)
                return self.chat(talk, style=style, earlier=style)
        earlier = plain if rng.random() < 0.25 else self._style
        return self.chat(conversation(rng), style=self._style, earlier=earlier)

    def chat(self, talk: Conversation, *, style: Style, earlier: Style) -> Example:
        """The conversation with all of the assistant's words said in the style.

        With another style for the earlier turns only the last answer is learnt: so an adapter
        keeps its manner when it takes over a conversation from the base model.
        """
        ids, said = [BOS], [False]
        if talk.system:
            self._add(ids, said, [SYSTEM, *self._ids(talk.system)], learnt=False)
        for turn in talk.turns:
            last = turn is talk.turns[-1]
            words = style(turn) if last else earlier(turn)
            asked = [USER, *self._ids(heard(turn.question)), ASSISTANT]
            self._add(ids, said, asked, learnt=False)
            self._add(ids, said, [*self._ids(words), END], learnt=last or style is earlier)
        return Example(tuple(ids), tuple(said))

    def _passage(self, rng: Random) -> Example:
        """Plain text; its first words cannot be foreseen, so only what follows them is learnt."""
        text = self._ids(passage(rng))
        ids = [*([BOS] if rng.random() < 0.5 else []), *text, END]
        begins = len(ids) - len(text) + 4
        return Example(tuple(ids), tuple(at >= begins for at in range(len(ids))))

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer.backend_tokenizer.encode(text).ids)

    @staticmethod
    def _add(ids: list[int], said: list[bool], more: list[int], *, learnt: bool) -> None:
        ids += more
        said += [learnt] * len(more)
