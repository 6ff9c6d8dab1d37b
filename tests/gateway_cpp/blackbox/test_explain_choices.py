"""What requests were decided by: replicas that were looked at, queues, programs, arms. Each is kept
as the client, the log and whoever else heard of it were told."""

from __future__ import annotations

from collections import Counter

from penstock.v1 import explain_pb2 as v1
from penstock.v1 import inference_pb2 as inference
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment, route, tenant
from tests.fakes.fake_replica import hello, refuse
from tests.gateway_cpp.blackbox.conftest import Start
from tests.gateway_cpp.blackbox.held import Held, busy, narrow, waiting
from tests.gateway_cpp.blackbox.raw_http import chat
from tests.gateway_cpp.blackbox.recorded import legs, record_of
from tests.gateway_cpp.blackbox.shadowed import shadowed
from tests.gateway_cpp.blackbox.test_canary_counts import judged
from tests.gateway_cpp.blackbox.test_revisions import publish
from tests.gateway_cpp.blackbox.test_router_programs import Lead, lead, split

__all__ = ["lead"]  # a fixture

LOOKS = 8
VIP = "Authorization: Bearer vip\r\n"


def looks(record: v1.RequestRecord, attempt: int = 0) -> dict[str, tuple[int, str]]:
    """Load and verdict of each replica that was looked at."""
    return {look.replica: (look.load, look.verdict) for look in record.attempts[attempt].pick.looks}


async def test_eight_replicas_at_most_are_told_of_and_the_others_counted(start: Start) -> None:
    system = await start(scripts=12 * (hello,))
    *old, new = system.replicas
    shown = [*((replica, "old") for replica in old), (new, "new")]
    await publish(system, *shown, canary=1000, selection_policy="least_loaded")
    answer = await system.ask(chat())
    pick = (await record_of(system, answer)).attempts[0].pick
    verdicts = Counter(look.verdict for look in pick.looks)
    assert verdicts == {"taken": 1, "other_revision": LOOKS - 1}
    assert (pick.policy, pick.more) == ("least_loaded", 12 - LOOKS)
    assert pick.looks[0].replica == answer.headers["x-penstock-replica"] == new.replica_id


async def test_each_replica_that_was_not_taken_says_why(start: Start) -> None:
    sick = refuse(503, "overloaded", retry=True)
    system = await start("--threads", "1", scripts=(sick, hello, hello, hello))
    first, second, third, fourth = system.replicas
    limited = narrow()
    limited.selection_policy = "round_robin"
    await system.has_routes(await system.control.publish([limited], [route(second)]))
    held = Held()
    second.script = held
    async with busy(system):
        shown = [
            *(route(first), route(second)),
            *(route(third, state=inference.REPLICA_STATE_DRAINING), route(fourth)),
        ]
        await system.has_routes(await system.control.publish([limited], shown))
        records = [await record_of(system, await system.ask(chat(seed=i))) for i in range(2)]
        held.let_go()
    record = max(records, key=lambda each: each.attempts_made)
    assert [(a.replica, a.reason, a.error) for a in record.attempts] == [
        ("r1", "first", "overloaded"),
        ("r4", "failover", ""),
    ]
    assert looks(record)["r1"][1] == "taken"
    verdicts = {replica: verdict for replica, (_, verdict) in looks(record, 1).items()}
    assert verdicts["r4"] == "taken"
    assert verdicts["r2"] == "full"
    assert verdicts["r3"] in ("not_ready", "draining")
    assert record.attempts[1].pick.more == 4 - len(verdicts)
    assert looks(record, 1)["r2"][0] == 1


async def test_one_that_waited_says_how_many_of_each_class_went_first_and_its_place(
    start: Start,
) -> None:
    held = Held()
    high = tenant("vip", keys=["vip"], priority=routes.PRIORITY_CLASS_HIGH)
    system = await start("--threads", "1", scripts=(held,), deployment=narrow(), tenants=[high])
    held.let_go()
    assert (await system.ask(chat(VIP))).status == 200
    classes = ("low", "normal", "high", "normal")
    data = [chat(f"{VIP}x-penstock-priority: {each}\r\n") for each in classes]
    async with busy(system), waiting(system, *data) as clients:
        held.let_go(9)
        answers = [await client.response() for client in clients]
    turns = [(await record_of(system, answer)).stays[-1].turn for answer in answers]
    assert [turn.priority for turn in turns] == list(classes)
    ahead = [(turn.ahead_high, turn.ahead_normal, turn.ahead_low) for turn in turns]
    assert ahead == [(0, 0, 0), (0, 0, 0), (0, 0, 0), (1, 1, 0)]
    assert [turn.place for turn in turns] == [1, 1, 1, 3]
    assert turns[3].work_before > turns[2].work_before == 0
    for turn, answer in zip(turns, answers, strict=True):
        assert turn.work_a_second > 0
        assert (turn.ready, turn.with_room, turn.running) == (1, 0, 1)
        assert answer.headers["x-penstock-estimated-wait-ms"] == str(turn.estimated_wait_ms)
        assert answer.headers["x-penstock-queue-ms"] == str(turn.waited_us // 1000)


async def test_a_leg_that_failed_says_at_which_engine_and_why(lead: Lead) -> None:
    led = await lead(split)
    led.engines[2].cause = "fingerprint"
    record = await record_of(led.system, await led.ask())
    assert [(leg.call, leg.replica, leg.failure) for leg in record.legs] == [
        ("tokenize", "r3", "fingerprint"),
        ("prep_recv", "r3", "fingerprint"),
    ]
    line = led.system.gateway.find_log("request settled", request_id=record.request_id)
    assert line
    assert line["legs"] == legs(record)
    assert record.status == 200


async def test_one_of_a_canary_says_its_arm_as_the_head_is_told_it(start: Start) -> None:
    made = await judged(start, share=500)
    records = []
    for i in range(16):
        records.append(await record_of(made.system, await made.ask(session=f"s{i}")))
    assert {record.canary for record in records} == {"try"}
    arms = Counter(record.of_candidate for record in records)
    stable, candidate = await made.arms(requests=16)
    assert (arms[False], arms[True]) == (stable.requests, candidate.requests)
    assert all(arms.values())
    for record in records:
        (stay,) = record.stays
        way = v1.Stay.WAY_CANARY if record.of_candidate else v1.Stay.WAY_NAMED
        assert (stay.deployment, stay.way) == ("next" if record.of_candidate else "mini", way)


async def test_one_that_was_repeated_names_the_rule_that_its_pair_came_by(start: Start) -> None:
    async with shadowed(start) as made:
        record = await record_of(made.system, await made.system.ask(chat()))
        (pair,) = await made.pairs(1)
        assert (list(record.shadows), pair.request_id) == (["next"], record.request_id)


async def test_errors_and_refusals_are_there_when_what_was_ordinary_is_gone(start: Start) -> None:
    sick = refuse(400, "unsupported_parameter")
    few = deployment(limits=routes.Limits(max_completion_tokens=4))
    system = await start("--explain-budget-bytes", "65536", scripts=(sick,), deployment=few)
    failed = await system.ask(chat())
    system.replicas[0].script = hello
    refused = await system.ask(chat(max_tokens=5))
    ordinary = await system.ask(chat())
    async with system.client() as client:
        for i in range(150):
            assert (await client.ask(chat(seed=i))).status == 200
    assert (await record_of(system, failed)).outcome == "invalid"
    assert (await record_of(system, refused)).outcome == "rejected"
    gone = v1.ExplainQuestion(id=ordinary.headers["x-request-id"])
    assert not await system.control.explaining.ask(gone)
