"""What of a request is the replica's to say: engine controls that a client may not set.

vLLM's request models carry fields by which a router steers the engine. They are overwritten on the
parsed request, just before vLLM's serving layer gets it; the body itself stays as it came. A new
vLLM may bring new fields: `tests/replica/vllm/guards/test_request_fields.py` names every one that
was seen.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.replica.values import Call
from penstock.replica.vllm.endpoints import ENDPOINTS, Endpoint
from penstock.replica.vllm.guards import costs, limits, texts
from penstock.replica.vllm.guards.costs import NotOffered
from penstock.replica.vllm.guards.limits import Capacity

NEUTRAL: Final[dict[str, Any]] = {
    # Where the request's KV blocks come from and go to.
    "kv_transfer_params": None,
    "ec_transfer_params": None,
    # Arguments of engine extensions.
    "vllm_xargs": None,
    # Keeps requests together on one engine of several.
    "session_id": None,
    # Routed-expert dumps, for those who train.
    "routed_experts_prompt_start": 0,
    # Says how often to wake the serving layer.
    "stream_interval": None,
    # Arguments of the processors of images and sound, run before any limit.
    "mm_processor_kwargs": None,
    "media_io_kwargs": None,
    # Nothing of an answer is kept after it.
    "store": False,
}
"""Fields that are put back to what they are when a client does not name them."""

REFUSED: Final = {
    "use_beam_search": "Beam search is not offered; leave use_beam_search out.",
    "background": "Answers are not kept, so none can be made in the background; leave "
    "background out.",
    "conversation": "Conversations are not kept; leave conversation out, and send all of it in "
    "input.",
    "previous_response_id": "Answers are not kept, so none can be gone on with; leave "
    "previous_response_id out, and send the whole conversation in input.",
}
"""Fields that refuse a request which sets them, and what to do."""

_STRUCTURED: Final = "is not known any more; send structured_outputs, or response_format, instead."
UNKNOWN: Final = {
    "functions": "Functions are called as tools here; send tools, and tool_choice for "
    "function_call.",
    "guided_json": f"guided_json {_STRUCTURED}",
    "guided_regex": f"guided_regex {_STRUCTURED}",
    "guided_choice": f"guided_choice {_STRUCTURED}",
    "guided_grammar": f"guided_grammar {_STRUCTURED}",
    "best_of": "Answers are not picked out of several; leave best_of out, and send n for several.",
}
"""Fields of older APIs that vLLM does not have and would leave out of account, though they ask for
another answer: they refuse a request as well. Other unknown fields are dropped."""

_ID: Final = (
    "The gateway names each request itself; send a name of your own in the header x-request-id, "
    "and leave request_id out."
)
_THINKING: Final = ("/v1/messages", "/v1/messages/count_tokens")
"""Endpoints whose clients ask for thinking with every turn, whatever the model can."""

_CLIENT_TOOLS: Final = ("function", "custom", "namespace")
"""Types of a response's tools that the client runs: no others are served."""

NULLS: Final[dict[str, Any]] = {"background": False, "truncation": "disabled"}
"""Fields whose null means what leaving them out does, and for which vLLM's answer has no null."""

_BYTES: Final = ("bytes", "bytes_only")


def take_over(request: Any, call: Call, capacity: Capacity) -> None:
    """Sets the engine controls of vLLM's parsed request as the call says. Raises `NotOffered`."""
    _refuse(request)
    endpoint = ENDPOINTS[call.path]
    _measure(request, call.body, endpoint, capacity)
    _drop_unknown(request)
    if not capacity.reasons and call.path in _THINKING:
        _set(request, "thinking_token_budget", None)
    own = {
        "priority": call.priority,
        "cache_salt": call.tenant_salt or None,
        "request_id": endpoint.id_prefix + call.request_id,
    }
    for name, value in (NEUTRAL | own).items():
        _set(request, name, value)
    for name, value in NULLS.items():
        if getattr(request, name, value) is None:
            _set(request, name, value)


def _measure(request: Any, body: bytes, endpoint: Endpoint, capacity: Capacity) -> None:
    limits.check(request, endpoint.several, capacity)
    if endpoint is ENDPOINTS["/v1/embeddings"]:
        limits.check_numbers(request, endpoint.several, capacity.width)
    texts.check(request, body, endpoint.several, capacity.context)
    costs.check(request)


def _refuse(request: Any) -> None:
    for name, why in (REFUSED | UNKNOWN).items():
        value = getattr(request, name, None)
        if value and not (name == "best_of" and value == 1):
            raise NotOffered(why, name)
    if "request_id" in getattr(request, "model_fields_set", ()):
        raise NotOffered(_ID, "request_id")
    for place, tool in enumerate(getattr(request, "tools", None) or ()):
        kind = getattr(tool, "type", "function")
        if kind not in _CLIENT_TOOLS:
            raise NotOffered(not_served(kind), f"tools.{place}.type")
    if getattr(request, "encoding_format", None) in _BYTES:
        raise NotOffered(
            f"encoding_format {request.encoding_format!r} is not offered, since its shape is told "
            "in a header; use float or base64.",
            "encoding_format",
        )


def not_served(kind: str) -> str:
    """What a request is told whose tool would have to be run here."""
    return f"Tools of type {kind!r} are not served: tools are run by the client; leave it out."


def _drop_unknown(request: Any) -> None:
    """Fields that the model does not have, which vLLM keeps, and of which it reads some."""
    unknown = request.__pydantic_extra__
    if unknown:
        unknown.clear()


def _set(request: Any, name: str, value: Any) -> None:
    if name in type(request).model_fields:
        setattr(request, name, value)
