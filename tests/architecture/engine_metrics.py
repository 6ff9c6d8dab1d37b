"""vLLM's own metrics that Penstock's dashboards, rules and docs name. A test holds them against the
pinned vLLM, and what is named there against this list.

After a change: `.venv/bin/python -m tests.architecture.metrics_reference`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class EngineMetric:
    """One family, as a page has it: vLLM leaves `_total` to prometheus_client."""

    name: str
    type: str
    use: str  # what it is looked at for
    labels: tuple[str, ...] = ("model_name", "engine")


ENGINE_METRICS: Final = (
    EngineMetric("vllm:num_requests_running", "gauge", "How full the batch is."),
    EngineMetric("vllm:num_requests_waiting", "gauge", "Whether the engine queues by itself."),
    EngineMetric("vllm:kv_cache_usage_perc", "gauge", "Share of KV blocks in use, 0 to 1."),
    EngineMetric("vllm:num_preemptions_total", "counter", "Sequences that lost their KV blocks."),
    EngineMetric("vllm:prefix_cache_queries_total", "counter", "Prompt tokens looked up."),
    EngineMetric("vllm:prefix_cache_hits_total", "counter", "Of these, found."),
    EngineMetric("vllm:prompt_tokens_total", "counter", "Prompt tokens computed."),
    EngineMetric("vllm:generation_tokens_total", "counter", "Tokens generated."),
    EngineMetric(
        "vllm:request_success_total",
        "counter",
        "Ends, by reason.",
        ("model_name", "engine", "finished_reason"),
    ),
    EngineMetric("vllm:time_to_first_token_seconds", "histogram", "As the engine sees it."),
    EngineMetric("vllm:inter_token_latency_seconds", "histogram", "Between two tokens."),
    EngineMetric("vllm:request_queue_time_seconds", "histogram", "Waiting in the engine."),
    EngineMetric("vllm:request_prefill_time_seconds", "histogram", "Computing the prompt."),
    EngineMetric("vllm:request_decode_time_seconds", "histogram", "Generating."),
    EngineMetric("vllm:e2e_request_latency_seconds", "histogram", "All of it."),
    EngineMetric(
        "vllm:lora_requests_info",
        "gauge",
        "Adapters that run and wait; of engines that take any.",
        ("max_lora", "waiting_lora_adapters", "running_lora_adapters"),
    ),
)
