"""Answers that another replica began: every engine goes on with them exactly, or says it cannot.

An answer is cut behind each of its chunks. What its client has and what comes are together the
answer that nobody disturbed, apart from how many tokens one event shows.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from penstock.v1 import common_pb2 as common
from penstock.v1 import inference_pb2 as v1
from tests.fakes.contract_engines import LOCAL, PROVIDED
from tests.fakes.replica_process import (
    answer_of,
    chat_request,
    load_when,
    raw_request,
    session,
)

pytestmark = pytest.mark.processes

_GREEDY: dict[str, Any] = {"temperature": 0, "max_tokens": 12, "ignore_eos": True, "stream": True}
_USAGE = {"stream_options": {"include_usage": True}}
_SEEDED = {"temperature": 0.8, "seed": 7, "presence_penalty": 0.5, "frequency_penalty": 0.5}


def _chat(**fields: Any) -> v1.CallRequest:
    return chat_request("What is a gateway?", **_GREEDY | fields)


def _completion(**fields: Any) -> v1.CallRequest:
    body = {"model": "test-model", "prompt": "Once upon a time", **_GREEDY | fields}
    request = raw_request(json.dumps(body).encode())
    request.path = "/v1/completions"
    return request


def _adapted() -> v1.CallRequest:
    request = _chat()
    request.adapter = "pirate@1"
    return request


_REQUESTS = {
    "chat": _chat(**_USAGE),
    "no usage": _chat(),
    "completion": _completion(**_USAGE),
    "seeded": _chat(**_SEEDED),
    "one token": _chat(max_tokens=1),
    "stopped": _chat(stop=[" a", "e"], max_tokens=40),
    "adapted": _adapted(),
}


def _asked(stub: Any, request: v1.CallRequest) -> list[v1.CallEvent]:
    request.token_groups = True
    return list(stub.Call(request, timeout=60))


@dataclass(frozen=True, slots=True)
class _Seen:
    """An answer, or a part of it: what its gateway knows."""

    head: v1.Head
    chunks: list[v1.Chunk]
    end: v1.CallEvent

    @property
    def body(self) -> bytes:
        return b"".join(chunk.body for chunk in self.chunks)

    @property
    def groups(self) -> list[v1.TokenGroup]:
        return [group for chunk in self.chunks for group in chunk.groups]

    @property
    def usage(self) -> common.Usage:
        return self.end.finished.usage

    def cut(self, request: v1.CallRequest, chunks: int) -> v1.CallRequest:
        """The call for what is behind these first chunks."""
        had = _Seen(self.head, self.chunks[:chunks], self.end)
        resumed = v1.CallRequest()
        resumed.CopyFrom(request)
        told = v1.Resume(
            groups=had.groups,
            events=sum(chunk.events for chunk in had.chunks),
            created=self.head.created,
            cached_tokens=self.head.cached_tokens,
        )
        resumed.resume.CopyFrom(told)
        return resumed


def _seen(stub: Any, request: v1.CallRequest) -> _Seen:
    events = _asked(stub, request)
    assert events[-1].HasField("finished"), events[-1]
    return _Seen(
        events[0].head, [event.chunk for event in events if event.HasField("chunk")], events[-1]
    )


def _ids(groups: Iterable[v1.TokenGroup]) -> list[tuple[int, int]]:
    return [(group.choice, token) for group in groups for token in group.token_ids]


def _text_of(choice: dict[str, Any]) -> str:
    return str(choice.get("text") or choice.get("delta", {}).get("content") or "")


def _text_first(event: Any) -> list[Any]:
    """Text that comes with the end of its choice, apart from that."""
    ends = event != "[DONE]" and event["choices"] and event["choices"][0]["finish_reason"]
    if not ends or not (text := _text_of(event["choices"][0])):
        return [event]
    (choice,) = event["choices"]
    field = {"text": ""} if "text" in choice else {"delta": choice["delta"] | {"content": ""}}
    bare = {name: each for name, each in choice.items() if name not in ("text", "delta")}
    said = {"text": text} if "text" in choice else {"delta": {"content": text}}
    first = event | {"choices": [bare | said | {"finish_reason": None}]}
    return [first, event | {"choices": [bare | field]}]


def _merged(body: bytes) -> list[Any]:
    """What a client reads: texts that follow each other are one."""
    events = [event.removeprefix("data: ") for event in body.decode().split("\n\n")[:-1]]
    read = [json.loads(event) if event != "[DONE]" else event for event in events]
    read = [part for event in read for part in _text_first(event)]

    def is_text(one: Any) -> bool:
        plain = one != "[DONE]" and one["choices"] and not one["choices"][0]["finish_reason"]
        return bool(plain and _text_of(one["choices"][0]))

    merged: list[Any] = []
    for texts, ones in itertools.groupby(read, is_text):
        group: list[Any] = list(ones)
        if not texts:
            merged += group
            continue
        merged.append("".join(_text_of(one["choices"][0]) for one in group))
        merged.append({(one["id"], one["created"], one["model"]) for one in group})
    return merged


@LOCAL
@pytest.mark.parametrize("name", _REQUESTS)
def test_wherever_an_answer_is_cut_the_rest_comes(stub: Any, name: str) -> None:
    request = _REQUESTS[name]
    load_when(stub, lambda load: load.resumes, within=60)
    whole = _seen(stub, request)
    assert whole.head.resumable
    for chunks in range(len(whole.chunks) + 1):
        rest = _seen(stub, whole.cut(request, chunks))
        had = whole.chunks[:chunks]
        joined = b"".join(chunk.body for chunk in had) + rest.body
        assert _merged(joined) == _merged(whole.body), chunks
        assert sum(chunk.events for chunk in rest.chunks) == rest.body.count(b"data: ")
        shown = [group for chunk in had for group in chunk.groups]
        assert _ids(shown) + _ids(rest.groups) == _ids(whole.groups)
        told = sum(chunk.tokens for chunk in rest.chunks)
        assert told == len(_ids(rest.groups)), "only what is new"
        assert rest.usage == whole.usage, "of all of it"
        assert rest.end.finished.finish_reasons == whole.end.finished.finish_reasons


@LOCAL
def test_who_goes_on_says_of_the_answer_what_was_said_of_it(stub: Any) -> None:
    load_when(stub, lambda load: load.resumes, within=60)
    request = _chat(**_USAGE)
    whole = _seen(stub, request)
    resumed = whole.cut(request, 3)
    resumed.resume.created = 1_700_000_000
    resumed.resume.cached_tokens = 2
    rest = _seen(stub, resumed)
    assert rest.head.created == 1_700_000_000
    assert rest.head.prompt_tokens == whole.head.prompt_tokens
    assert rest.head.cached_tokens == rest.usage.cached_tokens == 2
    assert rest.head.resumable, "and it may be cut again"
    assert b'"created":1700000000' in rest.body
    assert str(whole.head.created).encode() not in rest.body


@LOCAL
def test_nothing_is_resumable_whose_tokens_nobody_asks_for(stub: Any) -> None:
    events = list(stub.Call(_chat(), timeout=60))
    assert not events[0].head.resumable


def _strange_choice(resume: v1.Resume) -> None:
    resume.groups[0].choice = 7


def _strange_token(resume: v1.Resume) -> None:
    resume.groups[0].token_ids[0] = 4_000_000_000


def _many_events(resume: v1.Resume) -> None:
    resume.events = 1_000_000


def _two_finishes(resume: v1.Resume) -> None:
    resume.groups.add(token_ids=[5], finish_reason="length")
    resume.groups.add(token_ids=[5], finish_reason="length")


@LOCAL
@pytest.mark.parametrize("bend", [_strange_choice, _strange_token, _many_events, _two_finishes])
def test_what_fits_no_answer_is_refused_and_hurts_nobody(stub: Any, bend: Any) -> None:
    load_when(stub, lambda load: load.resumes, within=60)
    request = _chat()
    whole = _seen(stub, request)
    bad = whole.cut(request, 6)
    bend(bad.resume)
    with session(stub) as beside:
        other = _chat(max_tokens=100)
        other.request_id = "beside"
        beside.start(other)
        beside.read_frame()
        (event,) = _asked(stub, bad)
        assert event.failed.error.code == "bad_resume", event
        assert event.failed.error.fault == common.FAULT_UPSTREAM
        told = (event.failed.error.status, event.failed.error.type)
        assert told == (400, "invalid_request_error")
        beside.read_until_ended(1)
        assert beside.events[1][-1].finished.usage.completion_tokens == 100
    load_when(stub, lambda load: load.running == 0 and load.waiting == 0)


@PROVIDED
def test_an_answer_of_another_party_is_never_resumable_and_a_resume_is_told_so(stub: Any) -> None:
    request = chat_request("Hello there", stream=True, max_tokens=12)
    request.token_groups = True
    events = list(stub.Call(request, timeout=60))
    assert answer_of(events)
    assert not events[0].head.resumable
    load_when(stub, lambda load: load.config_hash and not load.resumes)
    request.resume.CopyFrom(v1.Resume(events=1, created=1_700_000_000))
    (event,) = stub.Call(request, timeout=60)
    error = event.failed.error
    assert (error.status, error.code) == (503, "resume_unsupported")
    assert error.retry == common.RETRY_BEFORE_FIRST_TOKEN
    assert event.failed.usage == common.Usage(), "nothing was asked of anybody"
