"""MicroServing's messages as JSON: protobuf's mapping, with the names of the fields as they are.

Two bytes fields are JSON themselves: the body of the request that is tokenized, and the params of
start_generate. Ids of a prompt are taken and given as one list, without a look at each in Python.
Raises `MicroServingError` with the cause `bad_request`. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.message import Message

from penstock.replica.engine_calls.wire import refuse
from penstock.v1 import microserving_pb2 as pb

_Object = dict[str, Any]


def _tokenize(told: _Object) -> Message:
    body = told.pop("body", None)
    if not isinstance(body, dict):
        raise refuse("body must be a JSON object: the request that is to be tokenized")
    request = pb.TokenizeRequest()
    request.call.method = "POST"
    _merge({"path": "/v1/chat/completions", **told}, request.call)
    request.call.body = json.dumps(body).encode()
    return request


def _start_generate(told: _Object) -> Message:
    params = told.pop("params", {})
    if not isinstance(params, dict):
        raise refuse("params must be a JSON object")
    request = _with_prompt(pb.StartGenerateRequest)(told)
    request.params = json.dumps(params).encode()  # type: ignore[attr-defined]
    return request


def _with_prompt(kind: type[Message]) -> Callable[[_Object], Message]:
    def read(told: _Object) -> Message:
        request: Any = kind()
        prompt = told.get("prompt")
        ids = prompt.pop("token_ids", []) if isinstance(prompt, dict) else []
        _merge(told, request)
        _extend(request.prompt, ids)
        return request  # type: ignore[no-any-return]

    return read


def _plain(kind: type[Message]) -> Callable[[_Object], Message]:
    def read(told: _Object) -> Message:
        request = kind()
        _merge(told, request)
        return request

    return read


REQUESTS: Final[Mapping[str, Callable[[_Object], Message]]] = {
    "tokenize": _tokenize,
    "prep_recv": _with_prompt(pb.PrepRecvRequest),
    "remote_send": _with_prompt(pb.RemoteSendRequest),
    "start_generate": _start_generate,
    "commit": _plain(pb.CommitRequest),
    "release": _plain(pb.ReleaseRequest),
    "lookup": _with_prompt(pb.LookupRequest),
}
"""How each call's JSON object is read, which it may change."""


def request_of(name: str, body: bytes) -> Message:
    """The request that stands in a body of the call `name`."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise refuse(f"the body is not JSON: {error}") from None
    if not isinstance(told, dict):
        raise refuse("the body must be a JSON object")
    return REQUESTS[name](told)


def body_of(reply: Message) -> bytes:
    """A reply as JSON."""
    prompt = getattr(reply, "prompt", None)
    ids = list(prompt.token_ids) if prompt is not None else []
    if prompt is not None:
        del prompt.token_ids[:]
    told = json_format.MessageToDict(
        reply, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    if prompt is not None:
        told["prompt"]["token_ids"] = ids
    return json.dumps(told).encode()


def _merge(told: _Object, request: Message) -> None:
    try:
        json_format.ParseDict(told, request)
    except (json_format.ParseError, RecursionError) as error:
        raise refuse(str(error)) from None


def _extend(prompt: pb.Prompt, ids: object) -> None:
    try:
        if not isinstance(ids, list):
            raise TypeError
        prompt.token_ids.extend(ids)
    except (TypeError, ValueError):
        raise refuse("prompt.token_ids must be an array of token ids") from None
