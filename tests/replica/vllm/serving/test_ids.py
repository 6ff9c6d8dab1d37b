"""Names and times in answers come from the call, and vLLM draws no others."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.replica.values import Call, Resume
from penstock.replica.vllm.serving.tap import CURRENT, CallTap

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

_DRAWS = re.compile(r"\buuid4\(|\btime\.time\(|\brandom_uuid\(|\bnow\(|\btoken_hex\(")

_KNOWN = {
    "anthropic/protocol.py": 1,  # the name of a message that is none of a chat's
    "anthropic/serving.py": 3,
    "openai/chat_completion/batch_serving.py": 1,  # not served
    "openai/chat_completion/protocol.py": 4,  # answers' own are told, requests' are overwritten
    "openai/chat_completion/serving.py": 2,
    "openai/completion/protocol.py": 4,
    "openai/completion/serving.py": 1,
    "openai/parser/harmony_utils.py": 1,  # the date in a prompt, see resume_kinds.md
    "openai/responses/context.py": 6,
    "openai/responses/harmony.py": 5,
    "openai/responses/protocol.py": 5,
    "openai/responses/serving.py": 4,
    "openai/responses/streaming_events.py": 11,
    "openai/responses/utils.py": 4,
}
"""Where vLLM's layers draw a name or look at the clock, and how often."""


def _next(request_id: str, count: int = 2, begun: int = 0) -> list[str]:
    """Names that vLLM gives to parts of a call's answer."""
    from vllm.utils import random_uuid

    from penstock.replica.vllm.serving import ids

    ids.install(None)
    tap = CallTap(Call(request_id, "/v1/responses", b"", "m"))
    token = CURRENT.set(tap)
    try:
        for _ in range(begun):
            random_uuid()
        tap.begin(1)
        return [random_uuid() for _ in range(count)]
    finally:
        CURRENT.reset(token)


def test_a_calls_names_are_the_same_wherever_it_is_answered() -> None:
    pytest.importorskip("vllm")
    assert _next("r") == _next("r")
    assert len({*_next("r"), *_next("other")}) == 4
    assert all(re.fullmatch("[0-9a-f]{16}", name) for name in _next("r"))


def test_a_mistral_models_calls_have_their_names_of_the_call_too() -> None:
    mistral = pytest.importorskip("vllm.parser.mistral")
    _next("r")
    tap = CallTap(Call("r", "/v1/responses", b"", "m"))
    make = mistral.MistralToolCall.generate_random_id
    assert make() != make()
    token = CURRENT.set(tap)
    try:
        name = make()
    finally:
        CURRENT.reset(token)
    assert mistral.MistralToolCall.is_valid_id(name)
    assert name == CallTap(tap.call).next_uuid().hex[:9]


def test_names_that_the_reading_of_the_body_draws_change_none_of_the_answers() -> None:
    pytest.importorskip("vllm")
    assert _next("r", begun=3) == _next("r")


def test_outside_any_call_and_inside_the_engine_names_are_random() -> None:
    pytest.importorskip("vllm")
    from vllm.utils import random_uuid
    from vllm.v1.engine import input_processor

    _next("r")
    assert random_uuid() != random_uuid()
    tap = CallTap(Call("r", "/v1/responses", b"", "m"))
    token = CURRENT.set(tap)
    try:
        assert input_processor.random_uuid() != input_processor.random_uuid()
    finally:
        CURRENT.reset(token)


def test_an_answer_says_that_it_was_made_when_the_first_replica_said() -> None:
    pytest.importorskip("vllm")
    from vllm.entrypoints.openai.chat_completion import serving

    _next("r")
    resume = Resume((), 0, created=1_700_000_000, cached_tokens=0)
    tap = CallTap(Call("r", "/v1/chat/completions", b"", "m", resume=resume))
    token = CURRENT.set(tap)
    try:
        assert int(serving.time.time()) == 1_700_000_000
    finally:
        CURRENT.reset(token)
    assert abs(serving.time.time() - time.time()) < 60  # noqa: TID251 - what the clock says
    assert tap.head(200, "text/event-stream").created == 1_700_000_000


@pytest.mark.parametrize(("mode", "told"), [("full", "vllm-1-tp2-c0ffee00"), ("custom", "ours-7")])
def test_systems_are_named_alike_where_one_goes_on_with_anothers_answer(
    mode: str, told: str
) -> None:
    pytest.importorskip("vllm")
    from penstock.replica.vllm.serving.app import tell_equals

    named = {"full": "vllm-1-tp2-4193a58d", "custom": "ours-7"}[mode]
    chat = SimpleNamespace(system_fingerprint=named)
    args = SimpleNamespace(fingerprint_mode=mode)
    tell_equals(
        SimpleNamespace(state=SimpleNamespace(args=args, openai_serving_chat=chat)), "c0ffee001234"
    )
    assert chat.system_fingerprint == told


def _drawing() -> Iterator[tuple[str, int]]:
    import vllm.entrypoints

    root = Path(vllm.entrypoints.__path__[0])
    for room in ("openai", "anthropic"):
        for path in sorted((root / room).rglob("*.py")):
            code = re.sub(r'"""[\s\S]*?"""', "", path.read_text())
            if found := len(_DRAWS.findall(code)):
                yield path.relative_to(root).as_posix(), found


def test_vllm_draws_names_and_looks_at_its_clock_where_it_did() -> None:
    """If not: look at the new places, and at what `serving/ids.py` makes of them."""
    pytest.importorskip("vllm")
    found = dict(_drawing())
    assert found == _KNOWN
