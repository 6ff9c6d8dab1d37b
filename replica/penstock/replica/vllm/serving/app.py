"""vLLM's own OpenAI server, built in this process and never given a socket.

Imports vLLM: only after `environment.prepare`.
"""

from __future__ import annotations

import logging
from argparse import Namespace
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

from vllm.entrypoints.launchers.api_server.app_state import init_app_state
from vllm.entrypoints.launchers.app import build_app
from vllm.exceptions import VLLMValidationError

from penstock.replica.vllm import endpoints
from penstock.replica.vllm.failures import errors
from penstock.replica.vllm.guards import budgets, costs, limits
from penstock.replica.vllm.guards.controls import take_over
from penstock.replica.vllm.guards.costs import NotOffered
from penstock.replica.vllm.guards.fail_fast import stop_at_first_errors
from penstock.replica.vllm.guards.limits import Capacity
from penstock.replica.vllm.serving import chat, ids, marks, messages, responses, token_answers
from penstock.replica.vllm.serving.asgi import App
from penstock.replica.vllm.serving.aside import Aside
from penstock.replica.vllm.serving.client import TappedLLM
from penstock.replica.vllm.serving.handlers import keep_errors
from penstock.replica.vllm.serving.logprobs import build_aside, write_aside
from penstock.replica.vllm.serving.models import CallModels, call_models
from penstock.replica.vllm.serving.reading import ReadAside, prepare
from penstock.replica.vllm.serving.tap import CURRENT, CallTap
from penstock.replica.vllm.serving.tokenizing import Forgetting, tokenize_in_turns
from penstock.replica.vllm.serving.trims import trim_conversations

log = logging.getLogger(__name__)

Create = Callable[[Any, Any], Awaitable[Any]]
Mend = Callable[[Any, CallTap], Any]

_MENDS: Final[dict[tuple[str, str], Mend]] = {
    ("openai_serving_responses", "create_responses"): responses.mended,
    ("anthropic_serving_messages", "create_chat_completion"): messages.mended,
}
"""What is done to an answer of a method before the next one of vLLM's gets it."""

_ENDS: Final[dict[tuple[str, str], Callable[[Any, Sequence[Any]], list[int]]]] = {
    ("openai_serving_responses", "create_responses"): responses.ends,
    ("anthropic_serving_messages", "create_messages"): messages.ends,
}
"""What becomes of a request's messages where vLLM makes others of them; by `marks.Ends`."""


@dataclass(frozen=True, slots=True)
class Made:
    """The app, its table of models, and first names of the endpoints that the model serves."""

    app: App
    models: CallModels
    endpoints: tuple[str, ...]


async def make_app(llm: TappedLLM, args: Namespace, aside: Aside) -> Made:
    """vLLM's app for an engine that is up; what it does for large requests it does aside."""
    tasks = await llm.get_supported_tasks()
    app = build_app(args, tasks, llm.model_config)
    with call_models():
        await init_app_state(llm, app.state, args, tasks)
    ids.install(llm.renderer.tokenizer)
    await know_thinking_effort(app.state)
    # vLLM's error handlers tell its server to stop; here nobody listens, the replica watches.
    app.state.server = SimpleNamespace(should_exit=False)
    messages.let_model_be_missing(app.router)
    chat.let_tools_be_allowed(app.router)
    if getattr(app.state, "openai_serving_responses", None) is not None:
        responses.count_inputs(app.router, app.state.openai_serving_responses)
    token_answers.write_aside(app.router, app.state.serving_tokenization, aside)
    served = endpoints.served(app.state, {getattr(route, "path", "") for route in app.routes})
    paths = {endpoints.ENDPOINTS[name].path for name in served}
    stop_at_first_errors(app.routes, paths)
    makers = prepare(app.routes, paths)
    turns = tokenize_in_turns(llm.renderer)
    trim_conversations(llm.renderer)
    llm.aside = aside
    build_aside(app.state, aside)
    capacity = _capacity(llm)
    if "/v1/messages" in served and not capacity.reasons:
        log.info("`thinking` of /v1/messages is left out: the model has no reasoning_parser")
    control(app.state, served, capacity, aside)
    keep_errors(app)
    app.add_middleware(ReadAside, aside=aside, makers=makers)
    app.add_middleware(Forgetting, turns=(turns, aside.turns))
    return Made(app, app.state.openai_serving_models, served)


