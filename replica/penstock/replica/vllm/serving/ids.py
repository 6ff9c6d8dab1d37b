"""Names and times in answers that are the same wherever the call is answered.

vLLM draws the ids of tools' calls, of items and of signatures at random, and looks at its clock for
when an answer was made. In a call's behalf both come from the call: a hash of its request id and a
count, and one moment. Elsewhere they are what they were. Imports vLLM.
"""

from __future__ import annotations

import importlib
import sys
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import vllm.utils
from vllm.entrypoints.anthropic import serving as messages
from vllm.entrypoints.openai.chat_completion import serving as chat
from vllm.entrypoints.openai.completion import serving as completion
from vllm.entrypoints.openai.responses import serving as responses
from vllm.utils.mistral import is_mistral_tokenizer
from vllm.v1.engine import input_processor

from penstock.replica.vllm import surface
from penstock.replica.vllm.serving.tap import CURRENT
from penstock.replica.vllm.surface.values import Stage

_MISTRAL: Final = "vllm.parser.mistral"
"""Has ids of its own kind for tools' calls; what it imports takes a second."""


class CallUuids:
    """Stands for the module `uuid`."""

    def uuid4(self) -> uuid.UUID:
        """The call's next one; outside any call, a random one."""
        tap = CURRENT.get()
        return uuid.uuid4() if tap is None else tap.next_uuid()

    def __getattr__(self, name: str) -> Any:
        return getattr(uuid, name)


class CallClock:
    """Stands for the module `time`."""

    def time(self) -> float:
        """The moment that the call's answer names; outside any call, now."""
        tap = CURRENT.get()
        return datetime.now(UTC).timestamp() if tap is None else float(tap.created)

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


def install(tokenizer: Any) -> None:
    """Has vLLM's layers take both from the call; `install` it once the app is made."""
    # A name inside the engine, which has to be its only one.
    input_processor.random_uuid = lambda: f"{uuid.uuid4().int % (1 << 64):016x}"
    vllm.utils.uuid = messages.uuid = CallUuids()
    for module in (messages, chat, completion, responses):
        module.time = CallClock()
    if is_mistral_tokenizer(tokenizer) or _MISTRAL in sys.modules:
        surface.check(Stage.MISTRAL)
        calls = importlib.import_module(_MISTRAL).MistralToolCall
        calls.generate_random_id = staticmethod(of_mistral(calls.generate_random_id))


def of_mistral(original: Callable[[], str]) -> Callable[[], str]:
    """Nine letters and digits, the call's next ones."""

    def generate_random_id() -> str:
        tap = CURRENT.get()
        return original() if tap is None else tap.next_uuid().hex[:9]

    return generate_random_id
