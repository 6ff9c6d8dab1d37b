"""What of vLLM is needed before its app is built, while the engine loads."""

from __future__ import annotations

from functools import partial
from typing import Final

from penstock.replica.vllm.surface.values import Stage, Touch

_STABLE: Final = "vLLM calls it stable, or serves by another way in this process"
_CHAT: Final = "vllm.entrypoints.openai.chat_completion"
_RESPONSES: Final = "vllm.entrypoints.openai.responses"
_ANTHROPIC: Final = "vllm.entrypoints.anthropic"
_RENDERER: Final = "vllm.renderers.base:BaseRenderer"
_app: Final = partial(Touch, Stage.APP)

OF_APP: Final = (
    _app(
        (
            "vllm.entrypoints.launchers.app:build_app(args, supported_tasks, model_config)",
            "vllm.entrypoints.launchers.api_server.app_state:init_app_state"
            "(engine_client, state, args, supported_tasks)",
            "vllm.entrypoints.launchers.api_server.app_state:init_app_state"
            "{openai_serving_models, online_renderer, serving_tokenization}",
            "vllm.entrypoints.generate.api_router:init_generate_state{openai_serving_chat, "
            "openai_serving_completion, openai_serving_responses, anthropic_serving_messages}",
            "vllm.v1.engine.async_llm:AsyncLLM.get_supported_tasks()",
            "vllm.v1.engine.async_llm:AsyncLLM.reset_mm_cache()",
            "vllm.v1.engine.async_llm:AsyncLLM.is_sleeping()",
            "vllm.v1.engine.async_llm:AsyncLLM.sleep(level)",
            "vllm.v1.engine.async_llm:AsyncLLM.wake_up(tags)",
            "vllm.v1.engine.async_llm:AsyncLLM.reset_prefix_cache()",
            "vllm.v1.engine.async_llm:AsyncLLM.collective_rpc(method)",
        ),
        ("serving/app.py", "endpoints.py", "serving/handlers.py", "engine.py"),
        "vLLM's own app answers in this process, without a socket; its error handlers tell "
        "`app.state.server` to stop",
        _STABLE,
    ),
    _app(
        (
            "vllm.entrypoints.openai.chat_completion.serving:OpenAIServingChat"
            ".create_chat_completion(request, raw_request)",
            "vllm.entrypoints.openai.completion.serving:OpenAIServingCompletion"
            ".create_completion(request, raw_request)",
            f"{_RESPONSES}.serving:OpenAIServingResponses.create_responses(request, raw_request)",
            f"{_ANTHROPIC}.serving:AnthropicServingMessages.create_messages(request, raw_request)",
            f"{_ANTHROPIC}.serving:AnthropicServingMessages.count_tokens(request, raw_request)",
            "vllm.entrypoints.serve.tokenize.serving:ServingTokenization"
            ".create_tokenize(request, raw_request)",
            "vllm.entrypoints.serve.tokenize.serving:ServingTokenization"
            ".create_detokenize(request, raw_request)",
        ),
        ("endpoints.py", "serving/app.py", "serving/messages.py", "serving/token_answers.py"),
        "they get the parsed request: there it gets the call's controls, and limits are looked at",
        "vLLM has a hook for requests between parsing and serving",
    ),
    _app(
        (
            "vllm.entrypoints.pooling.factories:init_pooling_state{serving_embedding, "
            "serving_scores, serving_classification, serving_pooling}",
        ),
        ("endpoints.py",),
        "the same for what pools: the objects themselves are called",
        "vLLM has a hook for requests between parsing and serving",
    ),
    _app(
        (
            "vllm.entrypoints.openai.models.serving:OpenAIServingModels.is_base_model(model_name)",
            "vllm.entrypoints.openai.models.serving:OpenAIServingModels.model_name(lora_request)",
            "vllm.entrypoints.openai.models.serving:OpenAIServingModels{lora_requests}",
            "vllm.entrypoints.launchers.api_server.app_state:OpenAIServingModels",
            "vllm.entrypoints.serve.engine.serving:BaseServing._maybe_get_adapters(request)",
        ),
        ("serving/models.py", "lora/adapters.py"),
        "the call says which weights and which name, whatever the body's `model` is",
        "vLLM takes the model of a request from a header, or from whoever calls it",
    ),
    _app(
        (
            "vllm.entrypoints.serve.engine.serving:BaseServing.create_error_response(message)",
            "vllm.renderers.online_renderer:OnlineRenderer.create_error_response(message)",
        ),
        ("serving/handlers.py",),
        "the exception is taken before it becomes prose",
        "vLLM's errors carry their class and field to the answer",
    ),
    _app(
        (
            f"{_CHAT}.api_router:create_chat_completion(request, raw_request)",
            f"{_CHAT}.protocol:ChatCompletionRequest",
            f"{_CHAT}.protocol:ChatCompletionResponse{{choices, id}}",
        ),
        ("serving/chat.py", "serving/messages.py"),
        "a choice among allowed tools; what a message's answer is made of",
        "vLLM takes `allowed_tools`",
    ),
    _app(
        (
            f"{_ANTHROPIC}.api_router:create_messages(request, raw_request)",
            f"{_ANTHROPIC}.api_router:count_tokens(request, raw_request)",
            f"{_ANTHROPIC}.protocol:AnthropicMessagesRequest{{tools, tool_choice, messages}}",
            f"{_ANTHROPIC}.protocol:AnthropicCountTokensRequest",
            f"{_ANTHROPIC}.serving:AnthropicServingMessages._convert_messages"
            "(messages, openai_messages, *, merge_inline_system)",
            f"{_ANTHROPIC}.serving:AnthropicServingMessages{{_merge_inline_system}}",
            f"{_ANTHROPIC}.serving:AnthropicServingMessages._get_disabled_thinking_effort()",
        ),
        ("serving/messages.py", "serving/app.py"),
        "what `/v1/messages` lacks: models left out, documents, names and errors as Anthropic's; "
        "which message of a chat is which of the client's",
        "vLLM's `/v1/messages` passes Anthropic's own clients",
    ),
    _app(
        (
            f"{_RESPONSES}.protocol:ResponseCompletedEvent",
            f"{_RESPONSES}.protocol:ResponsesRequest",
            f"{_RESPONSES}.protocol:ResponsesResponse{{text, top_logprobs, output, status}}",
            f"{_RESPONSES}.utils:_construct_message_from_response_item(item, *, prev_msg)",
            f"{_RESPONSES}.serving:OpenAIServingResponses._render_resolved_response_inputs"
            "(request, prev_response)",
            "vllm.entrypoints.serve.engine.serving:BaseServing._check_model(request)",
        ),
        ("serving/responses.py", "failures/exceptions.py"),
        "what `/v1/responses` lacks: fields that every answer has, the end of one that was cut "
        "short, the count of an input's tokens; which message of a chat is which item",
        "vLLM's `/v1/responses` has them",
    ),
    _app(
        (
            f"{_CHAT}.serving:OpenAIServingChat.chat_completion_full_generator"
            "(request, result_generator)",
            f"{_RESPONSES}.serving:OpenAIServingResponses.responses_full_generator"
            "(request, sampling_params, result_generator)",
            "vllm.entrypoints.openai.completion.serving:OpenAIServingCompletion"
            ".request_output_to_completion_response",
        ),
        ("serving/logprobs.py",),
        "answers with many log probabilities are built beside the loop",
        "vLLM builds them beside its loop",
    ),
    _app(
        (
            "vllm.entrypoints.serve.engine.protocol:ErrorResponse{error}",
            "vllm.entrypoints.serve.tokenize.protocol:TokenizeRequest",
            "vllm.entrypoints.serve.tokenize.protocol:TokenizeCompletionRequest{return_token_strs}",
            "vllm.entrypoints.serve.utils.api_utils:with_cancellation",
        ),
        ("serving/token_answers.py",),
        "answers of a million tokens are written in slices beside the loop",
        "vLLM writes them so",
    ),
    _app(
        (
            f"{_RENDERER}{{_executor, _tokenize_prompt_async, _can_produce_offsets, "
            "_build_tokens_prompt, get_tokenizer}",
            "vllm.renderers.base:_SwappableExecutor{_inner, _max_workers}",
            "vllm.renderers.params:TokenizeParams{get_encode_kwargs, truncate_prompt_tokens, "
            "return_token_offsets}",
        ),
        ("serving/tokenizing.py", "serving/token_answers.py", "serving/trims.py"),
        "tenants take turns at the tokenizer, long texts in pieces",
        "vLLM's tokenizer takes turns between requests",
    ),
    _app(
        (
            f"{_RENDERER}.render_chat_async(conversations, chat_params, tok_params, *, "
            "skip_mm_cache)",
            "vllm.renderers.params:TokenizeParams{max_total_tokens, max_output_tokens, "
            "truncation_side, pad_prompt_tokens}",
        ),
        ("serving/trims.py",),
        "a conversation that is too long loses its oldest turns, counted in the engine's tokens",
        "the gateway counts tokens, or vLLM trims turns",
    ),
    _app(
        (
            "fastapi._compat:ModelField{_type_adapter}",
            "starlette.datastructures:State{_state}",
        ),
        ("guards/fail_fast.py", "serving/reading.py", "serving/handlers.py"),
        "judging a request stops at the first wrong entry, and large bodies are read beside the "
        "loop; which objects there are to serve",
        "FastAPI lets an app give its own validators",
    ),
)
