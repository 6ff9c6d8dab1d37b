"""Clients of whom each knows what it is to be answered, and who take nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx

from tests.e2e.system import eventually


@dataclass
class Asker:
    """One client that asks the same again and again."""

    model: str
    stream: bool
    keeps: bool  # its connection; else each request has one of its own
    key: str = ""
    prompt: str = "Tell me a story"
    tokens: int = 20
    answered: str = ""  # what the first answer said, and all others have to
    answers: int = 0
    failures: list[str] = field(default_factory=list)

    async def ask_on(self, base_url: str, over: asyncio.Event) -> None:
        """Asks until it is over, and reads its last answer to the end."""
        while not over.is_set():
            async with httpx.AsyncClient(trust_env=False, timeout=30, verify=False) as client:
                await self._ask(client, base_url)
                while self.keeps and not over.is_set():
                    await self._ask(client, base_url)

    async def _ask(self, client: httpx.AsyncClient, base_url: str) -> None:
        body = {
            "model": self.model,
            "stream": self.stream,
            "max_tokens": self.tokens,
            "messages": [{"role": "user", "content": self.prompt}],
        }
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        try:
            url = f"{base_url}/chat/completions"
            async with client.stream("POST", url, json=body, headers=headers) as reply:
                text = (await reply.aread()).decode()
            said = _streamed(text) if self.stream and reply.status_code == 200 else text
            if reply.status_code == 200 and not self.stream:
                said = json.loads(text)["choices"][0]["message"]["content"]
        except (httpx.HTTPError, ValueError, KeyError) as error:
            self.failures.append(repr(error))
            return
        self.answered = self.answered or said
        if reply.status_code == 200 and said and said == self.answered:
            self.answers += 1
        else:
            self.failures.append(f"{reply.status_code} {said[-300:]}")


def _streamed(text: str) -> str:
    """The words of a stream. Raises ValueError for one that is not whole."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line]
    if lines[-1] != "[DONE]" or "finish_reason" not in lines[-2]:
        raise ValueError(f"a stream ends with {lines[-2:]}")
    choices = [choice for line in lines[:-1] for choice in json.loads(line)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


@dataclass
class Askers:
    """All of them."""

    each: list[Asker]

    @property
    def answers(self) -> int:
        """How many were as they had to be."""
        return sum(asker.answers for asker in self.each)

    @property
    def failures(self) -> list[str]:
        """All others."""
        return [failure for asker in self.each for failure in asker.failures]

    def some_more(self) -> None:
        """Returns once each has had an answer that it began to ask for after this."""
        before = [asker.answers for asker in self.each]

        def more() -> bool:
            assert not self.failures, self.failures[:5]
            found = [asker.answers for asker in self.each]
            return all(now >= then + 2 for then, now in zip(before, found, strict=True))

        eventually(more, within=60, what="two more answers to each")


@asynccontextmanager
async def asking(base_url: str, askers: list[Asker]) -> AsyncIterator[Askers]:
    """They ask as long as this lasts; none of them may fail."""
    over, all_of_them = asyncio.Event(), Askers(askers)
    async with asyncio.TaskGroup() as group:
        for asker in askers:
            group.create_task(asker.ask_on(base_url, over))
        try:
            yield all_of_them
        finally:
            over.set()
    assert not all_of_them.failures, all_of_them.failures[:5]
