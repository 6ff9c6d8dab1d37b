"""Starts of a replica, warm and cold by turns: `python replica/benchmarks/warm_start.py`.

A zygote that has imported vLLM, and one member at a time that is claimed to be penstock-mini; in
turns with replicas that are started as programs. Prints one JSON object: medians in milliseconds
from the claim, or the start of the program, to the first answer, the parts of it by their names,
and what a member takes of memory while it waits (PSS, which counts shared pages by their share).
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc

from penstock.replica.warm_pool.channel import Channel
from penstock.v1 import inference_pb2, inference_pb2_grpc

_WORDS = ["--replica-id", "r", "--deployment", "m", "--engine", "vllm"]
_LOOK_S = 0.002


class Pool:
    """A zygote of vLLM."""

    def __init__(self) -> None:
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._zygote = Channel(here)
        words = ["-m", "penstock.replica.warm_pool", "--engine", "vllm", "--fd"]
        with there:
            self._process = subprocess.Popen(
                [sys.executable, *words, str(there.fileno())],
                pass_fds=[there.fileno()],
                stderr=subprocess.DEVNULL,
            )
        self.told = self._hear()["imported"]

    def member(self) -> tuple[int, Channel]:
        """One that waits, and its socket."""
        self._zygote.tell({"members": 1})
        heard = self._zygote.hear()
        assert heard is not None
        end = Channel(socket.socket(fileno=heard.descriptors[0]))
        end.tell({"fits": [sys.executable, "-m", "penstock.replica"]})  # it has come so far
        end.hear()
        return heard.fields["member"], end

    def await_end(self) -> None:
        """Of the one that was claimed."""
        self._hear()

    def close(self) -> None:
        """Ends the pool."""
        self._zygote.close()
        self._process.wait()

    def _hear(self) -> Any:
        heard = self._zygote.hear()
        assert heard is not None
        return heard.fields


def pss_mib(pid: int) -> float:
    """Memory of a process, shared pages by their share."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def first_answer(log: Path) -> dict[str, int]:
    """Waits until a replica is ready, and for its first answer; returns the parts of its start."""
    while '"ready": true' not in log.read_text():
        time.sleep(_LOOK_S)
    records = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    address = next(record["address"] for record in records if record.get("ready"))
    body = {"model": "m", "prompt": "Hello", "max_tokens": 1}
    request = inference_pb2.CallRequest(
        request_id="r", method="POST", path="/v1/completions", model="m"
    )
    request.body = json.dumps(body).encode()
    with grpc.insecure_channel(address) as channel:
        stub = inference_pb2_grpc.InferenceStub(channel)  # type: ignore[no-untyped-call]
        assert list(stub.Call(request))[-1].HasField("finished")
    stages: dict[str, int] = next(r["stages_ms"] for r in records if "stages_ms" in r)
    return stages


def warm(pool: Pool, argv: Sequence[str], log: Path) -> dict[str, float]:
    """One claim."""
    pid, member = pool.member()
    waiting = pss_mib(pid)
    with log.open("wb") as file:
        began = time.monotonic()
        order = {"argv": argv, "env": dict(os.environ), "claimed_at_ms": int(began * 1000)}
        member.tell({"become": order}, [file.fileno()])
    stages = first_answer(log)
    took = (time.monotonic() - began) * 1000
    os.kill(pid, 15)
    pool.await_end()
    member.close()
    return {"first_answer": took, **stages, "waiting_pss_mib": waiting}


def cold(argv: Sequence[str], log: Path) -> dict[str, float]:
    """One program."""
    with log.open("wb") as file:
        began = time.monotonic()
        replica = subprocess.Popen(argv, stdout=file, stderr=file)
    stages = first_answer(log)
    took = (time.monotonic() - began) * 1000
    replica.terminate()
    replica.wait()
    return {"first_answer": took, **stages}


def medians(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    """Of each figure."""
    return {name: round(statistics.median(run[name] for run in runs)) for name in runs[0]}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="penstock-mini")
    parser.add_argument("--engine-arg", action="append", default=[])
    parser.add_argument("--rounds", type=int, default=10)
    told = parser.parse_args()
    argv = [sys.executable, "-m", "penstock.replica", *_WORDS, "--model", told.model]
    argv += [word for setting in told.engine_arg for word in ("--engine-arg", setting)]
    pool = Pool()
    warms, colds = [], []
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        warm(pool, argv, log)  # files come into the page cache
        for _ in range(told.rounds):
            warms.append(warm(pool, argv, log))
            colds.append(cold(argv, log))
    pool.close()
    found = {"zygote_import": pool.told["ms"], "warm": medians(warms), "cold": medians(colds)}
    json.dump(found, sys.stdout, indent=2)


if __name__ == "__main__":
    main()
