"""What a gateway's record of a request says, held against what its log and its client were told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from penstock.v1 import explain_pb2 as v1
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.raw_http import Response

if TYPE_CHECKING:
    from tests.gateway_cpp.blackbox.conftest import System

PHASES = ("parse", "resolve", "admit", "select", "open", "stream", "settle")
SAME = (
    *("request_id", "path", "tenant", "key_id", "client", "model_version", "status", "outcome"),
    *("error_code", "drop_reason", "events", "bytes"),
    *("prompt_tokens", "completion_tokens", "cached_tokens"),
)
LONGEST_ID = 128
LONGEST_MESSAGE = 300
FIRST_ERROR = 400


def close(ms: float) -> Any:
    """Sums of whole microseconds are a few of them off."""
    return pytest.approx(ms, abs=0.02)


def left(record: v1.RequestRecord) -> str:
    """Who could not answer it, as the log tells it."""
    return ", ".join(f"{s.arm or s.deployment}={s.left_for}" for s in record.stays if s.left_for)


def legs(record: v1.RequestRecord) -> str:
    """Likewise, what engines did."""
    return ", ".join(
        f"{leg.call}@{leg.replica}={leg.failure or leg.tokens}/{leg.took_us // 1000}ms"
        for leg in record.legs
    )


def trimmed(record: v1.RequestRecord) -> str:
    """Likewise, what was left out."""
    messages, tokens = record.trimmed_messages, record.trimmed_tokens
    return f"messages={messages}, tokens={tokens}" if messages or tokens else ""


def as_logged(record: v1.RequestRecord) -> dict[str, Any]:
    """The fields of the line, as the record has them."""
    here = record.stays[-1] if record.stays else v1.Stay()
    told: dict[str, Any] = {name: getattr(record, name) for name in SAME}
    waited = sum(stay.turn.waited_us for stay in record.stays)
    told |= {
        "client_request_id": record.client_request_id,
        "trace_id": record.trace_id.hex(),
        "deployment": here.deployment,
        "adapter": here.adapter,
        "attempts": record.attempts_made,
        "queue_wait_ms": close(waited / 1000),
        "estimated_wait_ms": here.turn.estimated_wait_ms,
        "ttft_ms": close(record.first_byte_us / 1000),
        "duration_ms": close(record.duration_us / 1000),
    }
    told |= {
        f"{phase}_ms": close(us / 1000) for phase, us in zip(PHASES, record.phase_us, strict=True)
    }
    if record.degraded or left(record):
        told |= {
            "left": left(record),
            "degraded": record.degraded,
            "rung": record.rung,
            "asked": record.asked,
            "trimmed": trimmed(record),
        }
    if record.program:
        told |= {"program": record.program, "legs": legs(record)}
    if record.canary:
        arm = "candidate" if record.of_candidate else "stable"
        told |= {"canary": record.canary, "arm": arm}
    if record.prompt_version:
        told["prompt_version"] = record.prompt_version
    return told


def holds(line: dict[str, Any], record: v1.RequestRecord) -> None:
    """The line says what the record does, and nothing else but how an answer went on, which the
    record tells by its attempts."""
    said = {name: value for name, value in line.items() if name not in ("time", "level", "message")}
    if resumes := said.pop("resumes", 0):
        assert resumes <= sum(a.reason.startswith("resume:") for a in record.attempts)
    broke = said.pop("resumed_from", "")
    assert set(broke.split(", ")) - {""} <= {attempt.replica for attempt in record.attempts}
    said["client_request_id"] = said["client_request_id"][:LONGEST_ID]
    replica = said.pop("replica")
    assert (
        not replica
        or not record.attempts
        or any(attempt.replica == replica for attempt in record.attempts)
    )
    assert said == as_logged(record)


def told(answer: Response, record: v1.RequestRecord) -> None:
    """The client of a request for chat was told what the record says."""
    assert answer.status == record.status
    here = record.stays[-1] if record.stays else v1.Stay()
    said = {
        "trace-id": record.trace_id.hex(),
        "backend": here.deployment,
        "estimated-wait-ms": str(here.turn.estimated_wait_ms),
        "adapter-version": here.adapter,
        "degraded": record.degraded,
        "trimmed": trimmed(record),
    }
    heard = {name: answer.headers.get(f"x-penstock-{name}") for name in said}
    assert heard == {name: said[name] if heard[name] is not None else None for name in said}
    assert answer.headers.get("x-penstock-drop-reason", "") == record.drop_reason
    if answer.status >= FIRST_ERROR:
        assert answer.error["code"] == record.error_code
        whole, field = kept(answer.error)
        assert record.message == whole or (record.message == field and not record.drop_reason)


def kept(error: dict[str, Any]) -> tuple[str, str]:
    """What a record may have of what a client was told: all of it, cut; or the field at fault
    alone, where a replica has worded it or it quotes the body."""
    whole = str(error["message"]).encode()[:LONGEST_MESSAGE].decode(errors="ignore")
    param = error["param"] or ""
    return whole, f"param: {param}" if param else ""


async def all_hold(system: System) -> None:
    """Every line about a request that has ended, where the gateway still answers the head."""
    control, gateway = system.control, system.gateway
    if not (control.explaining.is_open and gateway.is_running()):
        return
    question = v1.ExplainQuestion(list=v1.RequestFilter(limit=1000))
    try:
        records = {record.request_id: record for record in await control.explaining.ask(question)}
    except ConnectionError:
        return  # it has just been killed
    for line in gateway.logs():
        if line["message"] == "request settled" and (record := records.get(line["request_id"])):
            holds(line, record)


async def record_of(system: System, answer: Response) -> v1.RequestRecord:
    """What was decided about the request for chat that was answered so; its log line agrees, and
    what its client was told."""
    record = await record_by(system, answer.headers["x-request-id"])
    told(answer, record)
    return record


async def record_by(system: System, request_id: str) -> v1.RequestRecord:
    """Likewise, by its id."""
    line = await until(
        lambda: system.gateway.find_log("request settled", request_id=request_id), "it is logged"
    )
    assert line
    found: list[v1.RequestRecord] = []
    while not found:
        found = await system.control.explaining.ask(v1.ExplainQuestion(id=request_id))
    holds(line, found[0])
    return found[0]
