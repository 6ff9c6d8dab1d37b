"""What becomes of a stored deployment by what a command says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.control.admin.rollout.models import SpecModel
from penstock.control.serving.options import Adapter, ServeOptions
from penstock.control.serving.spec_changes import differences, served, serving_as, spec_with

OPTIONS = ServeOptions("mini", "mini", Path("/data"), "simulated")


def stored(**values: Any) -> SpecModel:
    """As `penstock serve` made it at first, and as it was changed then."""
    return SpecModel.model_validate({**served(OPTIONS, None).model_dump(), **values})


def changes(options: ServeOptions, known: SpecModel) -> list[str]:
    return list(differences(known, served(options, known)))


def test_what_nobody_says_stays_as_it_is_stored() -> None:
    known = stored(
        replicas=2, degrade=["fallback:cloud"], engine_args={"ttft_ms": "5"}, labels={"team": "a"}
    )
    assert changes(replace(OPTIONS, engine="vllm", model="other", replicas=7), known) == [
        "labels.managed-by none -> serve"
    ]


def test_what_is_said_changes_what_is_stored_and_nothing_else() -> None:
    known = stored(replicas=2, engine_args={"ttft_ms": "5", "answer_tokens": "9"})
    options = replace(
        OPTIONS,
        said=frozenset({"replicas"}),
        replicas=3,
        settings={"max_queued": 7},
        engine_args={"ttft_ms": "6", "answer_tokens": ""},
    )
    assert changes(options, known) == [
        "max_queued 100 -> 7",
        "engine_args.ttft_ms 5 -> 6",
        "engine_args.answer_tokens 9 -> none",
        "replicas 2 -> 3",
    ]


def test_the_settings_of_another_engine_go_with_it() -> None:
    known = stored(engine_args={"ttft_ms": "5"}, max_adapters=3, max_queued=9)
    said = {"engine": "canned", "model": "canned"}
    new = spec_with(known.model_dump(), said, {"text": "Too busy."})
    assert (new.engine_args, new.max_adapters, new.max_queued) == ({"text": "Too busy."}, 0, 9)


def test_a_deployment_that_was_scaled_to_nothing_is_served_again() -> None:
    assert changes(OPTIONS, stored(replicas=0)) == ["replicas 0 -> 1"]


def test_adapters_that_are_asked_for_find_room() -> None:
    pirate = Adapter("pirate", "pirate@1", "penstock-mini/pirate", comes_along=True)
    assert changes(replace(OPTIONS, adapters=(pirate,)), stored()) == []
    asked = replace(OPTIONS, adapters=(replace(pirate, comes_along=False),))
    assert changes(asked, stored()) == ["max_adapters 0 -> 4"]
    assert changes(asked, stored(max_adapters=1)) == []


def test_adapters_of_the_default_model_do_not_come_along_with_another_one() -> None:
    pirate = Adapter("pirate", "pirate@1", "penstock-mini/pirate", comes_along=True)
    sql = Adapter("sql", "sql@1", "/lora")
    options = replace(OPTIONS, adapters=(pirate, sql))
    assert serving_as(options, stored(model="other")).adapters == (sql,)
    assert serving_as(options, stored()).adapters == (pirate, sql)
