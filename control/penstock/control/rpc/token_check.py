"""Lets only those call who have the cluster's token, and replicas their own agent."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Container, Iterable, Sequence
from typing import Any, TypeAlias

import grpc
import grpc.aio

from penstock.control.cluster_security import SCHEME, ClusterSecurity
from penstock.control.replica_tokens import replica_of

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
REFUSAL = (
    "this call carries no cluster token, or another cluster's: start the caller with "
    "--cluster-token-file and a copy of the head's cluster.token"
)


Metadata: TypeAlias = Iterable[tuple[str, str | bytes]]


def carries(metadata: Metadata | None, authorization: str) -> bool:
    """Whether a call's metadata has exactly this authorization. Takes the same time for every
    wrong one."""
    return hmac.compare_digest(_shown(metadata).encode(), authorization.encode())


class TokenCheck(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in stubs only
    """Answers UNAUTHENTICATED, reading nothing, where the authorization is another."""

    def __init__(self, authorization: str) -> None:
        self._authorization = authorization

    def admits(self, call: grpc.HandlerCallDetails) -> bool:
        """Whether this call may be answered."""
        return carries(call.invocation_metadata, self._authorization)

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        """The service's own handler, or one that refuses."""
        if self.admits(handler_call_details):
            return await continuation(handler_call_details)
        # On the wire every kind of call begins alike, and this one takes no message.
        return grpc.stream_unary_rpc_method_handler(_refuse)


class AgentTokenCheck(TokenCheck):
    """An agent's: its replicas may call the methods that are for them, each by its own token."""

    def __init__(self, security: ClusterSecurity, agent_id: str, methods: Container[str]) -> None:
        super().__init__(security.authorization)
        self._cluster_token = security.token
        self._agent_id = agent_id
        self._methods = methods

    def admits(self, call: grpc.HandlerCallDetails) -> bool:
        """Whether this call may be answered."""
        if super().admits(call):
            return True
        return call.method in self._methods and bool(self.replica_in(call.invocation_metadata))

    def replica_in(self, metadata: Metadata | None) -> str:
        """Which replica calls; empty where it is none that shows a token of its own."""
        shown = _shown(metadata)
        if not shown.startswith(SCHEME):
            return ""
        return replica_of(shown.removeprefix(SCHEME), self._cluster_token, self._agent_id)


def token_checks(authorization: str) -> Sequence[TokenCheck]:
    """The interceptors of a server; none where no token is asked for."""
    return (TokenCheck(authorization),) if authorization else ()


def _shown(metadata: Metadata | None) -> str:
    """The one authorization that a call carries; empty where there is none, or several."""
    found = [value for key, value in metadata or () if key == "authorization"]
    one = found[0] if len(found) == 1 else ""
    return one if isinstance(one, str) else ""


async def _refuse(_: object, context: grpc.aio.ServicerContext[Any, Any]) -> None:
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, REFUSAL)
