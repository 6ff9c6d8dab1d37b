"""What penstock-mini is taught: conversations, made of topics by a random number generator.

Pure: everything follows from the `random.Random` that the caller passes; no I/O, no clock, no
torch. A question may be asked in many ways, but the same question after the same words always has
the same answer: that is why so small a model learns its answers by heart.
"""

from tools.default_model.grammar.conversations import (
    THREADS,
    Conversation,
    conversation,
    passage,
    styled,
)
from tools.default_model.grammar.dialogues import Dialogue, Heard, Said
from tools.default_model.grammar.lessons import call_lesson, lesson
from tools.default_model.grammar.refresher import refresher
from tools.default_model.grammar.styles import (
    STYLES,
    Style,
    plain,
)
from tools.default_model.grammar.turns import Subject, Turn, asked

__all__ = [
    "STYLES",
    "THREADS",
    "Conversation",
    "Dialogue",
    "Heard",
    "Said",
    "Style",
    "Subject",
    "Turn",
    "asked",
    "call_lesson",
    "conversation",
    "lesson",
    "passage",
    "plain",
    "refresher",
    "styled",
]
