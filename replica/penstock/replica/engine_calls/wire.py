"""MicroServing's values as microserving.proto has them, and back; what makes no sense is refused.

Raises `MicroServingError` with the cause `bad_request`. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from google.protobuf.message import Message

from penstock.replica.microserving.values import (
    Committed,
    Found,
    KvAddress,
    KvRank,
    MicroServingError,
    Prepared,
    Prompt,
    Sending,
    Sent,
    Tokenized,
)
from penstock.v1 import microserving_pb2 as pb

MOST_TOKENS: Final = 1 << 21  # of a prompt
_MOST_ID: Final = 128  # bytes of a seq_id
_MOST_SECRET: Final = 256  # bytes of a nonce, a fingerprint, a host
_MOST_RANKS: Final = 64
_MOST_PORT: Final = 65535


def refuse(message: str) -> MicroServingError:
    """A request that makes no sense."""
    return MicroServingError("bad_request", message)


def prompt_of(told: pb.Prompt) -> Prompt:
    """A prompt that is not empty."""
    if not 0 < len(told.token_ids) <= MOST_TOKENS:
        raise refuse(f"prompt.token_ids has {len(told.token_ids)} ids: give 1 to {MOST_TOKENS}")
    return Prompt(
        tuple(told.token_ids),
        told.adapter,
        told.adapter_digest,
        told.tenant_salt,
        tuple(told.mm_hashes),
    )


def movable(told: pb.Prompt) -> Prompt:
    """A prompt whose KV can be moved."""
    if told.mm_hashes:
        raise MicroServingError("unsupported", "KV of pictures and the like is not moved")
    return prompt_of(told)


def seq_id_of(text: str) -> str:
    """The name of a lease."""
    if not 0 < len(text.encode()) <= _MOST_ID:
        raise refuse(f"seq_id has {len(text.encode())} bytes: give 1 to {_MOST_ID}")
    return text


def end_of(end: int, prompt: Prompt) -> int:
    """Where KV ends that is wanted, in tokens of the prompt."""
    if not 0 < end <= len(prompt.token_ids):
        raise refuse(f"end is {end}: the prompt has {len(prompt.token_ids)} tokens")
    return end


def sending_of(told: pb.RemoteSendRequest) -> Sending:
    """What is to be sent, and where to."""
    prompt = movable(told.prompt)
    end = end_of(told.end, prompt)
    if told.begin > end:
        raise refuse(f"begin is {told.begin}, behind end, which is {end}")
    address = _address_of(told.kv_addr)
    if told.recv_rank >= len(address.ranks):
        raise refuse(f"recv_rank is {told.recv_rank}: kv_addr has {len(address.ranks)} ranks")
    return Sending(
        prompt,
        address,
        told.begin,
        end,
        seq_id_of(told.seq_id),
        told.recv_rank,
        told.request_id,
        told.traceparent,
        told.priority,
        told.deadline_ms,
        told.tenant,
    )


def _address_of(told: pb.KvAddress) -> KvAddress:
    if not 0 < len(told.ranks) <= _MOST_RANKS:
        raise refuse(f"kv_addr.ranks has {len(told.ranks)} places: give 1 to {_MOST_RANKS}")
    for name, text in (("nonce", told.nonce), ("fingerprint", told.fingerprint)):
        if len(text) > _MOST_SECRET:
            raise refuse(f"kv_addr.{name} has more than {_MOST_SECRET} bytes")
    return KvAddress(
        seq_id_of(told.lease),
        told.nonce,
        told.first_block,
        told.blocks,
        told.block_size,
        told.fingerprint,
        tuple(_rank_of(rank) for rank in told.ranks),
    )


def _rank_of(told: pb.KvRank) -> KvRank:
    if not told.host or len(told.host) > _MOST_SECRET or not 0 < told.port <= _MOST_PORT:
        raise refuse(f"kv_addr.ranks: {told.host[:80]!r}:{told.port} is no address")
    return KvRank(told.host, told.port)


_MESSAGES: Final[Mapping[type[Any], type[Message]]] = {
    Prompt: pb.Prompt,
    Tokenized: pb.TokenizeReply,
    KvRank: pb.KvRank,
    KvAddress: pb.KvAddress,
    Prepared: pb.PrepRecvReply,
    Sent: pb.RemoteSendReply,
    Committed: pb.CommitReply,
    Found: pb.LookupReply,
}


def message_of(value: Any) -> Message:
    """A value on its way out, as the message that has its fields by the same names."""
    told = {one.name: _field_of(getattr(value, one.name)) for one in fields(value)}
    return _MESSAGES[type(value)](**told)


def _field_of(told: Any) -> Any:
    """Values become messages. Ids are not walked: there may be `MOST_TOKENS` of them."""
    if type(told) in _MESSAGES:
        return message_of(told)
    if isinstance(told, tuple) and told and type(told[0]) in _MESSAGES:
        return [message_of(one) for one in told]
    return told
