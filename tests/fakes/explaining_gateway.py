"""A gateway's side of Routes.Explain: it keeps records, and answers as one does, or as it is told:
late, never, too much, what nobody asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import grpc

from penstock.control.managers.observe.explain import ExplainManager
from penstock.control.rpc.explain_wire import question, reply
from penstock.v1 import explain_pb2 as v1

Answer = Callable[[v1.ExplainQuestion], Iterable[v1.ExplainReply]]


def record(
    request_id: str = "req_1", at_us: int = 1_000_000, status: int = 200, **more: Any
) -> v1.RequestRecord:
    """A request that has ended."""
    outcome = "succeeded" if status == 200 else "failed"
    said = {"outcome": outcome, "duration_us": 1_500, "path": "/v1/chat/completions", **more}
    return v1.RequestRecord(request_id=request_id, received_us=at_us, status=status, **said)


class ExplainingGateway:
    """From `over` or `beside` on, each for one life of its stream."""

    def __init__(self, name: str = "gw-1", *records: v1.RequestRecord) -> None:
        self.name = name
        self.instance = "i1"
        self.records = list(records)
        self.asked: list[v1.ExplainQuestion] = []
        self.answer: Answer = self.as_asked
        self.tails: dict[int, v1.RequestFilter] = {}
        self.loop: asyncio.AbstractEventLoop  # the head's, where it is beside it
        self.tell: Callable[[v1.ExplainReply], Any]  # what it likes, while its stream is open

    async def over(self, stub: Any) -> grpc.StatusCode:
        """Opens a stream to a served head, until that ends it, and how."""
        call = stub.Explain()
        self.tell = call.write
        await call.write(v1.ExplainReply(gateway_id=self.name, instance=self.instance))
        try:
            async for each in call:
                for said in self._answered(each):
                    await call.write(said)
        except grpc.aio.AioRpcError:
            pass
        return await call.code()  # type: ignore[no-any-return]

    async def beside(self, explain: ExplainManager) -> None:
        """The same without a wire between, until the head ends it."""
        self.loop = asyncio.get_running_loop()
        link = explain.connect(self.name, self.instance)
        self.tell = lambda said: link.take(reply(said, self.name))
        try:
            async for each in link.questions():
                for said in self._answered(question(each)):
                    self.tell(said)
        finally:
            explain.disconnect(link)

    async def end(self, *ended: v1.RequestRecord, left_out: int = 0) -> None:
        """These requests end now."""
        self.records += ended
        for number in self.tails:
            said = v1.ExplainReply(question=number, records=ended, left_out=left_out)
            if told := self.tell(said):
                await told

    def end_elsewhere(self, *ended: v1.RequestRecord, left_out: int = 0) -> None:
        """The same, from a thread that is not the head's."""
        telling = self.end(*ended, left_out=left_out)
        asyncio.run_coroutine_threadsafe(telling, self.loop).result()

    def as_asked(self, asked: v1.ExplainQuestion) -> Iterator[v1.ExplainReply]:
        """In two parts, as a real one's answers come in several."""
        found = [each for each in self.records if _is_so(each, asked)]
        found.sort(key=lambda each: (each.received_us, each.request_id), reverse=True)
        found = found[: asked.list.limit or 100]
        number = asked.number
        yield v1.ExplainReply(question=number, records=found[:1])
        since = min((each.received_us for each in self.records), default=0)
        yield v1.ExplainReply(question=number, records=found[1:], last=True, kept_since_us=since)

    def _answered(self, asked: v1.ExplainQuestion) -> Iterable[v1.ExplainReply]:
        self.asked.append(asked)
        match asked.WhichOneof("ask"):
            case "tail":
                self.tails[asked.number] = asked.tail
            case "forget":
                self.tails.pop(asked.forget, None)
            case _:
                return self.answer(asked)
        return ()


def _is_so(it: v1.RequestRecord, asked: v1.ExplainQuestion) -> bool:
    if asked.id:
        return asked.id in (it.request_id, it.client_request_id)
    wanted = asked.list
    return (
        wanted.tenant in ("", it.tenant)
        and wanted.status in (0, it.status, it.status // 100)
        and wanted.since_us <= it.received_us
        and (not wanted.before_us or it.received_us < wanted.before_us)
    )


def silent(_: v1.ExplainQuestion) -> Iterable[v1.ExplainReply]:
    """Never says anything."""
    return ()


def endless(asked: v1.ExplainQuestion) -> Iterator[v1.ExplainReply]:
    """Three times as many records as may be asked for, none of them the last."""
    for part in range(30):
        records = [record(f"req_{part}_{n}", 1_000_000 - part) for n in range(100)]
        yield v1.ExplainReply(question=asked.number, records=records)


def huge(asked: v1.ExplainQuestion) -> Iterator[v1.ExplainReply]:
    """A record that is none, between two that are."""
    records = [record("req_a"), record("req_b", message="x" * 100_000), record("req_c")]
    yield v1.ExplainReply(question=asked.number, records=records, last=True)


def of_another_question(asked: v1.ExplainQuestion) -> Iterator[v1.ExplainReply]:
    """Answers one that it will be asked later."""
    yield v1.ExplainReply(question=asked.number + 7, records=[record()], last=True)
