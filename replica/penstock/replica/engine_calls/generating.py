"""StartGenerate as the call of `/v1/completions` that it means."""

from __future__ import annotations

import json
import secrets
from typing import Any, Final

from penstock.replica.engine_calls.wire import prompt_of, refuse
from penstock.replica.values import Call, KvHint
from penstock.v1 import microserving_pb2 as pb

_MOST_PARAMS: Final = 256 << 10  # bytes

PARAMS: Final = frozenset(
    {
        "allowed_token_ids",
        "bad_words",
        "frequency_penalty",
        "ignore_eos",
        "include_stop_str_in_output",
        "logit_bias",
        "logprobs",
        "max_tokens",
        "min_p",
        "min_tokens",
        "presence_penalty",
        "repetition_penalty",
        "response_format",
        "seed",
        "simulate",
        "skip_special_tokens",
        "spaces_between_special_tokens",
        "stop",
        "stop_token_ids",
        "stream_options",
        "structured_outputs",
        "temperature",
        "top_k",
        "top_p",
        "user",
    }
)
"""What `params` may hold: how tokens are chosen, and when they end."""


def completion_of(request: pb.StartGenerateRequest, served_name: str) -> Call:
    """The call, which streams, and tells the ids of its tokens. Raises `MicroServingError`."""
    prompt, told = prompt_of(request.prompt), request.call
    body = {
        "stream_options": {"include_usage": True},
        **_params_of(request.params),
        "model": served_name,
        "prompt": prompt.token_ids,
        "stream": True,
        "return_token_ids": True,
    }
    return Call(
        told.request_id or secrets.token_hex(8),
        "/v1/completions",
        json.dumps(body).encode(),
        told.model or served_name,
        adapter=prompt.adapter,
        adapter_digest=prompt.adapter_digest,
        priority=told.priority,
        deadline_ms=told.deadline_ms,
        tenant_salt=prompt.tenant_salt,
        traceparent=told.traceparent,
        token_groups=True,
        tenant=told.tenant,
        kv=KvHint(request.seq_id, request.begin),
    )


def _params_of(text: bytes) -> dict[str, Any]:
    if len(text) > _MOST_PARAMS:
        raise refuse(f"params has {len(text)} bytes: at most {_MOST_PARAMS} are taken")
    try:
        params = json.loads(text or b"{}")
    except (ValueError, RecursionError) as error:
        raise refuse(f"params is not JSON: {error}") from None
    if not isinstance(params, dict):
        raise refuse("params must be a JSON object")
    for name in params:
        if name in ("prompt", "model", "stream"):
            raise refuse(f"params: {name!r} is told by the request itself; leave it out")
        if name not in PARAMS:
            raise refuse(f"params: {name[:80]!r} is not known; known are {', '.join(_SORTED)}")
    return params


_SORTED: Final = tuple(sorted(PARAMS))
