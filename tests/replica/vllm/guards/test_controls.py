"""Engine controls are the replica's: a client's are overwritten, what is not offered is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.replica.values import Call
from penstock.replica.vllm.guards.controls import NEUTRAL, UNKNOWN, take_over
from penstock.replica.vllm.guards.costs import NotOffered
from penstock.replica.vllm.guards.limits import Capacity

_CAPACITY = Capacity(sequences=256, context=4096)


class FakeRequest(SimpleNamespace):
    """Has the fields that `take_over` looks at, all set by the client."""

    model_fields = dict.fromkeys(
        [*NEUTRAL, "priority", "cache_salt", "request_id", "background", "truncation"]
    )

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.__pydantic_extra__ = {"data_parallel_rank": 7}


def _request(**fields: Any) -> FakeRequest:
    client: dict[str, Any] = {name: "client" for name in NEUTRAL}
    client |= {"priority": -100, "cache_salt": "client", "request_id": "client"}
    return FakeRequest(**client | {"background": None, "truncation": None} | fields)


def _call(path: str = "/v1/completions", **more: Any) -> Call:
    return Call("req_1", path, b"", "m", **more)


def test_the_calls_controls_replace_the_clients() -> None:
    request = _request()
    take_over(request, _call(priority=3, tenant_salt="t"), _CAPACITY)
    assert (request.priority, request.cache_salt, request.request_id) == (3, "t", "req_1")
    assert {name: getattr(request, name) for name in NEUTRAL} == NEUTRAL


def test_fields_that_the_model_does_not_have_are_dropped() -> None:
    request = _request()
    take_over(request, _call(), _CAPACITY)
    assert request.__pydantic_extra__ == {}


def test_a_response_is_named_as_responses_are() -> None:
    request = _request()
    take_over(request, _call("/v1/responses"), _CAPACITY)
    assert request.request_id == "resp_req_1"


def test_a_null_means_what_leaving_out_does() -> None:
    request = _request()
    take_over(request, _call("/v1/responses"), _CAPACITY)
    assert (request.background, request.truncation) == (False, "disabled")


def test_no_salt_of_a_tenant_means_none_at_all() -> None:
    request = _request()
    take_over(request, _call(), _CAPACITY)
    assert request.cache_salt is None


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ({"use_beam_search": True}, "use_beam_search"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": {"id": "conv_1"}}, "conversation"),
        ({"background": True}, "background"),
        ({"encoding_format": "bytes"}, "encoding_format"),
    ],
)
def test_what_is_not_offered_is_refused_by_its_field(
    fields: dict[str, Any], parameter: str
) -> None:
    with pytest.raises(NotOffered) as caught:
        take_over(_request(**fields), _call(), _CAPACITY)
    assert caught.value.parameter == parameter
    assert parameter in str(caught.value)


@pytest.mark.parametrize("field", UNKNOWN)
def test_what_vllm_would_leave_out_of_account_is_refused(field: str) -> None:
    with pytest.raises(NotOffered, match="send") as refused:
        take_over(_request(**{field: [{"name": "look"}]}), _call(), _CAPACITY)
    assert refused.value.parameter == field


def test_the_best_of_one_answer_is_that_answer() -> None:
    take_over(_request(best_of=1), _call(), _CAPACITY)


def test_a_name_for_the_request_in_its_body_is_refused() -> None:
    with pytest.raises(NotOffered, match="x-request-id"):
        take_over(_request(model_fields_set={"request_id"}), _call(), _CAPACITY)


@pytest.mark.parametrize("kind", ["web_search", "code_interpreter", "mcp"])
def test_a_tool_that_would_be_run_here_is_refused(kind: str) -> None:
    tools = [SimpleNamespace(type="function"), SimpleNamespace(type=kind)]
    with pytest.raises(NotOffered, match=f"Tools of type '{kind}'") as refused:
        take_over(_request(tools=tools), _call("/v1/responses"), _CAPACITY)
    assert refused.value.parameter == "tools.1.type"
