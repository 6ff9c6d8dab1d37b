"""Datasets: what a line may say, and the words for what it may not."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from penstock.evals.adapter_regression.dataset import parse
from penstock.evals.adapter_regression.thresholds import thresholds
from penstock.evals.comparison.declared import from_toml
from penstock.evals.comparison.questions import BadDataset
from tests.evals.adapter_regression.examples import REFUSALS, dataset, lines

SHIPPED = Path(__file__).resolve().parents[3] / "evals" / "datasets"
ASKED = {"prompt": "Hello?", "checks": {"contains": "a"}}


def test_a_line_becomes_a_prompt() -> None:
    told = {
        "id": "rivers/1",
        "system": "Be brief.",
        "prompt": "Which river?",
        "reference": ["The Seine.", "Seine"],
        "checks": {"exact": True, "length": {"max_words": 5}},
        "request": {"max_tokens": 9},
    }
    (prompt,) = dataset(told).prompts
    assert prompt.id == "rivers/1"
    assert [each["role"] for each in prompt.messages] == ["system", "user"]
    assert prompt.references == ("The Seine.", "Seine")
    assert [each.kind for each in prompt.checks] == ["exact", "length"]
    assert prompt.question.request == {"max_tokens": 9}


def test_a_conversation_is_asked_as_it_stands() -> None:
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    (prompt,) = dataset({"messages": turns, "reference": "Hum"}).prompts
    assert list(prompt.messages) == turns
    assert prompt.id == "line-1"


def test_a_reference_alone_asks_for_similarity() -> None:
    (prompt,) = dataset({"prompt": "Which river?", "reference": "The Seine."}).prompts
    assert [each.kind for each in prompt.checks] == ["similarity"]


def test_a_dataset_is_known_by_its_bytes_and_skips_blank_lines() -> None:
    data = b"\n" + lines(ASKED) + b"\r\n\n"
    found = parse(data, REFUSALS)
    assert len(found.prompts) == 1
    assert found.sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"prompt": "Hello?"}, "checks: must be an object"),
        ({"prompt": "Hello?", "checks": {}}, "checks: must be an object"),
        ({"checks": {"contains": "a"}}, "either prompt"),
        ({**ASKED, "messages": []}, "either prompt"),
        ({"messages": [], "reference": "a"}, "messages: must be a list of at least one"),
        ({"messages": [{"role": "tool", "content": "a"}], "reference": "a"}, "messages[0]: role"),
        ({"messages": [{"role": "user"}], "reference": "a"}, "messages[0]: must be an object"),
        ({"messages": [{"role": "user", "content": 1}], "reference": "a"}, "messages[0].content"),
        ({**ASKED, "prompt": "  "}, "prompt: must be a text"),
        ({**ASKED, "system": 3}, "system: must be a text"),
        ({**ASKED, "reference": []}, "reference: must be"),
        ({**ASKED, "weight": 2}, "there is no field 'weight'"),
        ({**ASKED, "id": "a b"}, "id: must be"),
        ({**ASKED, "checks": {"tone": "kind"}}, "checks.tone: there is no check 'tone'"),
        ({**ASKED, "checks": {"exact": True}}, "checks.exact: needs a reference"),
        ({**ASKED, "request": {"model": "x"}}, "request.model"),
        ({**ASKED, "request": 3}, "request: must be an object"),
        (["prompt"], "must be a JSON object"),
    ],
)
def test_a_wrong_line_is_refused_with_its_number_and_field(told: Any, says: str) -> None:
    with pytest.raises(BadDataset) as raised:
        dataset({"prompt": "First?", "reference": "a"}, told)
    assert "line 2 of the dataset" in str(raised.value)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "line", [b"{", b"\xff", b'{"prompt": "\\ud800", "reference": "a"}', b"[" * 100_000]
)
def test_a_line_that_is_no_json_or_no_text_is_refused(line: bytes) -> None:
    with pytest.raises(BadDataset, match="line 1 of the dataset: is"):
        parse(line, REFUSALS)


def test_the_same_question_does_not_count_twice() -> None:
    with pytest.raises(BadDataset, match="line 3 of the dataset: it has the question of line 1"):
        dataset(ASKED, {"prompt": "Other?", "reference": "a"}, {**ASKED, "id": "again"})
    with pytest.raises(BadDataset, match="the id of line 1"):
        dataset({**ASKED, "id": "a"}, {"id": "a", "prompt": "Other?", "reference": "a"})


@pytest.mark.parametrize("data", [b"", b"\n \n"])
def test_an_empty_dataset_is_refused(data: bytes) -> None:
    with pytest.raises(BadDataset, match="holds no prompt"):
        parse(data, REFUSALS)


@pytest.mark.parametrize("name", ["pirate", "json"])
def test_the_shipped_datasets_can_be_used_with_their_thresholds(name: str) -> None:
    declared = thresholds(from_toml((SHIPPED / f"{name}.toml").read_text()))
    found = parse((SHIPPED / f"{name}.jsonl").read_bytes(), declared.refusals)
    declared.check(found.kinds, references=True)
    assert 20 <= declared.min_prompts <= len(found.prompts)
    references = [each.references[0] for each in found.prompts]
    assert all(
        check.measure(reference) == 1
        for prompt, reference in zip(found.prompts, references, strict=True)
        for check in prompt.checks
    )
    if name == "json":
        assert all(json.loads(each)["answer"] for each in references)
