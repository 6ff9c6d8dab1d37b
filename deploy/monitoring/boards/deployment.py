"""One deployment or several: how requests end, how long each part takes, what replicas do."""

from __future__ import annotations

from typing import Final

from deploy.monitoring.grafana import Board, Panel, Query, Row, Variable
from deploy.monitoring.queries import (
    GEN_AI,
    GW,
    HEAD,
    NODE,
    REPLICA,
    graph,
    growth,
    p50_p99,
    quantile,
    rate,
    share,
    total,
)

ITS: Final = 'deployment=~"$deployment"'
_NAME: Final = "deployment"


def _times(title: str, says: str, metric: str) -> Panel:
    return graph(title, says, *p50_p99(metric, _NAME, ITS), unit="s")


def _rates(title: str, says: str, metric: str, by: str, legend: str) -> Panel:
    return graph(title, says, (rate(metric, by, ITS), legend), unit="reqps")


def _burn(window: str) -> tuple[str, str]:
    expr = f"penstock:slo_bad:share_{window}{{{ITS}}} / penstock:slo_budget:share{{{ITS}}}"
    return expr, f"{{{{deployment}}}} {{{{objective}}}} {window}"


_ENDS: Final = (
    _rates(
        "Requests",
        "Ended in a second, by how and by HTTP status.",
        f"{GW}_requests_total",
        "outcome, code",
        "{{outcome}} {{code}}",
    ),
    _rates(
        "Refused",
        "By why: docs/reference/gateway/refusals.md.",
        f"{GW}_drops_total",
        "reason",
        "{{reason}}",
    ),
    _rates(
        "Degraded",
        "Answers owed to a rung of the ladder.",
        f"{GW}_degraded_total",
        "reason, rung",
        "{{reason}}: {{rung}}",
    ),
    _rates(
        "Went on elsewhere",
        "Streams whose replica broke or drained, and what came of them.",
        f"{GW}_resumes_total",
        "reason, outcome",
        "{{reason}}: {{outcome}}",
    ),
    graph(
        "Calls to replicas",
        "All of them, and those that were tried again before the first byte.",
        (rate(f"{GW}_attempts_total", _NAME, ITS), "{{deployment}} calls"),
        (rate(f"{GW}_failovers_total", _NAME, ITS), "{{deployment}} tried again"),
        unit="reqps",
    ),
    graph(
        "How fast its objectives are used up",
        "1: what may be bad is used up just in time. docs/operate/objectives.md.",
        _burn("1h"),
        _burn("6h"),
    ),
)
_TIMES: Final = (
    _times(
        "First token",
        "Request read to first answer byte, the wait in the queue included.",
        f"{GEN_AI}_time_to_first_token_seconds",
    ),
    _times("Of that, the queue", "Waits for places at replicas.", f"{GW}_queue_wait_seconds"),
    _times(
        "Of that, the engine",
        "Accepted by the engine to its first token.",
        f"{GW}_engine_ttft_seconds",
    ),
    _times(
        "Each further token",
        "Mean of a stream.",
        f"{GEN_AI}_time_per_output_token_seconds",
    ),
    _times(
        "Longest silence of a stream",
        "Between two writes, to 50 ms.",
        f"{GW}_stream_silence_seconds",
    ),
    _times("All of it", "Request read to settled.", f"{GEN_AI}_request_duration_seconds"),
    graph(
        "Phases",
        "What the gateway spends where: ninety-nine of a hundred requests are within.",
        (quantile(0.99, f"{GW}_phase_seconds", "phase", ITS), "{{phase}}"),
        unit="s",
    ),
    graph(
        "Tokens",
        "Read and written in a second.",
        (rate(f"{GW}_prompt_tokens_total", _NAME, ITS), "{{deployment}} prompt"),
        (rate(f"{GW}_completion_tokens_total", _NAME, ITS), "{{deployment}} completion"),
    ),
    graph(
        "Prompt tokens found in a cache",
        "Of all that were read.",
        (
            share(f"{GW}_cached_tokens_total", f"{GW}_prompt_tokens_total", _NAME, ITS),
            "{{deployment}}",
        ),
        unit="percentunit",
    ),
)
_CAPACITY: Final = (
    graph(
        "Replicas",
        "That are wanted, and that are ready.",
        (total(f"{HEAD}_deployment_replicas_wanted", _NAME, ITS), "{{deployment}} wanted"),
        (total(f"{HEAD}_deployment_replicas_ready", _NAME, ITS), "{{deployment}} ready"),
    ),
    graph(
        "Waiting, and at replicas",
        "Requests, at all gateways.",
        (total(f"{HEAD}_deployment_queued", _NAME, ITS), "{{deployment}} waiting"),
        (total(f"{HEAD}_deployment_in_flight", _NAME, ITS), "{{deployment}} running"),
    ),
    graph(
        "Wait of a request that came now",
        "As admission estimates it, at the gateway where it is longest.",
        (f"max by (deployment) ({GW}_estimated_wait_seconds{{{ITS}}})", "{{deployment}}"),
        unit="s",
    ),
    graph(
        "In the engines",
        "Sequences of each replica that run, and that wait there.",
        (total(f"{REPLICA}_sequences_running", "replica", ITS), "{{replica}} running"),
        (total(f"{REPLICA}_sequences_waiting", "replica", ITS), "{{replica}} waiting"),
    ),
    graph(
        "KV cache in use",
        "Share of each replica's blocks.",
        (total(f"{REPLICA}_kv_usage_ratio", "replica", ITS), "{{replica}}"),
        unit="percentunit",
    ),
    graph(
        "Preempted",
        "Sequences that lost their place for want of KV blocks.",
        (growth(f"{REPLICA}_preemptions_total", "replica", ITS), "{{replica}}"),
    ),
)
_CHANGES: Final = (
    graph(
        "Present revision",
        "1 for the state that it is in.",
        (
            total(f"{HEAD}_deployment_rollout", "deployment, state", ITS),
            "{{deployment}} {{state}}",
        ),
    ),
    graph(
        "Revisions",
        "Of all deployments, in the last hour, by what came of them.",
        (growth(f"{HEAD}_rollouts_total", "result", over="1h"), "{{result}}"),
    ),
    graph(
        "Replicas that began again",
        "After they had ended by themselves.",
        (growth(f"{NODE}_replica_restarts_total", "replica", ITS), "{{replica}}"),
    ),
)


