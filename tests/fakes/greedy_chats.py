"""What the default model is asked where its answers are compared with vLLM's own, greedily."""

from __future__ import annotations

from typing import Any, Final

TOKENS: Final = 200
CHATS: Final[list[Any]] = [
    [{"role": "user", "content": "What is a gateway?"}],
    [{"role": "user", "content": "What is 3 plus 4?"}],
    [{"role": "user", "content": "Tell me about the Rhine"}],
    [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "Hello"},
    ],
]
