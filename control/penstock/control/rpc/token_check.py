"""Lets only those call who have the cluster's token."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias

import grpc
import grpc.aio

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
REFUSAL = (
    "this call carries no cluster token, or another cluster's: start the caller with "
    "--cluster-token-file and a copy of the head's cluster.token"
)


def carries(metadata: Iterable[tuple[str, str | bytes]] | None, authorization: str) -> bool:
    """Whether a call's metadata has exactly this authorization. Takes the same time for every
    wrong one."""
    found = [value for key, value in metadata or () if key == "authorization"]
    if len(found) != 1 or not isinstance(found[0], str):
        return False
    return hmac.compare_digest(found[0].encode(), authorization.encode())


class TokenCheck(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in stubs only
    """Answers UNAUTHENTICATED, reading nothing, where the authorization is another."""

    def __init__(self, authorization: str) -> None:
        self._authorization = authorization

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        """The service's own handler, or one that refuses."""
        if carries(handler_call_details.invocation_metadata, self._authorization):
            return await continuation(handler_call_details)
        # On the wire every kind of call begins alike, and this one takes no message.
        return grpc.stream_unary_rpc_method_handler(_refuse)


def token_checks(authorization: str) -> Sequence[TokenCheck]:
    """The interceptors of a server; none where no token is asked for."""
    return (TokenCheck(authorization),) if authorization else ()


async def _refuse(_: object, context: grpc.aio.ServicerContext[Any, Any]) -> None:
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, REFUSAL)


__all__ = ["TokenCheck", "carries", "token_checks"]
