"""Two thousand moves between two engines, in both directions, while they are killed and stopped.

Every answer is that of an engine that moves nothing, and afterwards every block is free.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import psutil
import pytest

from penstock.v1 import inference_pb2
from penstock.v1 import microserving_pb2 as pb
from tests.fakes.movers import GREEDY, Mover, ids_of, mover, sending, words
from tests.fakes.replica_process import ReplicaProcess, chat_request

log = logging.getLogger(__name__)

pytestmark = [
    pytest.mark.long,
    pytest.mark.vllm,
    pytest.mark.processes,
    pytest.mark.timeout(3600),
]

_OPERATIONS = 2000
_AT_ONCE = 8
_TEXTS = 120
_KILLS = 8
_ARGUMENTS = (
    *("--engine", "vllm", "--model", "penstock-mini"),
    *("--adapter", "pirate@1=penstock-mini/pirate"),
    *("--engine-arg", "max_num_batched_tokens=256", "--engine-arg", "cpu_kvcache_gib=0.04"),
    *("--engine-arg", "block_size=32"),
)
_UP_WITHIN = 300
# A call, one that was cut off, and one over a channel that was closed meanwhile.
_BROKEN = (grpc.RpcError, grpc.FutureCancelledError, ValueError)


class _Side:
    """A replica that is started again when it was killed."""

    def __init__(self, log_file: Path, *more: str) -> None:
        self._log = log_file
        self._more = more
        self._numbers = itertools.count()
        self._up = threading.Event()
        self._stack = contextlib.ExitStack()
        self.mover: Mover
        self.free = 0
        self.start()

    def start(self) -> None:
        """Anew, or for the first time."""
        log_file = self._log.with_suffix(f".{next(self._numbers)}")
        process = ReplicaProcess(log_file, *_ARGUMENTS, *self._more)
        self._stack.callback(process.close)
        process.await_ready(_UP_WITHIN)
        self.mover = self._stack.enter_context(mover(process))
        self.free = self.free_blocks() if self._more else 0
        self._up.set()

    def get(self) -> Mover:
        """Once it is up."""
        assert self._up.wait(_UP_WITHIN)
        return self.mover

    def kill(self) -> None:
        """With -9, and starts it again."""
        self._up.clear()
        self.mover.process.signal(signal.SIGKILL)
        self._stack.close()
        self._stack = contextlib.ExitStack()
        self.start()

    def stop_a_while(self, seconds: float) -> None:
        """Its processes stand still."""
        whole = psutil.Process(self.mover.process.process.pid)
        family = [whole, *whole.children(recursive=True)]
        for one in family:
            one.suspend()
        time.sleep(seconds)
        for one in family:
            one.resume()

    def free_blocks(self) -> int:
        """Once nothing is leased and nothing moves."""
        self.mover.idle()
        prompt = pb.Prompt(token_ids=[5, 6, 7])
        return int(self.mover.kv.Lookup(pb.LookupRequest(prompt=prompt), timeout=60).free_blocks)

    def close(self) -> None:
        """For good."""
        self._stack.close()


def _request(text: str, number: int) -> inference_pb2.CallRequest:
    """Greedy and seeded, and some of each with an adapter."""
    fields = {**GREEDY, "temperature": 0.7, "seed": number} if number % 3 == 0 else GREEDY
    request = chat_request(text, f"req_{number}", **fields)
    request.adapter = "pirate@1" if number % 5 == 0 else ""
    request.token_groups = True
    return request


class _Run:
    """What is done, and what came of it."""

    def __init__(self, sides: list[_Side], texts: list[str], right: list[list[int]]) -> None:
        self._sides, self._texts, self._right = sides, texts, right
        self._violence = threading.Lock()
        self._due = sorted(random.Random(5).sample(range(100, _OPERATIONS - 100), 2 * _KILLS))
        self.counts: Counter[str] = Counter()

    def operation(self, number: int) -> None:
        """One move and its answer."""
        chance = random.Random(number)
        text = chance.randrange(len(self._texts))
        sender, receiver = chance.sample(self._sides, 2)
        harm = self._harm_at(number, chance)
        try:
            self._move(number, text, sender, receiver, chance, harm)
        except _BROKEN as error:
            self.counts[_told(error)] += 1
        finally:
            if harm is not None:
                if harm.ident is None:
                    harm.start()
                harm.join()
        request = _request(self._texts[text], text)
        request.request_id = f"plain_{number}"
        for side in itertools.cycle((receiver, sender)):
            with contextlib.suppress(*_BROKEN):
                answer = list(side.get().calls.Call(request, timeout=120))
                if answer[-1].HasField("finished"):
                    assert ids_of(answer) == self._right[text], number
                    self.counts["right"] += 1
                    if self.counts["right"] % 200 == 0:
                        log.warning("%s", dict(self.counts))
                    return

    def _move(
        self,
        number: int,
        text: int,
        sender: _Side,
        receiver: _Side,
        chance: random.Random,
        harm: threading.Thread | None,
    ) -> None:
        request = _request(self._texts[text], text)
        request.request_id = f"move_{number}"
        asked = pb.TokenizeRequest(call=request)
        prompt = receiver.get().kv.Tokenize(asked, timeout=60).prompt
        end = chance.choice([len(prompt.token_ids), chance.randrange(64, len(prompt.token_ids))])
        ttl = chance.choice([0, 800, 5000])
        wanted = pb.PrepRecvRequest(prompt=prompt, end=end, seq_id=f"s{number}", ttl_ms=ttl)
        if harm is not None and chance.random() < 0.3:
            harm.start()
        lease = receiver.get().kv.PrepRecv(wanted, timeout=60)
        sent = sending(prompt, lease)
        sent.deadline_ms = chance.choice([0, 5000, 60])
        moving = sender.get().kv.RemoteSend.future(sent, timeout=60)
        if harm is not None and harm.ident is None:
            time.sleep(chance.random() * 0.05)
            harm.start()
        elif chance.random() < 0.1:
            time.sleep(chance.random() * 0.03)
            receiver.get().kv.Release(pb.ReleaseRequest(seq_id=f"s{number}"), timeout=60)
        with contextlib.suppress(*_BROKEN):
            self.counts["moved tokens"] += moving.result().moved_tokens
        if chance.random() < 0.1:
            return  # its lease ends by its time
        request.kv.seq_id = f"s{number}"
        answer = list(receiver.get().calls.Call(request, timeout=120))
        if answer[-1].HasField("finished"):
            assert ids_of(answer) == self._right[text], number
            self.counts["moved and right"] += 1

    def _harm_at(self, number: int, chance: random.Random) -> threading.Thread | None:
        """Who is killed or stopped in the middle of it."""
        if number not in self._due:
            return None
        kills = self._due.index(number) % 2 == 0
        side = chance.choice(self._sides)

        def harm() -> None:
            with self._violence:
                self.counts["kills" if kills else "stops"] += 1
                if kills:
                    side.kill()
                else:
                    side.get()
                    side.stop_a_while(chance.uniform(0.5, 3))

        return threading.Thread(target=harm)


def _told(error: Exception) -> str:
    if not isinstance(error, grpc.RpcError):
        return "closed"
    return str(error.details()).partition(":")[0][:40] or str(error.code())


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[list[_Side]]:
    made = [_Side(tmp_path / name, "--microserving") for name in ("one", "two")]
    yield made
    for side in made:
        side.close()


def _answers(log_file: Path, texts: list[str]) -> list[list[int]]:
    """Of an engine that moves nothing."""
    plain = _Side(log_file)
    right = []
    for number, text in enumerate(texts):
        right.append(ids_of(list(plain.mover.calls.Call(_request(text, number), timeout=120))))
    plain.close()
    return right


def test_no_answer_is_wrong_and_no_block_is_lost(sides: list[_Side], tmp_path: Path) -> None:
    texts = [words(20 + 7 * (number % 40)) for number in range(_TEXTS)]
    run = _Run(sides, texts, _answers(tmp_path / "plain", texts))
    began = time.monotonic()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for done in [pool.submit(run.operation, number) for number in range(_OPERATIONS)]:
            done.result()
    run.counts["seconds"] = round(time.monotonic() - began)
    free = [(side.free, side.free_blocks()) for side in sides]
    log.warning("%s; free blocks before and after: %s", dict(run.counts), free)
    assert all(before == after for before, after in free)
    assert run.counts["right"] == _OPERATIONS
    assert run.counts["moved and right"] > _OPERATIONS // 2
    assert run.counts["kills"] == run.counts["stops"] == _KILLS
