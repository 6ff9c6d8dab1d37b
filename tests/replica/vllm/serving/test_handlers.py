"""Exceptions inside an app like vLLM's reach the client as what they are, whoever catches them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from penstock.replica.calls.answers import events_of
from penstock.replica.values import Call, Failed, Head
from penstock.replica.vllm.serving.answering import answer
from penstock.replica.vllm.serving.tap import CURRENT

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"


def _wrong() -> Exception:
    error: Exception = import_module("vllm.exceptions").VLLMValidationError(
        "top_k must be 0, got -5.", parameter="top_k", value=-5
    )
    return error


class Serving:
    """A serving object that words errors itself, as vLLM's do."""

    def create_error_response(
        self, message: str | Exception, status_code: int = 400, param: str | None = None
    ) -> Any:
        error = SimpleNamespace(message=str(message), code=int(status_code), param=param)
        return SimpleNamespace(error=error)

    async def create_messages(self) -> None:
        raise _wrong()

    async def count_tokens(self) -> None:
        raise _wrong()


async def _ask(script: Callable[[Serving], Any], path: str = CHAT) -> list[Any]:
    """All events of a call whose endpoint does what `script` does."""
    from vllm.entrypoints.serve.exception_handling.register import init_exception_handler

    from penstock.replica.vllm.serving.handlers import keep_errors

    app = FastAPI()
    app.state.args = SimpleNamespace(log_error_stack=False)
    app.state.anthropic_serving_messages = Serving()
    init_exception_handler(app)
    app.middleware_stack = app.build_middleware_stack()  # as a plugin of vLLM's does
    keep_errors(app)

    @app.post(path)
    async def endpoint(request: Request) -> Response:
        tap = CURRENT.get()
        assert tap is not None
        tap.parsed = True
        response: Response = await script(request.app.state.anthropic_serving_messages)
        return response

    call = Call("req_1", path, b"{}", "mini")
    return [event async for event in events_of(_answerer(app), call)]


def _answerer(app: Any) -> Any:
    async def answered(call: Call, sink: Any) -> None:
        await answer(app, call, sink)

    return answered


def _told(event: Any) -> tuple[int, str, str, str]:
    assert isinstance(event, Failed)
    return event.status, event.code, event.param, event.message


WRONG = (400, "invalid_value", "top_k", "top_k must be 0, got -5.")


async def test_an_exception_of_an_endpoint() -> None:
    async def script(serving: Serving) -> Response:
        raise _wrong()

    (failed,) = await _ask(script)
    assert _told(failed) == WRONG


async def test_an_exception_after_the_engine_has_answered_is_not_the_clients() -> None:
    async def script(serving: Serving) -> Response:
        tap = CURRENT.get()
        assert tap is not None
        pooled = SimpleNamespace(data=SimpleNamespace(numel=lambda: 1))
        output = SimpleNamespace(error=None, prompt_token_ids=[1], num_cached_tokens=0)
        tap.saw_pooled(tap.begin(1), SimpleNamespace(**vars(output), finished=True, outputs=pooled))
        raise ValueError("Out of range float values are not JSON compliant: nan")

    (failed,) = await _ask(script)
    assert (failed.status, failed.code, failed.fault) == (500, "engine_error", "upstream")


async def test_an_exception_that_vllm_words_itself() -> None:
    async def script(serving: Serving) -> Response:
        error = serving.create_error_response(_wrong()).error
        return JSONResponse({"error": {"message": error.message}}, error.code)

    (failed,) = await _ask(script)
    assert _told(failed) == WRONG


async def test_a_refusal_without_an_exception() -> None:
    async def script(serving: Serving) -> Response:
        error = serving.create_error_response("No such.", status_code=404, param="model").error
        return JSONResponse({}, error.code)

    (failed,) = await _ask(script)
    assert _told(failed) == (404, "model_not_found", "model", "No such.")


async def test_an_exception_that_the_route_catches() -> None:
    async def script(serving: Serving) -> Response:
        try:
            await serving.create_messages()
        except Exception:
            return JSONResponse({"type": "error"}, 400)
        raise AssertionError("create_messages raises")

    (failed,) = await _ask(script, MESSAGES)
    assert _told(failed) == WRONG


async def test_an_exception_that_breaks_a_stream() -> None:
    async def events() -> AsyncIterator[bytes]:
        yield b"data: {}\n\n"
        raise _wrong()

    async def script(serving: Serving) -> Response:
        return StreamingResponse(events(), media_type="text/event-stream")

    head, *_, failed = await _ask(script)
    assert isinstance(head, Head)
    assert _told(failed) == WRONG


async def test_an_error_that_a_stream_tells_of() -> None:
    async def events(serving: Serving) -> AsyncIterator[bytes]:
        yield b"data: {}\n\n"
        serving.create_error_response(_wrong())
        yield b'data: {"error": {"message": "words", "code": 500}}\n\n'
        yield b"data: [DONE]\n\n"

    async def script(serving: Serving) -> Response:
        return StreamingResponse(events(serving), media_type="text/event-stream")

    *said, failed = await _ask(script)
    assert _told(failed) == WRONG
    assert b"words" not in b"".join(getattr(event, "body", b"") for event in said)


async def test_of_several_errors_the_first_counts() -> None:
    async def script(serving: Serving) -> Response:
        serving.create_error_response(_wrong())
        raise KeyError("what came of it")

    (failed,) = await _ask(script)
    assert _told(failed) == WRONG


async def test_an_unknown_exception_is_the_servers_and_stays_in_its_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)

    async def script(serving: Serving) -> Response:
        raise KeyError("secret")

    (failed,) = await _ask(script)
    assert failed.status == 500
    assert "secret" not in failed.message
    assert "secret" in caplog.text
