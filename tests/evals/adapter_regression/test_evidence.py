"""Evidence: what is stored of a report, and that it fits."""

from __future__ import annotations

import json

import jsonschema
import pytest

from penstock.adapters.adapter import AdapterRef
from penstock.evals.adapter_regression.document import as_dict
from penstock.evals.adapter_regression.evidence import (
    LARGEST_REPORT,
    Registered,
    Registry,
    evidence,
    shortened,
)
from penstock.evals.adapter_regression.scores import Answer
from penstock.evals.errors import EvalError
from tests.evals.adapter_regression.examples import bad, good, greetings, run_of
from tests.evals.adapter_regression.test_reports import SCHEMA
from tests.evals.fake_gateway import DIGEST, FAMILY, TOKEN, fake_gateway

REF = AdapterRef("pirate", "2")


def test_evidence_says_what_a_promotion_asks_for() -> None:
    run = run_of(greetings(40), good, good)
    told = evidence(as_dict(run), Registered(DIGEST, FAMILY))
    assert told["passed"] is True
    assert {key: told[key] for key in ("kind", "against", "dataset", "family", "digest")} == {
        "kind": "adapter-regression",
        "against": "pirate@1",
        "dataset": run.dataset.sha256,
        "family": FAMILY,
        "digest": DIGEST,
    }
    assert told["at"] == "2026-03-01T12:00:00+00:00"
    assert told["report"] == as_dict(run)


@pytest.mark.parametrize("count", [5, 40])
def test_what_failed_or_is_not_enough_is_no_pass(count: int) -> None:
    told = evidence(as_dict(run_of(greetings(count), bad, good)), Registered(DIGEST, FAMILY))
    assert told["passed"] is False


@pytest.mark.parametrize(
    ("prompts", "length", "left_out"),
    [(50, 20_000, "texts are left out"), (2000, 20, "prompts are left out")],
)
def test_a_report_that_is_too_large_is_stored_without_what_makes_it_so(
    prompts: int, length: int, left_out: str
) -> None:
    report = as_dict(run_of(greetings(prompts), lambda n: Answer("a" * length), good))
    kept = shortened(report)
    assert len(json.dumps(kept)) <= LARGEST_REPORT
    assert kept["shortened"] == left_out
    assert kept["comparison"] == report["comparison"]
    jsonschema.validate(kept, SCHEMA)


def test_the_registry_is_asked_and_told_with_the_token() -> None:
    with fake_gateway({}) as fake:
        registry = Registry(fake.url + "/", TOKEN)
        assert registry.registered(REF) == Registered(DIGEST, FAMILY)
        registry.store(REF, {"kind": "adapter-regression"})
    assert fake.evidence == [
        ("/admin/v1/adapters/pirate@2/evidence", {"kind": "adapter-regression"})
    ]


def test_what_the_head_refuses_is_said_in_its_words() -> None:
    with fake_gateway({}) as fake:
        with pytest.raises(EvalError, match=r"401 .*a token is needed"):
            Registry(fake.url, "wrong").registered(REF)
        fake.evidence_status = 409
        with pytest.raises(EvalError, match="409"):
            Registry(fake.url, TOKEN).store(REF, {})
        url = fake.url
    with pytest.raises(EvalError, match="no answer"):
        Registry(url, TOKEN).registered(REF)
