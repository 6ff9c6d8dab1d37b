"""How long a fleet takes that one file says: applied, applied again, and compared.

A real head with a store on disk, and the real `penstock` command beside it, its start included. The
deployments have no replicas. Run it as `PYTHONPATH=control .venv/bin/python -m benchmarks.apply`;
`--help` lists the sizes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median

from benchmarks.scale import HEAD, announced, asking
from penstock.control import spec_files

PING = 0.1  # seconds between two looks at whether the head answers others meanwhile


def main() -> None:
    """Measures, and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deployments", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3, help="of which the middle one counts")
    args = parser.parse_args()
    found: dict[str, list[float]] = {}
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory() as directory:
            for name, seconds in asyncio.run(measured(Path(directory), args.deployments)).items():
                found.setdefault(name, []).append(seconds)
    seconds_of = {name: round(median(each), 2) for name, each in found.items()}
    sys.stdout.write(json.dumps({"deployments": args.deployments, **seconds_of}, indent=2) + "\n")


async def measured(data_dir: Path, deployments: int) -> dict[str, float]:
    """Seconds of each command, and the longest that another request waited meanwhile."""
    file = data_dir / "penstock.yaml"
    file.write_text(spec_files.written(document(number, 20) for number in range(deployments)))
    changed = data_dir / "changed.yaml"
    changed.write_text(spec_files.written(document(number, 30) for number in range(deployments)))
    async with AsyncExitStack() as stack:
        head = await asyncio.create_subprocess_exec(sys.executable, "-c", HEAD, str(data_dir))
        stack.push_async_callback(head.wait)
        stack.callback(head.terminate)
        client = await stack.enter_async_context(
            asking((await announced(data_dir))["admin"], data_dir)
        )
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        waits: list[float] = []

        async def look() -> None:
            while True:
                began = time.monotonic()
                (await client.get("/version")).raise_for_status()
                waits.append(time.monotonic() - began)
                await asyncio.sleep(PING)

        looking = tasks.create_task(look())
        found = {
            "seconds_of_apply": await timed(data_dir, "apply", file, 0),
            "seconds_of_the_second_apply": await timed(data_dir, "apply", file, 0),
            "seconds_of_diff": await timed(data_dir, "diff", file, 0),
            "seconds_of_diff_where_each_differs": await timed(data_dir, "diff", changed, 1),
            "seconds_of_apply_where_each_differs": await timed(data_dir, "apply", changed, 0),
            "longest_wait_of_another_request": max(waits),
        }
        looking.cancel()
    return found


def document(number: int, max_queued: int) -> dict[str, object]:
    """A deployment with what most say."""
    return {
        "penstock": "v1",
        "kind": "deployment",
        "name": f"model-{number}",
        "engine": "simulated",
        "model": f"m{number}",
        "replicas": 0,
        "engine_args": {"tokens_per_second": 50, "ttft_ms": 20},
        "labels": {"team": f"team-{number % 10}"},
        "max_queued": max_queued,
        "degrade": [f"fallback:model-{number - 1}"] if number else ["reject"],
    }


async def timed(data_dir: Path, verb: str, file: Path, code: int) -> float:
    """Seconds of one command, which ends with this exit code."""
    words = (verb, "-f", str(file), "--data-dir", str(data_dir))
    began = time.monotonic()
    command = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "penstock.control.main", *words),
        stdout=asyncio.subprocess.DEVNULL,
    )
    if await command.wait() != code:
        raise SystemExit(f"penstock {verb} ended with {command.returncode}")
    return time.monotonic() - began


if __name__ == "__main__":
    main()