def tell_equals(app: Any, config_hash: str) -> None:
    """Has answers say alike by which system they are made where one may go on with another's:
    vLLM's own hash counts settings that change no answer. What an operator set stays."""
    if app.state.args.fingerprint_mode not in ("full", "hash"):
        return
    for name in ("openai_serving_chat", "openai_serving_completion"):
        if (serving := getattr(app.state, name, None)) is not None:
            told = serving.system_fingerprint.rpartition("-")[0]
            serving.system_fingerprint = f"{told}-{config_hash[:8]}"


async def know_thinking_effort(state: Any) -> None:
    """Has vLLM try how the model's template takes efforts now. It would do so within the first call
    that turns thinking off, and what the template refuses would be that call's error."""
    serving = getattr(state, "anthropic_serving_messages", None)
    if serving is None:
        return
    try:
        await serving._get_disabled_thinking_effort()
    except Exception:
        log.exception("vLLM cannot try the template; it will again for a call that needs it")


def _capacity(llm: TappedLLM) -> Capacity:
    model = llm.model_config
    width = model.embedding_size if model.runner_type == "pooling" else 0
    config = llm.vllm_config
    reasons = config.reasoning_config is not None and config.reasoning_config.enabled
    return Capacity(config.scheduler_config.max_num_seqs, model.max_model_len, width, reasons)


def control(state: Any, served: tuple[str, ...], capacity: Capacity, aside: Aside) -> None:
    """Has everything that gets a request of these endpoints get it with the call's controls."""
    rows = [endpoints.ENDPOINTS[name] for name in served]
    for place, method in {(row.place, one) for row in rows for one in row.methods}:
        serving = getattr(state, place)
        create, row = getattr(serving, method), (place, method)
        ends = partial(_ENDS[row], serving) if row in _ENDS else None
        checked = _Checked(capacity, ends)
        setattr(serving, method, _controlled(create, checked, aside, _MENDS.get(row)))
    for place in {row.place for row in rows if not row.methods}:
        setattr(state, place, _controlled(getattr(state, place), _Checked(capacity), aside))


@dataclass(frozen=True, slots=True)
class _Checked:
    """Sets the engine controls of a request from its call, and looks at what it asks for."""

    capacity: Capacity
    ends: marks.Ends | None = None

    def __call__(self, request: Any, tap: CallTap) -> None:
        if not tap.parsed:
            # The client's own request, of which vLLM may make another one for the next method.
            tap.grammar_field = costs.grammar_field(request)
            tap.echoed = responses.echoed(request)
            marks.take_off(request)
            if tap.call.trim:
                tap.pinned = marks.pinned(request, tap.call.body, self.ends)
        tap.parsed = True
        try:
            take_over(request, tap.call, self.capacity)
            if endpoints.ENDPOINTS[tap.call.path].numbers:
                tap.most_numbers = limits.most_numbers(request)
        except NotOffered as error:
            raise VLLMValidationError(str(error), parameter=error.parameter) from None
        if failed := budgets.completion_refusal(request, tap.call):
            tap.refused = failed
            raise VLLMValidationError(failed.message, parameter=failed.param)


def _controlled(
    create: Create, checked: _Checked, aside: Aside, mend: Mend | None = None
) -> Create:
    """`create`, of requests that were checked."""

    async def controlled(request: Any, raw_request: Any = None) -> Any:
        tap = CURRENT.get()
        if tap is None:
            return await create(request, raw_request)
        await aside.run(checked, request, tap)
        try:
            answer = await create(request, raw_request)
        except MemoryError:
            # vLLM's handlers would make it an answer like any other error's.
            tap.lost = errors.oom_contained()
            raise
        answer = answer if mend is None else mend(answer, tap)
        await write_aside(answer, tap, aside)
        return answer

    return controlled
