"""A resume that makes no sense fails its own call, and the engine and others never notice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock.replica.values import Call, Failed, Resume, TokenGroup
from penstock.replica.vllm.engine import VllmEngine
from tests.replica.vllm.inputs import entering_requests
from tests.replica.vllm.resume.cutting import Stream, checked, gone_on, streamed
from tests.replica.vllm.resume.kinds import call
from tests.replica.vllm.talking import ON_THE_SHARED_ENGINE, ask, body, until

pytestmark = ON_THE_SHARED_ENGINE

_Spoil = Callable[[Resume], Resume]


def _with(*groups: TokenGroup, **more: int) -> _Spoil:
    return lambda resume: replace(resume, groups=(*resume.groups, *groups), **more)


def _only(*groups: TokenGroup) -> _Spoil:
    return lambda resume: replace(resume, groups=groups)


_SPOILT: dict[str, _Spoil] = {
    "unknown choice": _with(TokenGroup(7, (5,))),
    "negative choice": _with(TokenGroup(-1, (5,))),
    "id out of the vocabulary": _with(TokenGroup(0, (1 << 30,))),
    "negative id": _with(TokenGroup(0, (-5,))),
    "empty group": _with(TokenGroup(0, ())),
    "goes on after its end": _with(TokenGroup(0, (5,), "stop"), TokenGroup(0, (6,))),
    "ends twice": _with(TokenGroup(0, (), "length"), TokenGroup(0, (), "length")),
    "more tokens than were asked for": _with(TokenGroup(0, (5,) * 40)),
    "a million tokens": _with(TokenGroup(0, (5,) * 1_000_000)),
    "ten thousand groups": _with(*[TokenGroup(0, (5,))] * 10_000),
    "all tokens and no end": _only(TokenGroup(0, (5,) * 30)),
    "ends by its length too soon": _only(TokenGroup(0, (5,) * 5, "length")),
    "ends by an abort": _with(TokenGroup(0, (5,), "abort")),
    "ends by no reason known": _with(TokenGroup(0, (5,), "tired")),
    "a stop string that it does not have": _with(TokenGroup(0, (5,), "stop", "nowhere")),
    "more events than its tokens make": lambda resume: replace(resume, events=resume.events + 4),
    "a million events": lambda resume: replace(resume, events=1_000_000),
    "events and no tokens": lambda resume: replace(resume, groups=()),
}


async def _spoilt(engine: VllmEngine, asked: Call, whole: Stream, spoil: _Spoil) -> Failed:
    resume = spoil(whole.resume(4))
    rest = await streamed(engine, replace(asked, resume=resume))
    assert isinstance(rest.end, Failed), rest.end
    assert b"".join(chunk.body for chunk in rest.chunks) == b""
    return rest.end


@pytest.mark.parametrize("how", _SPOILT)
async def test_it_is_refused_and_others_go_on(engine: VllmEngine, how: str) -> None:
    await until(lambda: engine.no_resume() == "", "the self-test is over")
    asked = call("greedy", f"bad-{how.replace(' ', '-')}")
    whole = await streamed(engine, asked)
    other = call("seeded", "beside-a-bad-one")
    beside, failed = await asyncio.gather(
        streamed(engine, other), _spoilt(engine, asked, whole, _SPOILT[how])
    )
    assert (failed.code, failed.fault, failed.retryable) == ("bad_resume", "upstream", False)
    assert checked(beside, 5, await gone_on(engine, other, beside, 5)) in (True, False)
    await until(lambda: engine.load().running + engine.load().waiting == 0, "nothing is left")
    assert not engine.launched.llm.output_processor.request_states


async def test_tokens_that_a_grammar_does_not_allow_are_refused(engine: VllmEngine) -> None:
    await until(lambda: engine.no_resume() == "", "the self-test is over")
    asked = call("regex", "bad-grammar")
    whole = await streamed(engine, asked)
    failed = await _spoilt(engine, asked, whole, _only(TokenGroup(0, (5, 6, 7))))
    assert (failed.code, failed.fault) == ("bad_resume", "upstream")
    checked(whole, 3, await gone_on(engine, asked, whole, 3))


async def test_a_list_of_prompts_is_refused_whole(engine: VllmEngine) -> None:
    await until(lambda: engine.no_resume() == "", "the self-test is over")
    asked = call("prompts", "bad-prompts")
    whole = await streamed(engine, asked)
    for spoil in (_with(TokenGroup(6, (5,))), _with(TokenGroup(5, ()))):
        assert (await _spoilt(engine, asked, whole, spoil)).code == "bad_resume"
    await until(lambda: not engine.launched.llm.output_processor.request_states, "all is gone")


@pytest.mark.parametrize(
    "fields", [{"stream": False}, {"echo": True, "logprobs": 1}, {"prompt_logprobs": 1}]
)
async def test_what_cannot_be_gone_on_with_is_another_replicas(
    engine: VllmEngine, fields: dict[str, object]
) -> None:
    await until(lambda: engine.no_resume() == "", "the self-test is over")
    path = "/v1/completions"
    content = body(**{"prompt": "Hello", "stream": True} | fields)
    answer = await ask(engine, content, path, token_groups=True)
    if answer.head is not None:
        assert not answer.head.resumable
    resume = Resume((TokenGroup(0, (5,)),), 1, 0, 0)
    failed = (await ask(engine, content, path, token_groups=True, resume=resume)).failed
    if "prompt_logprobs" not in fields:  # which vLLM refuses of a stream in any case
        assert (failed.code, failed.status, failed.retryable) == ("resume_unsupported", 503, True)


async def test_who_asks_for_no_tokens_is_promised_nothing(engine: VllmEngine) -> None:
    answer = await ask(engine, body(prompt="Hello", stream=True), "/v1/completions")
    assert answer.head is not None
    assert not answer.head.resumable


async def test_a_client_cannot_say_what_was_delivered(engine: VllmEngine) -> None:
    """Its own way to the engine's extra arguments is `vllm_xargs`."""
    content = body(prompt="Hello", stream=True, vllm_xargs={"penstock_delivered": [5, 6]})
    with entering_requests(engine) as entered:
        await ask(engine, content, "/v1/completions")
    assert "penstock_delivered" not in (entered[0].params.extra_args or {})
