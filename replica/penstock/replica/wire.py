"""The engine's values to messages of inference.proto, and back. Pure."""

from __future__ import annotations

from penstock.replica.engine import (
    Call,
    Chunk,
    Event,
    Failed,
    Finished,
    Head,
    Resume,
    TokenGroup,
)
from penstock.v1 import common_pb2, inference_pb2

_FAULTS = {"client": common_pb2.FAULT_CLIENT, "upstream": common_pb2.FAULT_UPSTREAM}


def call_of(request: inference_pb2.CallRequest) -> Call:
    """A request as the engine sees it."""
    return Call(
        request_id=request.request_id,
        path=request.path,
        body=request.body,
        model=request.model,
        method=request.method or "POST",
        adapter=request.adapter,
        priority=request.priority,
        deadline_ms=request.deadline_ms,
        tenant_salt=request.tenant_salt,
        traceparent=request.traceparent,
        token_groups=request.token_groups,
        resume=_resume_of(request.resume) if request.HasField("resume") else None,
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
        token_groups=call.token_groups,
    )


def event_message(event: Event) -> inference_pb2.CallEvent:
    """An engine's event as the client hears it."""
    match event:
        case Chunk():
            chunk = inference_pb2.Chunk(body=event.body, events=event.events)
            chunk.groups.extend(_group_message(group) for group in event.groups)
            return inference_pb2.CallEvent(chunk=chunk)
        case Head():
            return inference_pb2.CallEvent(
                head=inference_pb2.Head(
                    status=event.status,
                    content_type=event.content_type,
                    prompt_tokens=event.prompt_tokens,
                    cached_tokens=event.cached_tokens,
                    queue_wait_us=event.queue_wait_us,
                )
            )
        case Failed():
            return inference_pb2.CallEvent(failed=inference_pb2.Failed(error=error_detail(event)))
        case Finished():
            raise TypeError("a Finished needs the engine's facts: use finished_message")


def finished_message(
    finished: Finished, backend: str, backend_version: str, model_version: str
) -> inference_pb2.CallEvent:
    """The end of an answer, with what answered."""
    message = inference_pb2.Finished(
        finish_reasons=finished.finish_reasons,
        backend=backend,
        backend_version=backend_version,
        model_version=model_version,
        adapter=finished.adapter,
    )
    message.usage.prompt_tokens = finished.prompt_tokens
    message.usage.completion_tokens = finished.completion_tokens
    message.usage.cached_tokens = finished.cached_tokens
    message.timings.queue_us = finished.queue_us
    message.timings.prefill_us = finished.prefill_us
    message.timings.decode_us = finished.decode_us
    return inference_pb2.CallEvent(finished=message)


def error_detail(failed: Failed) -> common_pb2.ErrorDetail:
    """A failure in the terms of the wire."""
    retry = common_pb2.RETRY_BEFORE_FIRST_TOKEN if failed.retryable else common_pb2.RETRY_NEVER
    return common_pb2.ErrorDetail(
        status=failed.status,
        type=failed.type,
        code=failed.code,
        param=failed.param,
        message=failed.message,
        fault=_FAULTS[failed.fault],
        retry=retry,
        retry_after_ms=failed.retry_after_ms,
    )


def events_of(message: inference_pb2.CallEvent) -> list[Event]:
    """What one message tells, in order."""
    events: list[Event] = []
    if message.HasField("head"):
        events.append(_head_of(message.head))
    if message.HasField("chunk"):
        groups = tuple(_group_of(group) for group in message.chunk.groups)
        events.append(Chunk(message.chunk.body, message.chunk.events, groups))
    if message.HasField("finished"):
        events.append(_finished_of(message.finished))
    if message.HasField("failed"):
        events.append(_failed_of(message.failed.error))
    return events


def _resume_of(message: inference_pb2.Resume) -> Resume:
    groups = tuple(_group_of(group) for group in message.groups)
    return Resume(groups, message.events, message.created, message.cached_tokens)


def _group_of(message: inference_pb2.TokenGroup) -> TokenGroup:
    return TokenGroup(
        message.choice, tuple(message.token_ids), message.finish_reason, message.stop_reason
    )


def _group_message(group: TokenGroup) -> inference_pb2.TokenGroup:
    return inference_pb2.TokenGroup(
        choice=group.choice,
        token_ids=group.token_ids,
        finish_reason=group.finish_reason,
        stop_reason=group.stop_reason,
    )


def _head_of(message: inference_pb2.Head) -> Head:
    return Head(
        message.status,
        message.content_type,
        message.prompt_tokens,
        message.cached_tokens,
        message.queue_wait_us,
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
    )


def _failed_of(error: common_pb2.ErrorDetail) -> Failed:
    return Failed(
        status=error.status,
        type=error.type,
        code=error.code,
        message=error.message,
        param=error.param,
        fault="client" if error.fault == common_pb2.FAULT_CLIENT else "upstream",
        retryable=error.retry == common_pb2.RETRY_BEFORE_FIRST_TOKEN,
        retry_after_ms=error.retry_after_ms,
    )


__all__ = [
    "call_of",
    "error_detail",
    "event_message",
    "events_of",
    "finished_message",
    "request_of",
]
