"""Every metric that the head tells: a new one is a row here, and a line where it is told.

After a change: `.venv/bin/python -m tests.architecture.metrics_reference`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from penstock.control.metrics.declared import DeclaredMetric, MetricType

_OF_DEPLOYMENT: Final = ("deployment",)
_OF_TENANT: Final = ("deployment", "tenant")
_OF_ADAPTER: Final = ("deployment", "adapter")
_OF_OBJECTIVE: Final = ("deployment", "objective")


def _declared(
    type: MetricType, name: str, labels: tuple[str, ...], unit: str, help: str
) -> DeclaredMetric:
    return DeclaredMetric(f"penstock_head_{name}", type, labels, unit, help)


_counter = partial(_declared, MetricType.COUNTER)
_gauge = partial(_declared, MetricType.GAUGE)
_histogram = partial(_declared, MetricType.HISTOGRAM)

# ---- what is wrong, and what there is
PROBLEMS: Final = _gauge(
    "problems", ("kind",), "problems", "What `penstock status` tells of first, by kind."
)
HOLDS_STILL: Final = _gauge(
    "holds_still", (), "yes or no", "1: another head is in command, see the status."
)
REFUSED_PEERS: Final = _gauge(
    "refused_peers",
    (),
    "processes",
    "Node agents and gateways that ask to be let in, and are not: see the status.",
)
CERTIFICATE_ENDS: Final = _gauge(
    "certificate_ends_seconds",
    ("of",),
    "seconds since 1970",
    "When a certificate that the head or its gateway serves with ends; 0: it cannot be read.",
)
SNAPSHOT_VERSION: Final = _gauge(
    "snapshot_version", (), "version", "Of the routes that gateways are told."
)
DEPLOYMENTS: Final = _gauge("deployments", (), "deployments", "Deployments.")
REPLICAS: Final = _gauge("replicas", ("phase",), "replicas", "Replicas by phase.")
NODES: Final = _gauge("nodes", ("state",), "nodes", "Node agents by state.")
GATEWAYS: Final = _gauge("gateways", ("state",), "gateways", "Gateways by state.")
GATEWAYS_ALIVE: Final = _gauge(
    "gateways_alive", (), "gateways", "Gateways that reported in these seconds."
)
ADAPTERS: Final = _gauge("adapters", (), "versions", "Versions of adapters that are registered.")

# ---- its own work
ACTIONS: Final = _counter(
    "reconcile_actions_total",
    ("action",),
    "actions",
    "Actions that the head decided on or asked agents for.",
)
RECONCILING: Final = _histogram(
    "reconcile_seconds",
    (),
    "seconds",
    "From looking at the cluster to having asked for what it lacks.",
)
WRITING: Final = _histogram(
    "store_write_seconds", (), "seconds", "Transactions of the store, failed ones included."
)
FAILED_WRITES: Final = _counter(
    "store_write_failures_total", (), "transactions", "Transactions of the store that failed."
)
LOST_EVENTS: Final = _counter("events_lost_total", (), "events", "Events that could not be stored.")
ROLLOUTS: Final = _counter(
    "rollouts_total",
    ("result",),
    "revisions",
    "Revisions by what came of them; one that failed may be rolled back, too.",
)
WRONG_WAKES: Final = _counter(
    "wrong_wakes_total",
    ("cause",),
    "replicas",
    "Replicas that a sleep changed: they did not answer as before, or not wake in time.",
)

# ---- deployments
REPLICAS_WANTED: Final = _gauge(
    "deployment_replicas_wanted", _OF_DEPLOYMENT, "replicas", "Replicas asked for."
)
REPLICAS_READY: Final = _gauge(
    "deployment_replicas_ready", _OF_DEPLOYMENT, "replicas", "Replicas that are ready."
)
REPLICAS_FAILING: Final = _gauge(
    "deployment_replicas_failing",
    _OF_DEPLOYMENT,
    "replicas",
    "Replicas that ended by themselves and wait to be started, have failed, or are lost.",
)
ROLLOUT: Final = _gauge(
    "deployment_rollout",
    ("deployment", "state"),
    "yes or no",
    "1: the present revision is in this state.",
)
QUEUED: Final = _gauge(
    "deployment_queued", _OF_DEPLOYMENT, "requests", "Requests that wait, at all gateways."
)
IN_FLIGHT: Final = _gauge(
    "deployment_in_flight", _OF_DEPLOYMENT, "requests", "Requests at replicas, of all gateways."
)
REQUESTS: Final = _counter(
    "deployment_requests_total", _OF_DEPLOYMENT, "requests", "Requests that gateways reported."
)
REJECTED: Final = _counter(
    "deployment_rejected_total", _OF_DEPLOYMENT, "requests", "Of these, refused by admission."
)
PROGRAM_NOT_ASKED: Final = _gauge(
    "deployment_program_not_asked",
    _OF_DEPLOYMENT,
    "gateways",
    "Gateways that do not ask the deployment's router program now: see the status.",
)
BUDGET_USED_UP: Final = _gauge(
    "deployment_budget_used_up",
    _OF_DEPLOYMENT,
    "yes or no",
    "Of deployments with a budget of the day. 1: it is used up.",
)

# ---- money and tokens: of today (UTC), as stored; all begin anew at midnight
TENANT_REQUESTS: Final = _counter(
    "tenant_requests_total", _OF_TENANT, "requests", "Requests that went to a replica, today."
)
TENANT_TOKENS: Final = _counter(
    "tenant_tokens_total",
    (*_OF_TENANT, "kind"),
    "tokens",
    "Tokens, today: prompt, cached (of these), completion.",
)
TENANT_COST: Final = _counter(
    "tenant_cost_usd_total",
    _OF_TENANT,
    "US dollars",
    "What requests cost today, where models have prices.",
)
TENANT_USED_UP: Final = _gauge(
    "tenant_used_up",
    ("tenant", "limit"),
    "yes or no",
    "Of tenants with limits of the day that asked for anything. 1: it has had its tokens, or its"
    " dollars.",
)
ADAPTER_REQUESTS: Final = _counter(
    "adapter_requests_total",
    _OF_ADAPTER,
    "requests",
    "Requests for an adapter that went to a replica, today.",
)
ADAPTER_TOKENS: Final = _counter(
    "adapter_tokens_total",
    (*_OF_ADAPTER, "kind"),
    "tokens",
    "Their tokens, today: prompt, cached (of these), completion.",
)
ADAPTER_COST: Final = _counter(
    "adapter_cost_usd_total", _OF_ADAPTER, "US dollars", "What they cost today."
)
ADAPTER_REPLICAS: Final = _gauge(
    "adapter_replicas", _OF_ADAPTER, "replicas", "Ready replicas that hold the adapter."
)

# ---- service level objectives: of deployments that have any
SLO_REQUESTS: Final = _counter(
    "slo_requests_total",
    _OF_OBJECTIVE,
    "requests",
    "Requests that the objective judges, since this head first heard of their gateway.",
)
SLO_BAD_REQUESTS: Final = _counter(
    "slo_bad_requests_total",
    _OF_OBJECTIVE,
    "requests",
    "Of these, those that were too slow, or not answered.",
)
SLO_BUDGET: Final = _gauge(
    "slo_budget_ratio",
    _OF_OBJECTIVE,
    "ratio",
    "Share of the requests that may be bad: bad / requests / this is the burn rate.",
)

# ---- canaries: a hundred at most
CANARY_STEP: Final = _gauge(
    "canary_step", ("canary",), "step", "The step that the canary is at, from 1."
)
CANARY_PERMILLE: Final = _gauge(
    "canary_permille",
    ("canary",),
    "thousandths",
    "What the candidate has of the sessions, in thousandths.",
)
CANARY_STATE: Final = _gauge(
    "canary_state", ("canary", "state"), "yes or no", "1: the canary is in this state."
)
CANARY_SESSIONS: Final = _gauge(
    "canary_sessions", ("canary", "arm"), "sessions", "Sessions of this step."
)
CANARY_BAD_SESSIONS: Final = _gauge(
    "canary_bad_sessions",
    ("canary", "arm"),
    "sessions",
    "Of these, those of which any request broke.",
)
