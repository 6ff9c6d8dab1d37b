"""Describes the gateway's API, to a file:
`python -m penstock.replica.vllm.exports.openapi gateway_cpp/openapi.json`.

Requests and answers are vLLM's own models, without the fields that are not a client's to set;
errors, headers and the pages that the gateway answers itself are Penstock's. The gateway serves the
file at /openapi.json. Made anew with a new vLLM, or when the table of endpoints changes; tests fail
until it is.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from penstock.replica.vllm.exports.described import ANTHROPIC, DESCRIBED, OPENAI, Described
from penstock.replica.vllm.guards import controls

Json = dict[str, Any]
Refs = dict[tuple[str, str], Json]
"""What stands for an endpoint's models, by (path, role)."""

_REF: Final = "#/components/schemas/{model}"
_FROM_THE_CALL: Final = ("priority", "cache_salt", "request_id")
_ANSWERED: Final = ("store",)
"""Fields that are put back to their defaults, but which clients of the OpenAI API send."""
_NO_CLIENTS: Final = {*controls.NEUTRAL, *controls.REFUSED, *_FROM_THE_CALL} - {*_ANSWERED}

_TEXT: Final[Json] = {"type": "string"}
_TEXT_OR_NULL: Final[Json] = {"type": ["string", "null"]}
_NUMBER: Final[Json] = {"type": "integer"}


def _object(required: Json, optional: Json | None = None) -> Json:
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": sorted(required),
    }


_CARD: Final = _object(
    {
        "id": _TEXT,
        "object": {"const": "model"},
        "created": _NUMBER,
        "owned_by": _TEXT,
        "root": _TEXT,
        "parent": _TEXT_OR_NULL,
        "max_model_len": {"type": ["integer", "null"]},
    }
)
_USED: Final = _object(
    {
        "num_model_requests": _NUMBER,
        "num_limited_requests": _NUMBER,
        "input_tokens": _NUMBER,
        "input_cached_tokens": _NUMBER,
        "output_tokens": _NUMBER,
        "cost_usd": {"type": "number"},
    }
)
_LIMIT: Final = _object({"limit": _NUMBER, "remaining": _NUMBER}) | {"type": ["object", "null"]}
_DOLLARS: Final = _object({"limit": {"type": "number"}, "remaining": {"type": "number"}}) | {
    "type": ["object", "null"]
}
_OF_A_DAY: Final = {"tokens_per_day": _LIMIT, "usd_per_day": _DOLLARS}
_LIMITS: Final = _object(
    {
        "requests_per_minute": _LIMIT,
        "tokens_per_minute": _LIMIT,
        "max_streams": _LIMIT,
        **_OF_A_DAY,
    }
)
_CHECK: Final = _object(
    {"replica": _TEXT, "ok": {"type": ["boolean", "null"]}},
    {"latency_ms": _NUMBER, "age_ms": _NUMBER, "detail": _TEXT},
)
_SCHEMAS: Final[Json] = {
    OPENAI: _object(
        {
            "error": _object(
                {"message": _TEXT, "type": _TEXT, "param": _TEXT_OR_NULL, "code": _TEXT_OR_NULL}
            )
        }
    ),
    ANTHROPIC: _object(
        {
            "type": {"const": "error"},
            "error": _object({"type": _TEXT, "message": _TEXT}),
            "request_id": _TEXT,
        }
    ),
    "PenstockModel": _CARD,
    "PenstockModels": _object(
        {"object": {"const": "list"}, "data": {"type": "array", "items": _CARD}}
    ),
    "PenstockUsage": _object(
        {
            "object": {"const": "usage"},
            "as_of": {"type": ["integer", "null"]},
            "start_time": _NUMBER,
            "end_time": _NUMBER,
            "key": _object({"id": _TEXT_OR_NULL, "usage": _USED, "limits": _object(_OF_A_DAY)}),
            "tenant": _object({"id": _TEXT_OR_NULL, "usage": _USED, "limits": _LIMITS}),
        }
    ),
    "PenstockStatus": _object({"status": _TEXT}),
    "PenstockHealth": _object(
        {"status": _TEXT},
        {
            "deployments": {
                "type": "array",
                "items": _object(
                    {
                        "id": _TEXT,
                        "status": _TEXT,
                        "replicas": _NUMBER,
                        "serving": _NUMBER,
                        "checks": {"type": "array", "items": _CHECK},
                    }
                ),
            },
        },
    ),
    "PenstockVersion": _object({"version": _TEXT}),
}

