"""From text to token ids and back: the tokenizer, the chat template, and encoded examples.

Needs tokenizers and transformers; no torch.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Final

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from tools.default_model.grammar import (
    STYLES,
    Conversation,
    Dialogue,
    Heard,
    Said,
    Style,
    call_lesson,
    conversation,
    lesson,
    passage,
    plain,
    refresher,
    styled,
)
from tools.default_model.template import TEMPLATE

SPECIAL: Final = (
    "<s>",
    "<|pad|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|end|>",
    "<|tools|>",
    "<|tool|>",
)
BOS, PAD, SYSTEM, USER, ASSISTANT, END, TOOLS, TOOL = range(len(SPECIAL))
TAGS: Final = ("<tool_call>", "</tool_call>")  # not special: decoding must keep them for the parser
VOCABULARY: Final = 1536  # at most, without the tags
LONGEST: Final = 4096  # tokens of context
_ROLES: Final = {"system": SYSTEM, "user": USER, "tool": TOOL}
_COMMON: Final = 250


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
    lines = _words(rng, texts)
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_pattern(lines)), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    bpe.train_from_iterator(lines, trainer)
    bpe.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in TAGS])
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


def _pattern(lines: Iterable[str]) -> str:
    """What is cut apart before the pairs are merged.

    The commonest words take the space before them along. To any other word and to numbers it is a
    token of its own, so that they are the same tokens in a question, in a sentence and in JSON:
    the model can copy them. Signs stand alone for the same reason.
    """
    counts = Counter(word for line in lines for word in re.findall(r"(?<= )[a-z]+(?![\w])", line))
    common = sorted(word for word, _ in counts.most_common(_COMMON))
    return rf" (?:{'|'.join(common)})(?![\p{{L}}\p{{N}}_])|\p{{L}}+|\p{{N}}+|[^\p{{L}}\p{{N}}]"


def _words(rng: Random, texts: int) -> list[str]:
    """What the tokenizer learns its words from: all styles, all lessons, numbers up to 150."""
    lines = []
    for _ in range(texts):
        for style in (plain, plain, plain, *STYLES.values()):
            turn = rng.choice(conversation(rng).turns)
            lines.append(f"{heard(turn.question)} {style(turn)}")
        talk = lesson(rng)
        lines += [tool.signature() for tool in talk.tools]
        lines += [m.text if isinstance(m, Heard) else m.text() for m in talk.messages]
    return lines + [
        f"{n} plus {n}, from {n} to {n}." for n in range(151) for _ in range(texts // 20)
    ]


class Encoder:
    """Makes examples from the grammar, in the form of the chat template.

    Not from the template itself: the ids of a template rendered turn by turn are the same, and the
    places where the assistant speaks are known here.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerFast,
        style: Style = plain,
        *,
        lessons: float = 0.38,
        refreshers: float = 0.0,
    ) -> None:
        self._tokenizer = tokenizer
        self._style = style
        self._lessons = lessons  # of all examples in the plain style
        self._refreshers = refreshers

    def example(self, rng: Random) -> Example:
        """A random conversation in the encoder's style.

        For the plain style now and then a lesson, one in another style, as the system prompt
        wishes, or a text without a chat around it. For another style now and then a call: an
        adapter must not unlearn them.
        """
        if self._style is plain:
            kind = rng.random()
            if kind < 0.05:
                return self._passage(rng)
            if kind < 0.15:
                talk, style = styled(rng)
                return self.chat(talk, style=style, earlier=style)
            if kind < 0.15 + self._lessons:
                return self.dialogue(lesson(rng))
            if kind > 1 - self._refreshers:
                return self.dialogue(refresher(rng))
        elif rng.random() < 0.12:
            return self.dialogue(call_lesson(rng))
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

    def dialogue(self, talk: Dialogue) -> Example:
        """A lesson; all that the assistant says is learnt, but for what a grammar said for it."""
        ids, said = [BOS], [False]
        if talk.tools:
            offered = "\n".join(tool.signature() for tool in talk.tools)
            self._add(ids, said, [TOOLS, *self._ids(offered)], learnt=False)
        for message in talk.messages:
            if isinstance(message, Said):
                self._say(ids, said, message)
            else:
                text = message.text if message.role == "tool" else heard(message.text)
                self._add(ids, said, [_ROLES[message.role], *self._ids(text)], learnt=False)
        return Example(tuple(ids), tuple(said))

    def _say(self, ids: list[int], said: list[bool], message: Said) -> None:
        """What the assistant says: a token is learnt if its first letter is."""
        learnt = [flag for text, flag in message.written() for _ in text]
        encoded = self._tokenizer.backend_tokenizer.encode(message.text())
        ids += [ASSISTANT, *encoded.ids, END]
        said += [False, *(learnt[start] for start, _ in encoded.offsets), True]

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
