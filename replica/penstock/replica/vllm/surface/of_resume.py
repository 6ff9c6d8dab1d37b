"""What of vLLM is needed to go on with answers that another replica began."""

from __future__ import annotations

from functools import partial
from typing import Final

from penstock.replica.vllm.surface.values import Stage, Touch

_PROCESSOR: Final = "vllm.v1.engine.output_processor"
_BATCH: Final = "vllm.v1.worker.gpu_input_batch:CachedRequestState"
_MANAGER: Final = "vllm.v1.structured_output:StructuredOutputManager"
_OPENAI: Final = "vllm.entrypoints.openai"
_MESSAGES: Final = "vllm.entrypoints.anthropic.serving"
_UNTIL: Final = "vLLM takes requests with outputs so far"

_engine: Final = partial(Touch, Stage.ENGINE)
_process: Final = partial(Touch, Stage.PROCESS)

OF_RESUME: Final = (
    _engine(
        (
            "vllm.v1.engine.core_client:AsyncMPClient.add_request_async(request)",
            "vllm.config.model:ModelConfig.get_vocab_size",
            "vllm.config.cache:CacheConfig{block_size, enable_prefix_caching}",
        ),
        ("serving/client.py",),
        "a request that goes on is replayed where it goes to the engine, once its states are there",
        _UNTIL,
    ),
    _engine(
        (
            "vllm.v1.engine:EngineCoreOutput{request_id, new_token_ids, new_logprobs, "
            "finish_reason, stop_reason, prefill_stats}",
            "vllm.v1.engine:EngineCoreRequest{request_id, external_req_id, sampling_params}",
            "vllm.v1.engine.exceptions:EngineDeadError",
            "vllm.v1.engine:FinishReason.STOP",
            "vllm.v1.engine:FinishReason.LENGTH",
            "vllm.v1.engine:FinishReason.REPETITION",
            "vllm.v1.metrics.stats:PrefillStats{num_cached_tokens, num_cache_creation_tokens}",
            "vllm.v1.outputs:LogprobsLists",
            f"{_PROCESSOR}:RequestState{{queue, request_id, logprobs_processor, is_prefilling}}",
            f"{_PROCESSOR}:OutputProcessor{{tracing_enabled}}",
            f"{_PROCESSOR}:RequestOutputCollector.put(output)",
            f"{_PROCESSOR}:RequestOutputCollector.get_nowait()",
            f"{_PROCESSOR}:RequestOutputCollector{{output}}",
            "vllm.v1.engine.logprobs:LogprobsProcessor{num_logprobs}",
            "vllm.outputs:RequestOutput{outputs, finished}",
        ),
        ("resume/replaying.py",),
        "groups pass the output processor as if the engine had made them, one output each",
        _UNTIL,
    ),
    _engine(
        (
            "vllm.sampling_params:SamplingParams{extra_args, prompt_logprobs, output_kind, "
            "num_logprobs}",
        ),
        ("resume/delivered.py", "resume/kinds.py"),
        "extra arguments reach scheduler and workers; which requests can be gone on with",
        _UNTIL,
    ),
    _engine(
        ("vllm.config.scheduler:SchedulerConfig.get_scheduler_cls()",),
        ("resume/scheduling.py",),
        "the scheduler that vLLM chooses is taken as a base, with steps ahead or without; its "
        "setting for another would warn, and choose neither",
        "its schedulers have hooks around a request",
    ),
    _process(
        (
            "vllm.v1.core.sched.scheduler:Scheduler.add_request(request)",
            "vllm.v1.core.sched.scheduler:Scheduler{structured_output_manager}",
            "vllm.v1.core.sched.async_scheduler:AsyncScheduler",
            "vllm.v1.request:Request.append_output_token_ids(token_ids)",
            "vllm.v1.request:Request{request_id, prompt_token_ids, all_token_ids, "
            "num_output_tokens, sampling_params, structured_output_request, "
            "use_structured_output, prefill_stats}",
            "vllm.v1.structured_output.request:StructuredOutputRequest{grammar, reasoning_ended, "
            "reasoning_parser_kwargs, reasoner}",
            f"{_MANAGER}.grammar_init(request)",
            f"{_MANAGER}._create_grammar(request)",
            f"{_MANAGER}.accept_tokens(request, new_token_ids)",
            "vllm.v1.core.sched.output:NewRequestData{prompt_token_ids, prefill_token_ids}",
        ),
        ("resume/scheduling.py",),
        "a request is taken up with its outputs so far, as a preempted one is; its grammar has "
        "read them; runner V2 is told of them beside the prompt",
        _UNTIL,
    ),
    _process(
        (f"{_BATCH}{{sampling_params, output_token_ids, generator}}", f"{_BATCH}.__post_init__()"),
        ("resume/drawing.py",),
        "runner V1 begins with outputs that it has not made, and draws behind them",
        _UNTIL,
    ),
    Touch(
        Stage.APP,
        (
            "vllm.utils:random_uuid()",
            "vllm.utils:uuid",
            "vllm.v1.engine.input_processor:random_uuid()",
            f"{_MESSAGES}:uuid",
            f"{_MESSAGES}:time",
            f"{_OPENAI}.chat_completion.serving:time",
            f"{_OPENAI}.completion.serving:time",
            f"{_OPENAI}.responses.serving:time",
        ),
        ("serving/ids.py",),
        "names and times in an answer are the call's, wherever it is answered",
        "vLLM takes them from the request",
    ),
    Touch(
        Stage.APP,
        ("vllm.utils.mistral:is_mistral_tokenizer(obj)",),
        ("serving/ids.py",),
        "such a model's calls of tools have names of their own kind",
        "vLLM takes them from the request",
    ),
    Touch(
        Stage.APP,
        (
            f"{_OPENAI}.chat_completion.serving:OpenAIServingChat{{system_fingerprint}}",
            f"{_OPENAI}.completion.serving:OpenAIServingCompletion{{system_fingerprint}}",
        ),
        ("serving/app.py",),
        "answers name the system alike where one engine may go on with another's",
        "vLLM's hash leaves out what changes no answer",
    ),
    Touch(
        Stage.MISTRAL,
        ("vllm.parser.mistral:MistralToolCall.generate_random_id()",),
        ("serving/ids.py",),
        "names of tools' calls are the call's, wherever it is answered",
        "vLLM takes them from the request",
    ),
)
