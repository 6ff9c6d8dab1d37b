"""What `penstock status` shows of what the head knows."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from penstock.control.admin.rollout.models import DeploymentModel, SpecModel
from penstock.control.admin.status_models import ProblemModel
from penstock.control.cli.fleet.status import (
    DEPLOYMENT_COLUMNS,
    GATEWAY_COLUMNS,
    LOAD_COLUMNS,
    NODE_COLUMNS,
    REPLICA_COLUMNS,
    Everything,
    to_json,
    to_parts,
)
from tests.control.cli.drawn import drawn
from tests.control.serving.pictures import NOW, gateway, node, replica


def deployment(**status: Any) -> DeploymentModel:
    return DeploymentModel.model_validate(
        {
            "name": "mini",
            "uid": "u1",
            "generation": 1,
            "template_digest": "d1",
            "spec": {"model": "penstock-mini", "engine": "vllm"},
            "status": {"phase": "degraded", "wanted": 2, "ready": 1, "updated": 1, "message": "so"}
            | status,
            "created_at": NOW,
            "updated_at": NOW,
        }
    )


EVERYTHING = Everything(
    [deployment()],
    [replica("mini-1"), replica("mini-2", state="backoff", restarts=3, last_error="[red]died[/]")],
    [node()],
    [gateway(in_flight=7)],
)


def shown(everything: Everything, width: int = 160) -> str:
    return drawn(*to_parts(everything), width=width)


def test_tables_show_states_counts_and_reasons() -> None:
    text = shown(EVERYTHING)
    for words in ("degraded", "1/2", "mini-2", "backoff", "[red]died[/]", "4.0 of 8.0 GiB", "7"):
        assert words in text


def test_ids_states_and_addresses_stay_whole_on_a_narrow_terminal() -> None:
    text = shown(EVERYTHING, width=80)
    addresses = [each.address for each in EVERYTHING.replicas]
    addresses += [each.address for each in EVERYTHING.nodes]
    addresses += [each.address for each in EVERYTHING.gateways]
    assert all(address in text for address in addresses)
    assert "mini-2" in text
    assert "backoff" in text


def test_an_error_is_broken_between_words_at_80_columns() -> None:
    error = "the engine died: its process ended with signal 4 while it loaded the weights of mini"
    failed = replica("mini-2", state="failed", last_error=error)
    text = shown(Everything([deployment(message=error)], [failed], [node()], []), width=80)
    for words in ("the engine died: its process ended with signal 4", "weights of mini"):
        assert text.count(words) == 2


def test_what_is_wrong_is_told_first() -> None:
    wrong = ProblemModel(
        kind="node_silent", subject=f"node {EVERYTHING.replicas[0].node}", text="is not heard"
    )
    everything = replace(EVERYTHING, problems=[wrong])
    text = shown(everything)
    assert text.index(f"! {wrong.subject}: is not heard") < text.index("Deployments")
    assert "ready, node silent" in text
    assert to_json(everything)["problems"] == [wrong.model_dump()]


def test_how_many_processes_wait_on_a_node_is_shown_and_why_no_more() -> None:
    pool = {"target": 2, "waiting": 1, "claims": 3, "cold_starts": 0, "filled_in_ms": 9}
    text = shown(Everything([], [], [node(warm_pool=pool | {"reason": "it imports"})], []))
    assert "1 of 2" in text
    assert "n: warm pool: it imports" in text
    assert "warm pool:" not in shown(
        Everything([], [], [node(warm_pool=pool | {"reason": ""})], [])
    )


def test_a_drained_node_is_shown_as_drained() -> None:
    drained = node().model_copy(update={"draining": True})
    assert "ready, drained" in shown(Everything([], [], [drained], []))


def test_the_load_of_a_deployment_and_doubts_of_its_replicas_are_told() -> None:
    load = {"queued": 12, "in_flight": 3, "estimated_wait_ms": 2340, "queue_wait_ms": 56.7}
    loaded = deployment(load=load | {"shed_share": 0.125})
    doubted = replica("mini-2", doubts=[{"gateway": "gw-1", "reason": "slow", "for_ms": 4000}])
    text = shown(Everything([loaded], [doubted], [], []), width=80)
    (row,) = [line.split() for line in text.splitlines() if "12.5%" in line]
    assert row == ["mini", "degraded", "3", "12", "2.3", "s", "57", "ms", "12.5%"]
    assert "mini-2: gw-1 sends it nothing for 4.0 s: slow" in text


def test_burn_rates_of_objectives_are_told_and_which_is_not_kept() -> None:
    def burn(objective: str, window: int, requests: int, rate: float) -> dict[str, Any]:
        return {
            "objective": objective,
            "target": "so",
            "window_seconds": window,
            "requests": requests,
            "bad": 1,
            "burn_rate": rate,
        }

    slo = [
        burn("ttft_p50", 300, 10, 1.5),
        burn("ttft_p50", 3600, 90, 0.25),
        burn("ttft_p50", 21600, 90, 0.25),
        burn("error_rate", 300, 0, 0.0),
        burn("error_rate", 3600, 50, 0.1),
    ]
    text = shown(Everything([deployment(slo=slo)], [], [], []))
    rows = [line.split() for line in text.splitlines() if " so" in line]
    assert ["mini", "burning", "ttft_p50", "1.50", "0.25", "0.25", "so"] in rows
    assert ["mini", "no", "requests", "error_rate", "0.10", "so"] in rows
    assert "mini: ttft_p50 is not kept: 1.50 times what may be bad" in text
    assert "Objectives" not in shown(Everything([deployment()], [], [], []))


def test_without_a_ready_replica_no_wait_is_promised() -> None:
    load = {"queued": 12, "estimated_wait_ms": 0, "shed_share": 0.125}
    text = shown(Everything([deployment(load=load, ready=0)], [], [], []), width=80)
    (row,) = [line.split() for line in text.splitlines() if "12.5%" in line]
    assert row == ["mini", "degraded", "0", "12", "0", "ms", "12.5%"]


def test_a_head_that_tells_no_load_is_understood() -> None:
    assert deployment().status.load.queued == 0


def test_what_costs_money_or_has_a_budget_is_listed_with_what_it_spent() -> None:
    spent = {"requests": 9, "prompt_tokens": 12_000, "completion_tokens": 345, "usd": 1.234}
    midnight = "2026-01-03T00:00:00Z"
    used_up = {"used_up": True, "resets_at": midnight, "today": spent}
    cloud = deployment(budget=used_up).model_copy(update={"name": "cloud", "managed": True})
    spec = {"budget_usd_per_day": 1.2, "budget_tokens_per_day": 20_000, "engine": "openai"}
    cloud = cloud.model_copy(update={"spec": cloud.spec.model_copy(update=spec)})
    free = deployment().model_copy(update={"name": "sorry", "managed": True})
    text = shown(Everything([deployment(), cloud, free], [], [], []), width=100)
    assert "openai (managed)" in text
    rows = [" ".join(line.split()) for line in text.partition("Spend")[2].splitlines()]
    assert "name budget USD today of USD tokens today of tokens" in rows
    assert "cloud used up $1.23 $1.20 12,345 20,000" in rows
    assert "sorry none $0 0" in rows
    assert "cloud: it takes nothing until 2026-01-03 00:00 UTC" in rows
    assert not any(row.startswith("mini") for row in rows[: rows.index("Replicas: none")])
    assert "Spend" not in shown(EVERYTHING)


def test_where_nothing_is_it_says_so() -> None:
    assert "Deployments: none" in shown(Everything([], [], [], []))


def test_at_80_columns_every_list_is_a_table_whose_headers_are_whole() -> None:
    lines = shown(EVERYTHING, width=80).splitlines()
    for columns in (
        DEPLOYMENT_COLUMNS,
        LOAD_COLUMNS,
        REPLICA_COLUMNS,
        NODE_COLUMNS,
        GATEWAY_COLUMNS,
    ):
        assert " ".join(columns) in [" ".join(line.split()) for line in lines]
    assert max(map(len, lines)) <= 80


def test_at_40_columns_each_row_has_lines_of_its_own() -> None:
    lines = shown(EVERYTHING, width=40).splitlines()
    told = [" ".join(line.split()) for line in lines]
    for words in ("mini-2 backoff", "address 127.0.0.1:1", "restarts 3", "in flight 7"):
        assert words in told
    assert max(map(len, lines)) <= 40


def test_json_is_what_the_admin_api_says() -> None:
    told = json.loads(json.dumps(to_json(EVERYTHING)))
    assert told["deployments"][0]["status"]["phase"] == "degraded"
    assert [each["id"] for each in told["replicas"]] == ["mini-1", "mini-2"]
    assert told["gateways"][0]["in_flight"] == 7
    assert told["nodes"][0]["id"] == "n"


def test_answers_that_were_resumed_are_counted_once_there_are_any() -> None:
    assert "resumed" not in shown(EVERYTHING)
    known = deployment(load={"resumed": 12, "not_resumed": 1})
    assert "answers resumed: 12, 1 not" in shown(replace(EVERYTHING, deployments=[known]))


def test_a_replica_that_does_not_resume_says_why_where_it_might() -> None:
    one = replica("mini-1", no_resume="seeded differs")
    everything = replace(EVERYTHING, replicas=[one])
    assert "goes on with no answer that another began: seeded differs" in shown(everything)
    spec = SpecModel.model_validate({"model": "penstock-mini", "resume": "off"})
    off = deployment().model_copy(update={"spec": spec})
    assert "seeded differs" not in shown(replace(everything, deployments=[off]))
    cloud = deployment().model_copy(update={"managed": True})
    assert "seeded differs" not in shown(replace(everything, deployments=[cloud]))


def test_a_replica_that_leaves_says_when_its_streams_move() -> None:
    at = datetime(2026, 1, 2, 12, 0, 30, tzinfo=UTC)
    leaving = replica("mini-1", state="draining", hand_over_at=at)
    words = "its streams go on at other replicas from 12:00:30 UTC on"
    assert words in shown(replace(EVERYTHING, replicas=[leaving]))