_VLLM: Final = (
    Panel(
        "Within vLLM",
        "Ninety-nine of a hundred requests wait in the engine, have their prompt computed and are"
        " generated within.",
        (
            Query(quantile(0.99, "vllm:request_queue_time_seconds", "deployment", ITS), "queue"),
            Query(
                quantile(0.99, "vllm:request_prefill_time_seconds", "deployment", ITS), "prefill"
            ),
            Query(quantile(0.99, "vllm:request_decode_time_seconds", "deployment", ITS), "decode"),
        ),
        "s",
    ),
    graph(
        "Prefix cache",
        "Of the prompt tokens that were looked up, those found.",
        (
            share(
                "vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total", "replica", ITS
            ),
            "{{replica}}",
        ),
        unit="percentunit",
    ),
    graph(
        "Ends",
        "As the engine tells them, by reason.",
        (rate("vllm:request_success_total", "finished_reason", ITS), "{{finished_reason}}"),
        unit="reqps",
    ),
)
BOARD: Final = Board(
    "deployment",
    "deployment",
    "How requests of a deployment end, how long each part takes, and what its replicas do.",
    (
        Row("How requests end", _ENDS),
        Row("How long it takes", _TIMES),
        Row("What there is room for", _CAPACITY),
        Row("Changes", _CHANGES),
        Row("vLLM", _VLLM),
    ),
    (Variable("deployment", f"{HEAD}_deployment_replicas_wanted"),),
)
