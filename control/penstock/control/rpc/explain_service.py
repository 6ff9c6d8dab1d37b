"""Routes.Explain: the head asks a gateway about requests, on a stream that the gateway opens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import grpc

from penstock.control.errors import InvalidInput, NotAdmitted
from penstock.control.managers.observe.explain import ExplainManager
from penstock.control.managers.observe.link import GatewayLink
from penstock.control.rpc.explain_wire import question, reply
from penstock.v1 import explain_pb2

log = logging.getLogger(__name__)

Context = grpc.aio.ServicerContext[Any, Any]
Replies = AsyncIterator[explain_pb2.ExplainReply]


class ExplainService:
    """One stream for each gateway's process."""

    def __init__(self, explain: ExplainManager) -> None:
        self._explain = explain

    async def serve(self, replies: Replies, context: Context) -> None:
        """Until the gateway goes, opens another one, or says what it was not asked."""
        hello = await anext(aiter(replies), None)
        if hello is None:
            return
        if not hello.gateway_id:
            why = "gateway_id is empty: the first message says whose the stream is"
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, why)
        if not self._explain.knows(hello.gateway_id):
            why = f"gateway {hello.gateway_id} has not reported to this head: report first"
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, why)
        try:
            link = self._explain.connect(hello.gateway_id, hello.instance)
        except NotAdmitted as refused:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(refused))
        wrong = ""
        try:
            async with asyncio.TaskGroup() as tasks:
                reading = tasks.create_task(_read(link, replies))
                async for asked in link.questions():
                    await context.write(question(asked))
                reading.cancel()
        except* InvalidInput as errors:
            wrong = str(errors.exceptions[0])
        finally:
            self._explain.disconnect(link)
        if wrong:
            log.warning("gateway is asked no more: %s", wrong, extra={"gateway": link.gateway})
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, wrong)


async def _read(link: GatewayLink, replies: Replies) -> None:
    async for message in replies:
        link.take(reply(message, link.gateway))
    link.end()
