"""KeepRouterTokens: what the agent tells of tokens, in whatever state the replica is."""

from __future__ import annotations

import time
from typing import Protocol

from penstock.replica.calls.inbox import Inbox, Kind
from penstock.replica.engine_calls.router_tokens import RouterTokens
from penstock.v1 import microserving_pb2 as pb


class Server(Protocol):
    """Where replies go."""

    def reply(self, key: int, reply: bytes) -> None:
        """See `_server.InferenceServer`."""

    def refuse(self, key: int, message: str) -> None:
        """See `_server.InferenceServer`."""


def keep_told_tokens(inbox: Inbox, server: Server, tokens: RouterTokens) -> None:
    """Has `tokens` be what the inbox brings from now on."""

    def keep(key: int, payload: bytes) -> None:
        request = pb.KeepRouterTokensRequest.FromString(payload)
        try:
            tokens.keep(request.sha256s, request.valid_ms, time.monotonic())
        except ValueError as error:
            server.refuse(key, f"bad_request: {error}")
        else:
            server.reply(key, pb.KeepRouterTokensReply().SerializeToString())

    inbox.listen(Kind.TOKENS, keep)
