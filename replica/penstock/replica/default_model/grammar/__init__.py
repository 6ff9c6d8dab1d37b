"""What penstock-mini is taught: conversations, made of topics by a random number generator.

Pure: everything follows from the `random.Random` that the caller passes; no I/O, no clock, no
torch. A question may be asked in many ways, but the same question after the same words always has
the same answer: that is why so small a model learns its answers by heart.
"""

from penstock.replica.default_model.grammar.conversations import (
    THREADS,
    Conversation,
    conversation,
    passage,
    styled,
)
from penstock.replica.default_model.grammar.styles import (
    STYLES,
    Style,
    plain,
)
from penstock.replica.default_model.grammar.turns import Subject, Turn, asked

__all__ = [
    "STYLES",
    "THREADS",
    "Conversation",
    "Style",
    "Subject",
    "Turn",
    "asked",
    "conversation",
    "passage",
    "plain",
    "styled",
]