_HEADERS: Final[dict[str, tuple[str, str]]] = {
    # name: (what has it, what it says)
    "x-request-id": ("all", "Penstock's name for the request."),
    "x-client-request-id": ("all", "The caller's X-Client-Request-Id or X-Request-Id."),
    "openai-processing-ms": ("model", "Milliseconds from the request to the answer's head."),
    "openai-version": ("model", "The date of the API that is spoken."),
    "x-penstock-backend": ("model", "The deployment that answered."),
    "x-penstock-backend-version": ("model", "What answered: MODEL@VERSION, +ADAPTER@VERSION."),
    "x-penstock-model-version": ("model", "The version of its weights."),
    "x-penstock-adapter-version": ("model", "The adapter that answered, as name@version."),
    "x-penstock-replica": ("model", "The replica that answered."),
    "x-penstock-queue-ms": ("model", "Milliseconds that the request waited to be sent."),
    "x-penstock-trace-id": ("model", "The trace of the client's traceparent, or a new one."),
    "x-penstock-prefix-hit": ("model", "Tokens of the prompt that were cached."),
    "x-penstock-degraded": ("model", "Why the answer is not what was asked for."),
    "x-penstock-trimmed": ("model", "What was left out of the prompt: messages=N, tokens=N."),
    "x-should-retry": ("error", "Whether the same request may succeed later: true or false."),
    "retry-after": ("error", "Seconds until it may."),
    "retry-after-ms": ("error", "The same in milliseconds, where it is short."),
    "x-penstock-drop-reason": ("error", "Why the request was not let in."),
}

_STATUS: Final = "PenstockStatus"
_NOTHING: Final = "nothing"
_HEALTH: Final = "PenstockHealth"
_OWN_PAGES: Final[dict[str, tuple[str, str]]] = {
    # path: (schema of 200, what it says); that of 503 is a status
    "/livez": (_STATUS, "The gateway runs."),
    "/readyz": (_STATUS, "It has a replica to send to; 503: why not."),
    "/ready": (_STATUS, "The same."),
    "/startupz": (_STATUS, "It knows what is served; 503: not yet."),
    "/health/deep": (_HEALTH, "Every deployment has a replica that does its work; 503: which not."),
    "/health": (_NOTHING, "It has a replica to send to, as vLLM tells it; 503: why not."),
    "/ping": (_NOTHING, "It runs, as platforms ask; 503: an accelerator of its machine is lost."),
    "/version": ("PenstockVersion", "The gateway's version."),
}


def document() -> Json:
    """The whole description."""
    refs, definitions = _schemas()
    if taken := _SCHEMAS.keys() & definitions.keys():
        raise ValueError(f"vLLM has models of the same names: {sorted(taken)}; rename ours")
    paths: Json = {}
    for name, row in DESCRIBED.items():
        for path in (name, *row.aliases):
            paths[path] = {"post": _operation(path, row, refs, "" if path == name else name)}
    paths["/invocations"] = {"post": _by_body(refs)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Penstock",
            "version": metadata.version("penstock"),
            "description": "An OpenAI-compatible gateway. What a deployment's model cannot do is "
            "400 with code `unsupported_endpoint`; `model` may be left out where a deployment is "
            "the only one. Bodies may come in gzip, as Content-Encoding says.",
        },
        "paths": paths | _pages(),
        "components": {
            "schemas": dict(sorted((_SCHEMAS | definitions).items())),
            "headers": {
                name: {"description": text, "schema": _TEXT} for name, (_, text) in _HEADERS.items()
            },
            "parameters": _PARAMETERS,
        },
    }


_PARAMETERS: Final[Json] = {
    "client-request-id": {
        "name": "X-Client-Request-Id",
        "in": "header",
        "description": "A name of the caller's own; it comes back and stands in the log.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,512}$"},
    },
    "traceparent": {
        "name": "traceparent",
        "in": "header",
        "description": "W3C trace context.",
        "schema": {"type": "string", "pattern": "^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$"},
    },
}


def _schemas() -> tuple[Refs, Json]:
    """The models of all endpoints, and all that they refer to."""
    wanted = [
        ((path, role), "validation", TypeAdapter(model))
        for path, row in DESCRIBED.items()
        for role in ("request", "answer", "event")
        if (model := getattr(row, role)) is not None
    ]
    keyed, defined = TypeAdapter.json_schemas(wanted, ref_template=_REF)  # type: ignore[arg-type]
    definitions = _untitled(defined["$defs"])
    refs: Refs = {key: _untitled(one) for (key, _), one in keyed.items()}
    for path in DESCRIBED:
        for model in _members(refs[path, "request"], definitions):
            _leave_out(model)
    return refs, definitions


