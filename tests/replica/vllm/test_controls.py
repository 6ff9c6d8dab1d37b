"""Engine controls are the replica's: a client's are overwritten, what is not offered is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.replica.engine import Call
from penstock.replica.vllm.controls import NEUTRAL, NotOffered, take_over


class FakeRequest(SimpleNamespace):
    """Has the fields that `take_over` looks at, all set by the client."""

    model_fields = dict.fromkeys(NEUTRAL)


def _request(**fields: Any) -> FakeRequest:
    client: dict[str, Any] = {name: "client" for name in NEUTRAL}
    client |= {"priority": -100, "cache_salt": "client", "request_id": "client"}
    return FakeRequest(**client | {"use_beam_search": False, "n": 1, "prompt": "x"} | fields)


def _call(**more: Any) -> Call:
    return Call("req_1", "/v1/completions", b"", "m", **more)


def test_the_calls_controls_replace_the_clients() -> None:
    request = _request()
    take_over(request, _call(priority=3, tenant_salt="t"), 256)
    assert (request.priority, request.cache_salt, request.request_id) == (3, "t", "req_1")
    assert {name: getattr(request, name) for name in NEUTRAL} == NEUTRAL


def test_no_salt_of_a_tenant_means_none_at_all() -> None:
    request = _request()
    take_over(request, _call(), 256)
    assert request.cache_salt is None


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ({"use_beam_search": True}, "use_beam_search"),
        ({"n": 17}, "n"),
        ({"prompt": ["a"] * 100, "n": 3}, "prompt"),
        ({"prompt": [[1, 2]] * 257}, "prompt"),
    ],
)
def test_what_is_not_offered_is_refused_by_its_field(
    fields: dict[str, Any], parameter: str
) -> None:
    with pytest.raises(NotOffered) as caught:
        take_over(_request(**fields), _call(), 256)
    assert caught.value.parameter == parameter


@pytest.mark.parametrize("prompt", ["text", [1] * 5000, ["a"] * 256, None])
def test_ordinary_prompts_pass(prompt: Any) -> None:
    take_over(_request(prompt=prompt), _call(), 256)
