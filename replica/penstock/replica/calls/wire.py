"""The engine's values as the native side and inference.proto have them, and back. Pure.

Answers go to the native side as plain tuples, a `Write` for each thing that was written. A chunk
is its fields, of which the native side makes the message: there are many. All else is a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
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
    KvHint,
    Resume,
    TokenGroup,
    Usage,
)
from penstock.v1 import common_pb2, inference_pb2

Write = tuple[Any, ...]
"""A call's key; then a chunk's body, events, groups and tokens, or a serialised `CallEvent`."""

_FAULTS: Final[Mapping[FailureFault, common_pb2.Fault]] = {
    "client": common_pb2.FAULT_CLIENT,
    "upstream": common_pb2.FAULT_UPSTREAM,
    "operator": common_pb2.FAULT_OPERATOR,
}
_FAULTS_TOLD: Final = {told: fault for fault, told in _FAULTS.items()}


def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))


_OF_CALL: Final = tuple(name for name in _names(Call) if name not in ("resume", "kv"))
_OF_FAILED: Final = tuple(name for name in _names(Failed) if name not in ("fault", "retryable"))
_OF_HINT: Final = _names(KvHint)
_OF_HEAD: Final = _names(Head)
_OF_USAGE: Final = _names(Usage)
_OF_TIMINGS: Final = ("queue_us", "prefill_us", "decode_us")
_OF_FINISHED: Final = ("adapter", "provider_request_id")
_OF_RECORD: Final = ("request_id", "trace_id", "ttft_us", "total_us")


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
    told = _same(request, _OF_CALL) | {"method": request.method or "POST"}
    resume = _resume_of(request.resume) if request.HasField("resume") else None
    kv = KvHint(**_same(request.kv, _OF_HINT)) if request.HasField("kv") else None
    return Call(**told, resume=resume, kv=kv)


def request_of(call: Call) -> inference_pb2.CallRequest:
    """A call that this process makes, as the native engine takes it."""
    kv = inference_pb2.KvHint(**_same(call.kv, _OF_HINT)) if call.kv else None
    resume = _resume_message(call.resume) if call.resume else None
    return inference_pb2.CallRequest(**_same(call, _OF_CALL), kv=kv, resume=resume)


def head_write(key: int, head: Head, facts: EngineFacts) -> Write:
    """The head of the call's answer, with what answers."""
    return _write(key, head=inference_pb2.Head(**_clean(head, _OF_HEAD), **_versions(facts)))


def finished_write(key: int, finished: Finished, facts: EngineFacts, record: Record) -> Write:
    """The end of the call's answer, with what answered."""
    told = inference_pb2.Finished(
        **_clean(finished, _OF_FINISHED),
        **_same(record, _OF_RECORD),
        **_versions(facts),
        backend=facts.backend,
        finish_reasons=map(_letters, finished.finish_reasons),
        usage=_usage(finished),
        timings=inference_pb2.Timings(**_same(finished, _OF_TIMINGS)),
    )
    return _write(key, finished=told)


def failed_write(key: int, failed: Failed, usage: Usage) -> Write:
    """The call's failure, and what it cost."""
    told = inference_pb2.Failed(error=error_detail(failed), usage=_usage(usage))
    return _write(key, failed=told)


def cancelled_write(key: int, usage: Usage) -> Write:
    """The end of a call whose client did not want the rest, and what it cost."""
    return _write(key, cancelled=inference_pb2.Cancelled(usage=_usage(usage)))


def error_detail(failed: Failed) -> common_pb2.ErrorDetail:
    """A failure in the terms of the wire."""
    return common_pb2.ErrorDetail(
        **_clean(failed, _OF_FAILED), fault=_FAULTS[failed.fault], retry=_retry_of(failed)
    )


def events_of(message: inference_pb2.CallEvent) -> list[Event]:
    """What one message tells, in order."""
    events: list[Event] = []
    if message.HasField("head"):
        events.append(Head(**_same(message.head, _OF_HEAD)))
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
    return inference_pb2.Adapter(**asdict(adapter))


def failure_message(failure: Failure) -> inference_pb2.AdapterFailure:
    """An adapter that could not be loaded."""
    reason = " ".join(str(failure.error).split())
    return inference_pb2.AdapterFailure(name=failure.name, digest=failure.digest, reason=reason)


def _write(key: int, **event: Any) -> Write:
    return key, inference_pb2.CallEvent(**event).SerializeToString()


def _usage(told: Usage | Finished) -> common_pb2.Usage:
    return common_pb2.Usage(**_same(told, _OF_USAGE))


def _versions(facts: EngineFacts) -> dict[str, Any]:
    told = _clean(facts, ("backend_version", "model_version"))
    return told | {"model": _letters(public_name(facts.model))}


def _retry_of(failed: Failed) -> common_pb2.Retry:
    return common_pb2.RETRY_BEFORE_FIRST_TOKEN if failed.retryable else common_pb2.RETRY_NEVER


def _resume_of(message: inference_pb2.Resume) -> Resume:
    groups = tuple(_group_of(group) for group in message.groups)
    return Resume(groups, message.events, message.created, message.cached_tokens)


def _resume_message(resume: Resume) -> inference_pb2.Resume:
    groups = [inference_pb2.TokenGroup(**group._asdict()) for group in resume.groups]
    more = _same(resume, ("events", "created", "cached_tokens"))
    return inference_pb2.Resume(groups=groups, **more)


def _group_of(message: inference_pb2.TokenGroup) -> TokenGroup:
    return TokenGroup(
        message.choice, tuple(message.token_ids), message.finish_reason, message.stop_reason
    )


def _finished_of(message: inference_pb2.Finished) -> Finished:
    return Finished(
        **_same(message.usage, _OF_USAGE),
        **_same(message.timings, _OF_TIMINGS),
        **_same(message, _OF_FINISHED),
        finish_reasons=tuple(message.finish_reasons),
    )


def _failed_of(error: common_pb2.ErrorDetail) -> Failed:
    return Failed(
        **_same(error, _OF_FAILED),
        fault=_FAULTS_TOLD.get(error.fault, "upstream"),
        retryable=error.retry == common_pb2.RETRY_BEFORE_FIRST_TOKEN,
    )


def _same(holder: object, names: Iterable[str]) -> dict[str, Any]:
    """These fields of a message or of a value, for the other, which has them by the same names."""
    return {name: getattr(holder, name) for name in names}


def _clean(holder: object, names: Iterable[str]) -> dict[str, Any]:
    """The same, on the way out: text that is not UTF-8 (half a surrogate pair out of a client's
    JSON) loses that character."""
    told = _same(holder, names)
    return {name: _letters(one) if isinstance(one, str) else one for name, one in told.items()}


def _letters(text: str) -> str:
    return text.encode(errors="replace").decode()
