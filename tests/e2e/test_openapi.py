"""What /openapi.json says is true of a real system: requests made from it, right and wrong."""

from __future__ import annotations

import json
import time
import urllib.request
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from tests.e2e.system import System, get_json

_IS_LONG = settings.get_current_profile_name() == "random"
_SECONDS = 60.0 if _IS_LONG else 30.0
"""For all operations together; an operation's examples that come later are not sent."""

_EXAMPLES = {
    GenerationMode.POSITIVE: 6 if _IS_LONG else 3,
    GenerationMode.NEGATIVE: 4 if _IS_LONG else 2,
}
_CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
]
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_TOKENS = 4


class _TimeIsUp(Exception):
    """No more examples of this operation."""


@pytest.fixture(scope="module")
def described(shared_real: System) -> Any:
    """The API as the gateway describes it."""
    load_all_checks()
    return schemathesis.openapi.from_url(shared_real.gateway_url + "/openapi.json")


def test_the_description_can_be_asked_for_alone_and_from_another_origin(
    shared_real: System,
) -> None:
    request = urllib.request.Request(shared_real.gateway_url + "/openapi.json", method="HEAD")
    with urllib.request.urlopen(request, timeout=5) as reply:
        assert reply.headers["content-type"] == "application/json"
        assert int(reply.headers["content-length"]) > 100_000
        assert reply.read() == b""


def test_requests_made_from_the_description_are_answered_as_it_says(
    shared_real: System, described: Any
) -> None:
    before = _replicas(shared_real)
    operations = [one.ok() for one in described.get_all_operations()]
    left = _SECONDS
    sent = 0
    for rest, operation in zip(range(len(operations), 0, -1), operations, strict=True):
        begun = time.monotonic()
        sent += _send(operation, shared_real, within=left / rest)
        left -= time.monotonic() - begun
    assert sent >= len(operations)
    assert _replicas(shared_real) == before, shared_real.output()
    _answers_as_ever(shared_real)


def _send(operation: Any, system: System, *, within: float) -> int:
    """Sends an operation's examples, as many as there is time for; how many that were."""
    checks: Any = CHECKS.get_by_names(_CHECKS)
    deadline = time.monotonic() + within
    sent = 0

    def send(case: Case[Any]) -> None:
        nonlocal sent
        if time.monotonic() > deadline:
            raise _TimeIsUp
        _tame(case)
        case.call_and_validate(base_url=system.gateway_url, checks=checks, timeout=60)
        sent += 1

    modes = list(_EXAMPLES) if operation.body else [GenerationMode.POSITIVE]
    for mode in modes:
        sized: Any = settings(
            max_examples=_EXAMPLES[mode],
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        with suppress(_TimeIsUp):
            of_cases: Any = given(operation.as_strategy(generation_mode=mode))
            sized(of_cases(send))()
    return sent


def _tame(case: Case[Any]) -> None:
    """Asks the model that is there, and for few tokens: most examples would be 404, or be long."""
    body: Any = case.body
    if not isinstance(body, dict):
        return
    if isinstance(body.get("model"), str):
        body["model"] = "penstock-mini"
    for name in _LIMITS:
        if isinstance(body.get(name), int):
            body[name] = min(body[name], _TOKENS)
    if not any(name in body for name in _LIMITS):
        body["max_output_tokens" if case.path == "/v1/responses" else "max_tokens"] = _TOKENS


def _replicas(system: System) -> list[tuple[Any, Any]]:
    return [(replica["id"], replica["pid"]) for replica in system.replicas()]


def _answers_as_ever(system: System) -> None:
    body = {"model": "penstock-mini", "messages": [{"role": "user", "content": "Hello"}]}
    request = urllib.request.Request(
        system.base_url + "/chat/completions",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        assert json.load(reply)["choices"][0]["finish_reason"]
    assert get_json(system.gateway_url + "/readyz")["status"] == "ready"
