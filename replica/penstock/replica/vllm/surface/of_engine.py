"""What of vLLM is needed before the engine's process is started."""

from __future__ import annotations

from functools import partial
from typing import Final

from penstock.replica.vllm.surface.values import Stage, Touch

_STABLE: Final = "vLLM calls it stable, or serves by another way in this process"
_CLI: Final = "vllm.entrypoints.launchers.cli_args:make_arg_parser(parser)"
_ENGINE_ERRORS: Final = "vllm.v1.engine.exceptions"
_PROCESSOR: Final = "vllm.v1.engine.output_processor:OutputProcessor"
_engine: Final = partial(Touch, Stage.ENGINE)

OF_ENGINE: Final = (
    _engine(
        (
            "vllm:__version__",
            "vllm.platforms:current_platform",
            "vllm.platforms.interface:Platform.get_device_name()",
        ),
        ("start/facts.py", "start/launch.py", "start/warm.py", "start/worker.py"),
        "which vLLM it is, and on what kind of device it runs",
        "never; all are vLLM's public face",
    ),
    _engine(
        (_CLI, "vllm.utils.argparse_utils:FlexibleArgumentParser"),
        (
            "start/launch.py",
            "start/imports.py",
            "start/warm.py",
            "exports/setting_names.py",
        ),
        "engine settings are vLLM's flags, and its app takes their namespace; the parser's "
        "`_actions` say which flags there are",
        "the app can be built from a config, and vLLM lists its settings",
    ),
    _engine(
        ("argparse:ArgumentParser{_actions}",),
        ("start/launch.py",),
        "the list of vLLM's flags",
        "vLLM lists its settings",
    ),
    _engine(
        (
            "vllm.engine.arg_utils:AsyncEngineArgs.from_cli_args",
            "vllm.engine.arg_utils:AsyncEngineArgs.create_engine_config(usage_context)",
            "vllm.usage.usage_lib:UsageContext.OPENAI_API_SERVER",
        ),
        ("start/launch.py",),
        "flags to a config",
        _STABLE,
    ),
    _engine(
        (
            "vllm.v1.engine.async_llm:AsyncLLM.from_vllm_config"
            "(vllm_config, *, usage_context, stat_loggers, disable_log_stats)",
            "vllm.v1.engine.async_llm:AsyncLLM{logger_manager, engine_core, output_processor, "
            "renderer, vllm_config, model_config, errored, shutdown}",
            "vllm.v1.engine.core_client:BackgroundResources{engine_manager}",
            "vllm.v1.engine.utils:CoreEngineProcManager{processes}",
            "vllm.v1.metrics.loggers:StatLoggerManager{stat_loggers}",
        ),
        ("start/launch.py", "start/imports.py", "serving/app.py"),
        "the engine is started in a thread of ours, its processes are watched, its death is "
        "noticed; the logger of this module is kept silent at the end",
        "vLLM tells of its processes and of their end",
    ),
    _engine(
        ("vllm.v1.engine.core:EngineCoreProc.run_engine_core",),
        ("start/launch.py", "start/imports.py", "start/engine_process.py"),
        "the engine's process begins in our code, so that it dies with the replica",
        "vLLM's engine dies with the process that started it",
    ),
    _engine(
        (
            "vllm.v1.engine.utils:get_mp_context()",
            "vllm.utils.system_utils:set_process_title(name)",
            "vllm.config.logging:LoggingConfig{pylogging_config_file}",
        ),
        ("start/preload.py", "start/engine_process.py"),
        "the engine's process is a fork that has imported vLLM already: five seconds of start; it "
        "asks for one `Process` by keywords",
        "vLLM forks its engine by itself where that is safe, or imports in a second",
    ),
    _engine(
        (
            "vllm.config.logging:LoggingConfig",
            "vllm.logger:configure_logging_if_needed(config)",
        ),
        ("start/environment.py",),
        "a fork writes its own logs, by a configuration that vLLM reads as it is imported",
        "vLLM configures its logging where an engine starts, and not before",
    ),
    _engine(
        ("vllm.v1.executor.uniproc_executor:UniProcExecutor",),
        ("start/arguments.py", "start/imports.py"),
        'on a CPU "uni" means "mp", a second process and 5 s of start; by its path it is what it '
        "says",
        'the CPU platform takes "uni" as it is',
    ),
    _engine(
        (
            "vllm.v1.engine.async_llm:AsyncLLM.generate"
            "(prompt, sampling_params, request_id, *, priority)",
            "vllm.v1.engine.async_llm:AsyncLLM.encode"
            "(prompt, pooling_params, request_id, *, priority)",
            "vllm.v1.engine.async_llm:AsyncLLM.abort(request_id)",
            "vllm.v1.engine.async_llm:AsyncLLM.check_admission(n)",
            "vllm.v1.engine.async_llm:AsyncLLM.__del__",
            "vllm.sampling_params:RequestOutputKind.DELTA",
            "vllm.sampling_params:SamplingParams{n, max_tokens, prompt_logprobs, output_kind, "
            "structured_outputs}",
            "vllm.pooling_params:PoolingParams(*, task)",
        ),
        ("serving/client.py", "guards/budgets.py"),
        "every output passes the call's tap; budgets, the tenant's turn and its seats come before "
        "the engine",
        "vLLM has hooks around a request, and a queue that knows tenants",
    ),
    _engine(
        (
            "vllm.v1.engine.async_llm:AsyncLLM._run_output_handler",
            "vllm.v1.engine.async_llm:AsyncLLM{output_handler}",
            f"{_PROCESSOR}.add_request(request)",
            f"{_PROCESSOR}.process_outputs(engine_core_outputs)",
            f"{_PROCESSOR}.abort_requests(request_ids)",
            f"{_PROCESSOR}.propagate_error(e)",
            f"{_PROCESSOR}{{request_states}}",
        ),
        ("serving/client.py", "start/launch.py", "lora/adapters.py"),
        "what is in the engine, from when to when, and what ended the taking of its outputs",
        "vLLM tells when a request enters and leaves its engine, and why it stopped",
    ),
    _engine(
        (
            "vllm.v1.engine.output_processor:RequestState{request_id, parent_req, prompt_len, "
            "num_cached_tokens, detokenizer, logprobs_processor, is_prefilling, lora_name}",
            "vllm.v1.engine.detokenizer:IncrementalDetokenizer.num_output_tokens",
            "vllm.v1.metrics.stats:RequestStateStats{queued_ts, scheduled_ts, first_token_ts, "
            "last_token_ts}",
            "vllm.outputs:RequestOutput{prompt_token_ids, num_cached_tokens, metrics, outputs, "
            "prompt_logprobs}",
            "vllm.outputs:CompletionOutput{index, token_ids, finish_reason, stop_reason, logprobs}",
            "vllm.outputs:PoolingRequestOutput{prompt_token_ids, num_cached_tokens, outputs, "
            "error, finished}",
        ),
        ("serving/tap.py", "serving/gauges.py", "serving/client.py", "lora/adapters.py"),
        "tokens, ends and times of a call, also of one that failed",
        "vLLM tells all of it with the end of each request, failed ones too",
    ),
    _engine(
        (
            "vllm.v1.metrics.loggers:AggregateStatLoggerBase.record"
            "(scheduler_stats, iteration_stats, mm_cache_stats, engine_idx)",
            "vllm.v1.metrics.loggers:AggregateStatLoggerBase.log_engine_initialized",
            "vllm.v1.metrics.stats:SchedulerStats{num_running_reqs, num_waiting_reqs, "
            "num_skipped_waiting_reqs, kv_cache_usage, prefix_cache_stats}",
            "vllm.v1.metrics.stats:PrefixCacheStats{queries, hits}",
            "vllm.v1.metrics.stats:IterationStats{num_generation_tokens, prompt_token_stats, "
            "num_preempted_reqs, inter_token_latencies_iter}",
            "vllm.config.cache:CacheConfig{num_gpu_blocks}",
        ),
        ("serving/gauges.py",),
        "the load, once a step, without making Prometheus' text of it",
        _STABLE,
    ),
    _engine(
        (
            "vllm.v1.engine.logprobs:LogprobsProcessor._update_prompt_logprobs"
            "(prompt_logprobs_tensors)",
            "vllm.v1.engine.logprobs:LogprobsProcessor{prompt_logprobs}",
        ),
        ("serving/logprobs.py",),
        "ten thousands of log probabilities are made beside the loop",
        "vLLM makes them beside its loop",
    ),
    _engine(
        (
            f"{_ENGINE_ERRORS}:EngineDeadError",
            f"{_ENGINE_ERRORS}:EngineGenerateError",
            "vllm.exceptions:VLLMValidationError(message, *, parameter, value)",
            "vllm.exceptions:GenerationError",
            "vllm.exceptions:GracefulHTTPError{message, http_status}",
            "vllm.exceptions:RetryableRequestError",
            "vllm.exceptions:VLLMNotFoundError",
            "vllm.exceptions:VLLMUnprocessableEntityError",
        ),
        ("serving/client.py", "serving/app.py", "failures/exceptions.py"),
        "errors are told by what they are, not by their words",
        "never; they are how vLLM tells",
    ),
    _engine(
        (
            "vllm.lora.request:LoRARequest(lora_name, lora_int_id, lora_path)",
            "vllm.v1.engine.async_llm:AsyncLLM.add_lora(lora_request)",
            "vllm.v1.engine.async_llm:AsyncLLM.pin_lora(lora_id)",
            "vllm.v1.engine.async_llm:AsyncLLM.remove_lora(lora_id)",
        ),
        ("lora/adapters.py",),
        "adapters come, stay and go as the table says; the prefix cache tells them apart by name "
        "and path (`_gen_lora_extra_hash_keys`)",
        "vLLM takes adapters by digest, and says when one is not used",
    ),
    _engine(
        (
            "vllm.envs:environment_variables[VLLM_WORKER_MULTIPROC_METHOD, VLLM_MAX_N_SEQUENCES, "
            "VLLM_NO_USAGE_STATS, VLLM_ALLOW_RUNTIME_LORA_UPDATING, "
            "VLLM_ENABLE_RESPONSES_API_STORE, VLLM_MEDIA_URL_ALLOW_REDIRECTS, "
            "VLLM_CHAT_TEMPLATE_RENDER_TIMEOUT, VLLM_SERVER_DEV_MODE, VLLM_API_KEY, "
            "VLLM_LOGGING_LEVEL, VLLM_LOGGING_CONFIG_PATH]",
        ),
        ("start/environment.py",),
        "what no flag sets: limits, logs, what clients may reach, that nothing is reported",
        "there are flags for it",
    ),
)
