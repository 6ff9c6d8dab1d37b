"""Gateways that ask what the comparer wants to know, as tests play them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from penstock.control.errors import Unavailable
from penstock.v1 import shadow_pb2
from tests.fakes.shadow_batches import answer

CHAT = "/v1/chat/completions"
Body = Mapping[str, Any]


async def nobody(question: shadow_pb2.ShadowQuestion) -> shadow_pb2.ShadowReply:
    """A stream that has ended."""
    raise Unavailable(f"nobody asks {question.deployment}")


class Asking:
    """A gateway that asks: `judge` and `embedder` say what is answered, by the question's body."""

    def __init__(
        self,
        judge: Callable[[Body], str] = lambda body: "TIE",
        embedder: Callable[[str], list[float]] = lambda text: [1.0, 0.0],
    ) -> None:
        self.asked: list[shadow_pb2.ShadowQuestion] = []
        self.outcome = ""  # why nothing is asked
        self.open = asyncio.Event()  # while it is not set, nothing is answered
        self.open.set()
        self.most_at_once = 0
        self._under_way = 0
        self._judge = judge
        self._embedder = embedder

    async def __call__(self, question: shadow_pb2.ShadowQuestion) -> shadow_pb2.ShadowReply:
        """Replies."""
        self.asked.append(question)
        self._under_way += 1
        self.most_at_once = max(self.most_at_once, self._under_way)
        await self.open.wait()
        self._under_way -= 1
        if self.outcome:
            return shadow_pb2.ShadowReply(outcome=self.outcome)
        body = json.loads(question.body)
        if question.path == CHAT:
            return shadow_pb2.ShadowReply(answer=answer(self._judge(body)))
        places = [
            {"index": index, "embedding": self._embedder(text)}
            for index, text in enumerate(body["input"])
        ]
        told = shadow_pb2.ShadowAnswer(status=200, body=json.dumps({"data": places}).encode())
        return shadow_pb2.ShadowReply(answer=told)


def likes(word: str) -> Callable[[Body], str]:
    """A judge that prefers the answer which holds the word, wherever it stands."""

    def judge(body: Body) -> str:
        shown = json.loads(body["messages"][-1]["content"])
        return "FIRST" if word in shown["first"] else "SECOND"

    return judge