def _untitled(schema: Any) -> Any:
    """Without the titles that repeat the names beside them."""
    if isinstance(schema, list):
        return [_untitled(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _untitled(one)
        for name, one in schema.items()
        if not (name == "title" and isinstance(one, str))
    }


def _members(schema: Json, definitions: Json) -> Iterator[Json]:
    """The objects that a schema of a request stands for."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if "properties" in schema:
        yield schema
    for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _members(one, definitions)


def _leave_out(model: Json) -> None:
    """Drops what is not a client's to set."""
    for name in _NO_CLIENTS & model["properties"].keys():
        del model["properties"][name]
    if "store" in model["properties"]:
        model["properties"]["store"] = {
            "type": ["boolean", "null"],
            "description": "Nothing is kept: answered as false.",
        }


def _operation(path: str, row: Described, refs: Refs, alias_of: str) -> Json:
    name = alias_of or path
    content: Json = {"application/json": {"schema": refs[name, "answer"]}}
    if row.event is not None:
        content["text/event-stream"] = {
            "schema": _object({"data": _TEXT}, {"event": _TEXT})
            | {
                "description": f"One of the events, as they come; the last is {row.stream_end}, "
                "or an error's. Comments (`: ping`) may stand between them.",
            },
            "x-event": refs[name, "event"],
        }
    return {
        "operationId": _id("post", path),
        "summary": row.summary + (f" Another name of {alias_of}." if alias_of else ""),
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in _PARAMETERS],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": refs[name, "request"]}},
        },
        "responses": {
            "200": _response("The answer.", content, "all", "model"),
            **_errors(row.errors, "all", "model", "error"),
        },
    }


def _by_body(refs: Refs) -> Json:
    """What SageMaker asks for: one endpoint or another, as the body says."""
    path, meant = "/invocations", ("/v1/chat/completions", "/v1/completions")
    either: Refs = {
        (path, role): {"anyOf": [refs[one, role] for one in meant]}
        for role in ("request", "answer", "event")
    }
    row = DESCRIBED[meant[0]]
    summary = "Chat where the body has `messages`, completions where it has `prompt`."
    return _operation(path, replace(row, summary=summary), either, "")


def _pages() -> Json:
    """What the gateway answers itself."""
    model_id = {"name": "id", "in": "path", "required": True, "schema": _TEXT}
    pages = {
        "/v1/models": _page("/v1/models", "What may stand in `model`.", "PenstockModels"),
        "/v1/models/{id}": _page("/v1/models/{id}", "One of them.", "PenstockModel")
        | {"parameters": [model_id]},
        "/v1/usage": _page(
            "/v1/usage", "What the key and its tenant have had today, and may.", "PenstockUsage"
        ),
        "/openapi.json": _page("/openapi.json", "This description.", ""),
    }
    for path, (schema, summary) in _OWN_PAGES.items():
        pages[path] = _page(path, summary, schema)
        pages[path]["responses"]["503"] = _response("Not now.", _json(_STATUS), "all")
    described: Json = {path: {"get": page} for path, page in pages.items()}
    described["/ping"]["post"] = pages["/ping"] | {"operationId": _id("post", "/ping")}
    return described


def _page(path: str, summary: str, schema: str) -> Json:
    return {
        "operationId": _id("get", path),
        "summary": summary,
        "responses": {
            "200": _response(summary, _json(schema), "all"),
            **_errors(OPENAI, "all", "error"),
        },
    }


def _json(schema: str) -> Json:
    if schema == _NOTHING:
        return {}
    to = {"$ref": _REF.format(model=schema)} if schema else {"type": "object"}
    return {"application/json": {"schema": to}}


def _errors(dialect: str, *groups: str) -> Json:
    return {
        "4XX": _response("The request is wrong, or may not be served.", _json(dialect), *groups),
        "5XX": _response("It could not be answered now.", _json(dialect), *groups),
    }


def _response(text: str, content: Json, *groups: str) -> Json:
    headers = {
        name: {"$ref": f"#/components/headers/{name}"}
        for name, (group, _) in _HEADERS.items()
        if group in groups
    }
    response: Json = {"description": text, "headers": headers}
    return response | {"content": content} if content else response


def _id(method: str, path: str) -> str:
    return "_".join([method, *re.findall(r"\w+", path)])


def text() -> str:
    """The file's text."""
    return json.dumps(document(), indent=1, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text())
