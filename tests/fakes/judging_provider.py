"""A provider that judges answers, and says where texts lie, by their length alone."""

from __future__ import annotations

import json
from typing import Any

from tests.fakes.provider_server import Asked, Scenario, Wire


class JudgingProvider:
    """What it answers with: `scenario`. It likes the longer answer better."""

    def __init__(self) -> None:
        self.judged: list[dict[str, str]] = []  # what it was shown
        self.embedded: list[list[str]] = []  # texts of each question

    @property
    def scenario(self) -> Scenario:
        """For a `ProviderServer`."""

        async def answer(asked: Asked, wire: Wire) -> None:
            body = json.loads(asked.body)
            told = self._embed(body) if asked.path.endswith("/embeddings") else self._judge(body)
            await wire.whole(200, json.dumps({**told, "model": body["model"]}).encode())

        return answer

    def _judge(self, body: dict[str, Any]) -> dict[str, Any]:
        try:
            shown = json.loads(body["messages"][-1]["content"])
        except ValueError:  # the trial of a deployment that has just begun
            shown = {"first": "", "second": ""}
        self.judged.append(shown)
        lengths = (len(shown["first"]), len(shown["second"]))
        word = (
            "TIE" if lengths[0] == lengths[1] else "FIRST" if lengths[0] > lengths[1] else "SECOND"
        )
        message = {"role": "assistant", "content": word}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 200, "completion_tokens": 1, "total_tokens": 201},
        }

    def _embed(self, body: dict[str, Any]) -> dict[str, Any]:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        self.embedded.append(texts)
        places = [
            {"object": "embedding", "index": index, "embedding": [float(len(text)), 100.0]}
            for index, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 20, "total_tokens": 20}
        return {"object": "list", "data": places, "usage": usage}
