"""What others are asked about pairs is counted later, and what comes to nothing is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.control.comparer.comparer import Comparer
from penstock.control.comparer.ledger import Ledger
from penstock.control.comparer.questions import AT_ONCE, MOST_WAITING
from penstock.control.state.shadow.comparing import Order
from penstock.v1 import shadow_pb2
from tests.control.comparer.asked import Asking, likes, nobody
from tests.fakes.control_waiting import eventually
from tests.fakes.shadow_batches import RULE, answer, batch, pair

ORDER = Order(RULE, "chat", "small", embedder="embed", judge="big")


@pytest.fixture
async def comparer(tmp_path: Path) -> AsyncIterator[Comparer]:
    """One that asks, about the pairs of a shadow with both."""
    ledger = Ledger(tmp_path / "shadow.sqlite")
    made = Comparer(ledger)
    await made.keep([ORDER], keep_others=False)
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(made.run())
        yield made
        asking.cancel()
    ledger.close()


def other(number: int, **more: Any) -> shadow_pb2.ShadowPair:
    """A pair whose answers differ."""
    return pair(
        number,
        primary=answer("Paris it is."),
        candidate=answer("It is Rome.", deployment="small"),
        **more,
    )


async def told(comparer: Comparer, uid: str = RULE) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((await comparer.account(uid, 0)).json)
    return found


def check(found: dict[str, Any], name: str) -> dict[str, Any]:
    (one,) = (each for each in found["checks"] if each["name"] == name)
    return dict(one)


async def until_judged(
    comparer: Comparer, pairs: int, name: str = "judge", of: str = RULE
) -> dict[str, Any]:
    async def has() -> dict[str, Any] | None:
        found = check(await told(comparer, of), name)
        return found if found["pairs"] >= pairs else None

    found = await eventually(has, f"{pairs} pairs of {name}")
    assert found is not None
    return found


async def until_outcome(comparer: Comparer, outcome: str, count: int = 1) -> None:
    async def has() -> bool:
        return bool((await told(comparer))["outcomes"].get(outcome, 0) == count)

    await eventually(has, f"{count} {outcome}")


async def test_a_judge_that_likes_the_primarys_answers_makes_the_candidate_worse(
    comparer: Comparer,
) -> None:
    asking = Asking(likes("Paris"))
    for number in range(1, 4):
        pairs = [other(20 * number + each) for each in range(20)]
        await comparer.count(batch(number, pairs), asking)
        await until_judged(comparer, 20 * number)
    found = await told(comparer)
    assert (check(found, "judge")["difference"], check(found, "judge")["gate"]) == (1.0, True)
    assert (check(found, "judge")["verdict"], found["verdict"]) == ("worse", "worse")


async def test_a_judge_that_likes_what_it_sees_first_says_nothing_against_anybody(
    comparer: Comparer,
) -> None:
    asking = Asking(lambda body: "FIRST")
    await comparer.count(batch(1, [other(1)]), asking)
    assert (await until_judged(comparer, 1))["difference"] == 0.0
    shown = [json.loads(json.loads(each.body)["messages"][-1]["content"]) for each in asking.asked]
    assert [each["first"] for each in shown] == ["Paris it is.", "It is Rome."]
    assert [each["second"] for each in shown] == ["It is Rome.", "Paris it is."]


async def test_a_question_says_for_whom_it_is_asked(comparer: Comparer) -> None:
    asking = Asking()
    asked = other(1, body={"messages": [{"role": "user", "content": "Capital of France?"}]})
    asked.tenant, asked.confined = "acme", True
    await comparer.count(batch(1, [asked]), asking)
    await until_judged(comparer, 1)
    question = asking.asked[0]
    assert (question.rule, question.tenant, question.confined) == (RULE, "acme", True)
    assert (question.deployment, question.path) == ("big", "/v1/chat/completions")
    assert b"user: Capital of France?" in question.body
    assert json.loads(question.body)["model"] == "big"


async def test_meaning_is_counted_beyond_what_the_primary_differs_from_itself(
    comparer: Comparer,
) -> None:
    places = {"Paris it is.": [1.0, 0.0], "It is Rome.": [0.0, 1.0], "Paris.": [0.8, 0.6]}
    asking = Asking(embedder=lambda text: places[text])
    await comparer.count(batch(1, [other(1, again=answer("Paris."))]), asking)
    found = await until_judged(comparer, 1, "semantic")
    assert found["difference"] == pytest.approx(1.0 - 0.2)
    assert not found["gate"]
    (question,) = [each for each in asking.asked if each.path == "/v1/embeddings"]
    assert json.loads(question.body)["input"] == list(places)
    assert question.deployment == "embed"


async def test_without_a_self_arm_nobody_is_asked_what_texts_mean(comparer: Comparer) -> None:
    asking = Asking()
    await comparer.count(batch(1, [other(1)]), asking)
    await until_judged(comparer, 1)
    assert {each.deployment for each in asking.asked} == {"big"}


async def test_answers_that_are_alike_are_asked_about_as_others(comparer: Comparer) -> None:
    """Counted without a question, they alone would count where a judge is too busy."""
    asking = Asking(lambda body: "FIRST")
    same = pair(1, candidate=answer(), again=answer())
    await comparer.count(batch(1, [same]), asking)
    assert (await until_judged(comparer, 1))["difference"] == 0.0
    assert (await until_judged(comparer, 1, "semantic"))["difference"] == 0.0
    assert [each.deployment for each in asking.asked] == ["big", "big", "embed"]
    (texts,) = [
        json.loads(each.body)["input"] for each in asking.asked if each.deployment == "embed"
    ]
    assert len(texts) == 1


async def test_what_is_no_evidence_is_not_asked_about(comparer: Comparer) -> None:
    asking = Asking()
    left_out = other(2, marks=["client_left"])
    failed = pair(3, candidate=answer("no", status=500))
    later = other(4, session=1)
    await comparer.count(batch(1, [other(1), left_out, failed, later]), asking)
    await comparer.count(batch(1, [other(1)]), asking)  # which comes again
    await until_judged(comparer, 1)
    assert len(asking.asked) == 2


@pytest.mark.parametrize("words", ["I like both", "FIRST or SECOND", "", "TIE\nbut why"])
async def test_a_word_of_the_judge_that_nobody_can_read_is_no_tie(
    comparer: Comparer, words: str
) -> None:
    await comparer.count(batch(1, [other(1)]), Asking(lambda body: words))
    await until_outcome(comparer, "judge_unreadable")
    found = check(await told(comparer), "judge")
    assert (found["verdict"], found["pairs"]) == ("not made", 0)


async def test_why_nothing_came_of_a_question_is_counted(comparer: Comparer) -> None:
    asking = Asking()
    asking.outcome = "preempted"
    await comparer.count(batch(1, [other(1, again=answer("Paris."))]), asking)
    await until_outcome(comparer, "judge_preempted")
    await until_outcome(comparer, "embedder_preempted")
    await comparer.count(batch(2, [other(2)]), nobody)
    await until_outcome(comparer, "judge_lost")


async def test_a_judge_that_fails_has_said_nothing(comparer: Comparer) -> None:
    async def fails(question: shadow_pb2.ShadowQuestion) -> shadow_pb2.ShadowReply:
        return shadow_pb2.ShadowReply(answer=answer("no room", status=500))

    await comparer.count(batch(1, [other(1, again=answer("Paris."))]), fails)
    await until_outcome(comparer, "judge_error")
    await until_outcome(comparer, "embedder_error")


async def test_an_embedding_that_is_none_has_said_nothing(comparer: Comparer) -> None:
    asking = Asking(embedder=lambda text: [])
    await comparer.count(batch(1, [other(1, again=answer("Paris."))]), asking)
    await until_outcome(comparer, "embedder_unreadable")


async def test_few_are_asked_at_a_time_and_pairs_beyond_those_that_wait_go_without(
    comparer: Comparer,
) -> None:
    asking = Asking()
    asking.open.clear()
    pairs = [other(number) for number in range(MOST_WAITING + 3)]
    await comparer.count(batch(1, pairs), asking)
    assert (await told(comparer))["outcomes"] == {"judge_overload": 3}
    asking.open.set()
    await until_judged(comparer, MOST_WAITING)
    assert asking.most_at_once == AT_ONCE
    assert (await told(comparer))["pairs"] == MOST_WAITING + 3


async def test_of_a_shadow_that_is_deleted_meanwhile_nothing_is_counted(
    comparer: Comparer,
) -> None:
    asking, another = Asking(), replace(ORDER, uid="other")
    asking.open.clear()
    await comparer.count(batch(1, [other(1)]), asking)
    await comparer.keep([another], keep_others=False)
    asking.open.set()
    await comparer.count(batch(2, [other(2, rule="other")]), asking)
    await comparer.keep([ORDER, another], keep_others=False)
    await until_judged(comparer, 1, of="other")
    assert check(await told(comparer), "judge")["pairs"] == 0


async def test_nothing_of_a_prompt_is_written(comparer: Comparer, tmp_path: Path) -> None:
    secret = other(1, body={"messages": [{"role": "user", "content": "xyzzy"}]})
    await comparer.count(batch(1, [secret]), Asking())
    await until_judged(comparer, 1)
    left = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert b"xyzzy" not in left
    assert b"Paris" not in left
