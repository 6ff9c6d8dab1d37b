"""Amazon Bedrock as a provider, by Converse and ConverseStream.

Settings: `region`, `profile`, `role_arn`, `endpoint_url`, `guardrail_id`, `guardrail_version`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

from penstock.replica.providers import bedrock_errors, errors
from penstock.replica.providers.account import Account
from penstock.replica.providers.bedrock_client import (
    VERSION,
    Client,
    NoCredentials,
    NotAllowed,
    Refused,
)
from penstock.replica.providers.bedrock_client import Account as AwsAccount
from penstock.replica.providers.converse_answers import ConverseStream, whole
from penstock.replica.providers.converse_request import converse_request
from penstock.replica.providers.hosts import Hosts
from penstock.replica.providers.requests import CHAT
from penstock.replica.providers.settings import Arguments, Common
from penstock.replica.providers.sizes import most_bytes
from penstock.replica.providers.values import HEARD, Ask, Piece, Place, ProviderFailed
from penstock.replica.values import CannotLoad


class BedrockProvider:
    """One model of Bedrock's."""

    name = "bedrock"
    version = VERSION
    endpoints = (CHAT,)

    def __init__(
        self, arguments: Arguments, hosts: Hosts, model: str, common: Common, capacity: int
    ) -> None:
        """Raises `CannotLoad`."""
        account = AwsAccount(
            region=arguments.text("region"),
            profile=arguments.text("profile"),
            role_arn=arguments.text("role_arn"),
            endpoint_url=arguments.text("endpoint_url"),
        )
        self._model = model
        self._allowed = common.allowed
        self._guardrail = arguments.text("guardrail_id"), arguments.text("guardrail_version")
        if bool(self._guardrail[0]) != bool(self._guardrail[1]):
            raise CannotLoad("guardrail_id and guardrail_version go together: set both or none")
        longest = max(
            common.first_event_timeout, common.answer_timeout, common.between_events_timeout
        )
        self._client = Client(account, hosts, capacity, common.connect_timeout, longest + 1)
        self.place: Place | None = _place(self._client.endpoint_url, hosts)

    async def answer(self, ask: Ask, account: Account) -> AsyncGenerator[Piece, None]:
        """See `Provider`."""
        request = converse_request(ask, self._model, self._guardrail, self._allowed)
        account.sent, most = True, most_bytes(ask)
        try:
            if not ask.stream:
                account.provider_request_id, reply = await self._client.converse(request, most)
                yield whole(ask, account, reply)
                return
            reading = ConverseStream(ask, account)
            async with aclosing(self._client.stream(request, most)) as batches:
                async for batch in batches:
                    if isinstance(batch[0], str):
                        account.provider_request_id = batch.pop(0)
                    piece = HEARD
                    for event in batch:
                        for piece in reading.take(event):
                            yield piece
                    if piece is HEARD:
                        yield piece
            for piece in reading.end():
                yield piece
        except (Refused, NoCredentials, NotAllowed) as error:
            raise self._failed(error, account) from None

    async def close(self) -> None:
        """See `Provider`."""
        self._client.close()

    def _failed(
        self, error: Refused | NoCredentials | NotAllowed, account: Account
    ) -> ProviderFailed:
        if isinstance(error, Refused):
            account.provider_request_id = error.request_id or account.provider_request_id
            account.refused(error.status)
            return bedrock_errors.refused(
                error.code, error.message, error.status, error.retry_after_ms, self._model
            )
        account.sent = False
        if isinstance(error, NotAllowed):
            return errors.host_not_allowed(str(error))
        return errors.credentials()


def _place(endpoint_url: Any, hosts: Hosts) -> Place:
    parts = urlsplit(endpoint_url)
    if parts.username is not None or parts.password is not None:
        raise CannotLoad("endpoint_url holds a user or a password: AWS's own chain has secrets")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CannotLoad("endpoint_url must be like https://bedrock-runtime.example.com")
    if not hosts.allow(parts.hostname, resolve=True):
        raise CannotLoad(errors.host_not_allowed(parts.hostname).failed.message)
    tls = parts.scheme == "https"
    return Place(parts.hostname, parts.port or (443 if tls else 80), tls)
