"""The engine's values as the native side and inference.proto have them, and back. Pure.

Answers go to the native side as plain tuples, a `Write` for each thing that was written: call key,
kind, then the fields in the order of native/python_writes.h, which makes the messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.adapters.adapter import AdapterRef
from penstock.adapters.shown import public_name
from penstock.adapters.version import is_digest
from penstock.replica.adapters.failures import Failure
from penstock.replica.values import (
    AdapterSource,
    Call,
    CannotLoad,
    Chunk,
    EngineFacts,
    Event,
    Failed,
    FailureFault,
    Finished,
    Head,
    Resume,
    TokenGroup,
    Usage,
)
from penstock.v1 import common_pb2, inference_pb2

Write = tuple[Any, ...]
CHUNK: Final = 0
HEAD: Final = 1
FINISHED: Final = 2
FAILED: Final = 3
CANCELLED: Final = 4

_FAULTS: Final[Mapping[FailureFault, common_pb2.Fault]] = {
    "client": common_pb2.FAULT_CLIENT,
    "upstream": common_pb2.FAULT_UPSTREAM,
    "operator": common_pb2.FAULT_OPERATOR,
}
_FAULTS_TOLD: Final = {told: fault for fault, told in _FAULTS.items()}


@dataclass(slots=True)
class Record:
    """What a call's end tells of the call itself."""

    request_id: str = ""
    trace_id: str = ""
    ttft_us: int = 0  # accepted to first body bytes
    total_us: int = 0  # accepted to the end


def trace_id_of(traceparent: str) -> str:
    """The trace that a W3C traceparent names; empty where it names none."""
    fields = traceparent.split("-")
    return fields[1] if len(fields) > 1 else ""


def call_of(request: inference_pb2.CallRequest) -> Call:
    """A request as the engine sees it."""
    return Call(
        request_id=request.request_id,
        path=request.path,
        body=request.body,
        model=request.model,
        method=request.method or "POST",
        adapter=request.adapter,
        adapter_digest=request.adapter_digest,
        adapter_wait_ms=request.adapter_wait_ms,
        priority=request.priority,
        deadline_ms=request.deadline_ms,
        tenant_salt=request.tenant_salt,
        traceparent=request.traceparent,
        token_groups=request.token_groups,
        resume=_resume_of(request.resume) if request.HasField("resume") else None,
        max_prompt_tokens=request.max_prompt_tokens,
        max_completion_tokens=request.max_completion_tokens,
        trim=request.trim,
        tenant=request.tenant,
        input_price=request.input_price,
        output_price=request.output_price,
        cached_price=request.cached_price,
    )


def request_of(call: Call) -> inference_pb2.CallRequest:
    """A call that this process makes, as the native engine takes it."""
    return inference_pb2.CallRequest(
        request_id=call.request_id,
        method=call.method,
        path=call.path,
        body=call.body,
        model=call.model,
        adapter=call.adapter,
        adapter_digest=call.adapter_digest,
        token_groups=call.token_groups,
        max_prompt_tokens=call.max_prompt_tokens,
        max_completion_tokens=call.max_completion_tokens,
        trim=call.trim,
    )


def head_write(key: int, head: Head, facts: EngineFacts) -> Write:
    """The head of the call's answer, with what answers."""
    return (
        key,
        HEAD,
        head.status,
        head.content_type,
        head.prompt_tokens,
        head.cached_tokens,
        head.queue_wait_us,
        facts.backend_version,
        facts.model_version,
        head.trimmed_messages,
        head.trimmed_tokens,
        public_name(facts.model),
    )


def finished_write(key: int, finished: Finished, facts: EngineFacts, record: Record) -> Write:
    """The end of the call's answer, with what answered."""
    return (
        key,
        FINISHED,
        finished.prompt_tokens,
        finished.completion_tokens,
        finished.cached_tokens,
        finished.cost_nanousd,
        finished.queue_us,
        finished.prefill_us,
        finished.decode_us,
        finished.finish_reasons,
        finished.adapter,
        facts.backend,
        facts.backend_version,
        facts.model_version,
        public_name(facts.model),
        record.request_id,
        record.trace_id,
        finished.provider_request_id,
        record.ttft_us,
        record.total_us,
    )


