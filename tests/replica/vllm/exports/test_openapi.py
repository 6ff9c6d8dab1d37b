"""The description of the API says what is served: by the replica, and by vLLM's models."""

from __future__ import annotations

import difflib
import json
import runpy
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from penstock.replica.vllm.endpoints import ENDPOINTS
from penstock.replica.vllm.guards.controls import NEUTRAL, REFUSED
from tests.fakes.engine_nursery import forked

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

_KEPT = Path(__file__).parents[4] / "gateway_cpp" / "openapi.json"
_MODULE = "penstock.replica.vllm.exports.openapi"
_MAKE = f"make it anew: .venv/bin/python -m {_MODULE} gateway_cpp/openapi.json"


@pytest.fixture(scope="module")
def kept() -> Any:
    return json.loads(_KEPT.read_text())


def test_the_kept_description_is_the_one_that_is_made(tmp_path: Path) -> None:
    # In a process of its own, as the command is: pydantic shares definitions among all models that
    # a process has built, so what other tests imported changes which of them stand by themselves.
    made = tmp_path / "openapi.json"
    making = forked(_make, str(made))
    making.join(timeout=170)
    assert making.exitcode == 0
    if made.read_text() != _KEPT.read_text():
        was, now = (file.read_text().splitlines() for file in (_KEPT, made))
        change = difflib.unified_diff(was, now)
        pytest.fail("\n".join([_MAKE, *islice(change, 100)]))


def _make(file: str) -> None:
    sys.argv[1:] = [file]
    runpy.run_module(_MODULE, run_name="__main__")


def test_every_endpoint_of_the_table_is_described(kept: Any) -> None:
    from penstock.replica.vllm.exports.described import DESCRIBED

    assert DESCRIBED.keys() == ENDPOINTS.keys()
    names = {name for path, row in DESCRIBED.items() for name in (path, *row.aliases)}
    posted = {path for path, item in kept["paths"].items() if "post" in item}
    assert names == posted - {"/ping", "/invocations"}, _MAKE


def test_no_field_is_described_that_is_not_a_clients(kept: Any) -> None:
    schema = kept["components"]["schemas"]["ChatCompletionRequest"]["properties"]
    assert {"messages", "max_completion_tokens", "tools"} <= schema.keys()
    not_theirs = {*NEUTRAL, *REFUSED, "priority", "cache_salt", "request_id"} - {"store"}
    assert schema.keys() & not_theirs == set()


def test_everything_that_is_referred_to_is_there(kept: Any) -> None:
    text = json.dumps(kept)
    for part in text.split('"$ref": "')[1:]:
        place = kept
        for name in part.partition('"')[0].removeprefix("#/").split("/"):
            place = place[name]
        assert place


def test_errors_are_described_in_the_dialect_of_their_endpoint(kept: Any) -> None:
    def schema(path: str) -> str:
        error = kept["paths"][path]["post"]["responses"]["4XX"]
        return str(error["content"]["application/json"]["schema"]["$ref"])

    assert schema("/v1/messages").endswith("/AnthropicErrorBody")
    assert schema("/v1/responses").endswith("/OpenAIErrorBody")
