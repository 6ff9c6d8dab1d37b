"""Answers of /tokenize, written beside the loop: hundreds of thousands of tokens are in one.

vLLM makes the tokens; their texts and the JSON are made here, a slice at a time, since a thread
that writes all of it at once holds Python's lock for as long.

Imports vLLM: only after `environment.prepare`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from vllm.entrypoints.serve.engine.protocol import ErrorResponse
from vllm.entrypoints.serve.tokenize.protocol import TokenizeRequest
from vllm.entrypoints.serve.utils.api_utils import with_cancellation

from penstock.replica.vllm.serving.aside import Aside
from penstock.replica.vllm.serving.routes import put_first

_SLICE: Final = 4096
"""Tokens: some 2 ms with their texts."""


def write_aside(router: Any, serving: Any, aside: Aside) -> None:
    """Puts a route before vLLM's own that answers likewise."""

    @with_cancellation  # type: ignore[untyped-decorator]
    async def tokenize(request: TokenizeRequest, raw_request: Request) -> Response:
        wants_texts, request.return_token_strs = request.return_token_strs, False
        made = await serving.create_tokenize(request, raw_request)
        if isinstance(made, ErrorResponse):
            return JSONResponse(made.model_dump(), made.error.code)
        convert = serving.renderer.get_tokenizer().convert_ids_to_tokens if wants_texts else None
        if made.count <= _SLICE:
            return _answer(made, convert)
        return await aside.surely(_answer, made, convert)

    put_first(router, "/tokenize", tokenize)


def _answer(made: Any, convert: Callable[[Sequence[int]], list[str]] | None) -> Response:
    texts = None
    if convert is not None:
        texts = [text for part in _slices(made.tokens) for text in convert(part)]
    fields = {name: getattr(made, name) for name in type(made).model_fields}
    fields["token_strs"] = texts
    members = [f"{_json(name)}:{_written(value)}" for name, value in fields.items()]
    return Response(f"{{{','.join(members)}}}", media_type="application/json")


def _written(value: Any) -> str:
    if not isinstance(value, list):
        return _json(value)
    return f"[{','.join(_json(part)[1:-1] for part in _slices(value))}]"


def _slices(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), _SLICE):
        yield values[start : start + _SLICE]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