def failed_write(key: int, failed: Failed, usage: Usage) -> Write:
    """The call's failure, and what it cost."""
    return (
        key,
        FAILED,
        failed.status,
        failed.type,
        failed.code,
        failed.message,
        failed.param,
        _FAULTS[failed.fault],
        _retry_of(failed),
        failed.retry_after_ms,
        *_counts(usage),
    )


def cancelled_write(key: int, usage: Usage) -> Write:
    """The end of a call whose client did not want the rest, and what it cost."""
    return (key, CANCELLED, *_counts(usage))


def error_detail(failed: Failed) -> common_pb2.ErrorDetail:
    """A failure in the terms of the wire."""
    return common_pb2.ErrorDetail(
        status=failed.status,
        type=failed.type,
        code=failed.code,
        param=failed.param,
        message=failed.message,
        fault=_FAULTS[failed.fault],
        retry=_retry_of(failed),
        retry_after_ms=failed.retry_after_ms,
    )


def events_of(message: inference_pb2.CallEvent) -> list[Event]:
    """What one message tells, in order."""
    events: list[Event] = []
    if message.HasField("head"):
        events.append(_head_of(message.head))
    if message.HasField("chunk"):
        groups = tuple(_group_of(group) for group in message.chunk.groups)
        events.append(Chunk(message.chunk.body, message.chunk.events, groups, message.chunk.tokens))
    if message.HasField("finished"):
        events.append(_finished_of(message.finished))
    if message.HasField("failed"):
        events.append(_failed_of(message.failed.error))
    return events


def adapter_of(message: inference_pb2.Adapter) -> AdapterSource:
    """An adapter that is asked for. Raises `BadAdapterRef`, or `CannotLoad` for no digest."""
    name = str(AdapterRef.parse(message.name))
    if message.digest and not is_digest(message.digest):
        raise CannotLoad(f"adapter {name}: {message.digest!r} is no digest of a content")
    if not message.source and not message.digest:
        raise CannotLoad(f"adapter {name}: neither a source nor a digest is named")
    return AdapterSource(name, message.source, message.digest, message.pinned)


def adapter_message(adapter: AdapterSource) -> inference_pb2.Adapter:
    """An adapter that is held."""
    return inference_pb2.Adapter(
        name=adapter.name, source=adapter.source, digest=adapter.digest, pinned=adapter.pinned
    )


def failure_message(failure: Failure) -> inference_pb2.AdapterFailure:
    """An adapter that could not be loaded."""
    reason = " ".join(str(failure.error).split())
    return inference_pb2.AdapterFailure(name=failure.name, digest=failure.digest, reason=reason)


def _counts(usage: Usage) -> tuple[int, int, int, int]:
    return usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.cost_nanousd


def _retry_of(failed: Failed) -> common_pb2.Retry:
    return common_pb2.RETRY_BEFORE_FIRST_TOKEN if failed.retryable else common_pb2.RETRY_NEVER


def _resume_of(message: inference_pb2.Resume) -> Resume:
    groups = tuple(_group_of(group) for group in message.groups)
    return Resume(groups, message.events, message.created, message.cached_tokens)


def _group_of(message: inference_pb2.TokenGroup) -> TokenGroup:
    return TokenGroup(
        message.choice, tuple(message.token_ids), message.finish_reason, message.stop_reason
    )


def _head_of(message: inference_pb2.Head) -> Head:
    return Head(
        message.status,
        message.content_type,
        message.prompt_tokens,
        message.cached_tokens,
        message.queue_wait_us,
        message.trimmed_messages,
        message.trimmed_tokens,
    )


def _finished_of(message: inference_pb2.Finished) -> Finished:
    return Finished(
        prompt_tokens=message.usage.prompt_tokens,
        completion_tokens=message.usage.completion_tokens,
        cached_tokens=message.usage.cached_tokens,
        queue_us=message.timings.queue_us,
        prefill_us=message.timings.prefill_us,
        decode_us=message.timings.decode_us,
        finish_reasons=tuple(message.finish_reasons),
        adapter=message.adapter,
        cost_nanousd=message.usage.cost_nanousd,
        provider_request_id=message.provider_request_id,
    )


def _failed_of(error: common_pb2.ErrorDetail) -> Failed:
    return Failed(
        status=error.status,
        type=error.type,
        code=error.code,
        message=error.message,
        param=error.param,
        fault=_FAULTS_TOLD.get(error.fault, "upstream"),
        retryable=error.retry == common_pb2.RETRY_BEFORE_FIRST_TOKEN,
        retry_after_ms=error.retry_after_ms,
    )
