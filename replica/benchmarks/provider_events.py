"""CPU of a replica for each event, by engine: `python replica/benchmarks/provider_events.py`.

A replica process of each engine answers the same number of streams, an event each 20 ms in all of
them. The simulated engine makes its events itself; openai and bedrock get them from a local server
in another process, that speaks their provider's wire. Prints one JSON object: microseconds of the
replica's CPU, user and system, for each event that its client read.
"""

from __future__ import annotations

import argparse
import asyncio
import binascii
import json
import multiprocessing
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

import grpc
import psutil

from penstock.v1 import inference_pb2

_PACE_S = 0.02
_CHUNK = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "delta": {"content": " word"}, "finish_reason": None}],
}


def openai_events(count: int) -> Iterator[bytes]:
    """An answer of so many words as an OpenAI-compatible provider streams it."""
    for _ in range(count):
        yield b"data: " + json.dumps(_CHUNK).encode() + b"\n\n"
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    yield b"data: " + json.dumps({**_CHUNK, "choices": [last]}).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def bedrock_events(count: int) -> Iterator[bytes]:
    """The same as Bedrock streams it."""
    yield frame("messageStart", {"role": "assistant"})
    for _ in range(count):
        yield frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": " word"}})
    yield frame("messageStop", {"stopReason": "end_turn"})


def frame(kind: str, payload: dict[str, object]) -> bytes:
    """One message of AWS's event stream."""
    fields = {":event-type": kind, ":message-type": "event", ":content-type": "application/json"}
    headers = b"".join(
        bytes([len(name)])
        + name.encode()
        + b"\x07"
        + struct.pack("!H", len(value))
        + value.encode()
        for name, value in fields.items()
    )
    body = json.dumps(payload).encode()
    prelude = struct.pack("!II", len(headers) + len(body) + 16, len(headers))
    message = prelude + struct.pack("!I", binascii.crc32(prelude)) + headers + body
    return message + struct.pack("!I", binascii.crc32(message))


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: int) -> None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    except asyncio.IncompleteReadError:
        return writer.close()  # somebody looked whether there is a server
    length = head.split("content-length:")[1].split("\r\n")[0]
    await reader.readexactly(int(length))
    bedrock = "converse-stream" in head
    kind = "application/vnd.amazon.eventstream" if bedrock else "text/event-stream"
    writer.write(
        f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    )
    due = asyncio.get_running_loop().time()
    for event in (bedrock_events if bedrock else openai_events)(count):
        writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
        due += _PACE_S
        await asyncio.sleep(due - asyncio.get_running_loop().time())
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    writer.close()


def serve(count: int, told: Connection) -> None:
    """The provider's process; tells its port."""

    async def run() -> None:
        server = await asyncio.start_server(
            lambda reader, writer: _answer(reader, writer, count), "127.0.0.1", 0, backlog=512
        )
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


@contextmanager
def replica(engine: str, *settings: str) -> Iterator[tuple[psutil.Process, str]]:
    """A ready replica: its process and its address."""
    words = [word for setting in settings for word in ("--engine-arg", setting)]
    named = ("--replica-id", "r", "--deployment", "d", "--engine", engine, "--model", "m")
    command = [sys.executable, "-m", "penstock.replica", *named, *words, "--log-level", "error"]
    # Bedrock's requests are signed; nobody looks at this signature.
    keys = ("AWS_ACCESS_KEY_ID=none", "AWS_SECRET_ACCESS_KEY=none")
    with subprocess.Popen(["env", *keys, *command], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            yield psutil.Process(process.pid), json.loads(process.stdout.readline())["address"]
        finally:
            process.terminate()


def measure(process: psutil.Process, address: str, streams: int, events: int) -> float:
    """Microseconds of the replica's CPU for each event that came."""
    body = json.dumps(
        {"messages": [{"role": "user", "content": "x"}], "stream": True, "max_tokens": events}
    ).encode()
    request = inference_pb2.CallRequest(path="/v1/chat/completions", method="POST", body=body)
    starts = [inference_pb2.Start(call_id=i + 1, request=request) for i in range(streams)]
    message = inference_pb2.ClientFrame(starts=starts).SerializeToString()
    told = 0
    with grpc.insecure_channel(address) as channel:
        session = channel.stream_stream("/penstock.v1.Inference/Session", None, None)
        before = process.cpu_times()
        for answer in session(iter([message])):
            for event in inference_pb2.ServerFrame.FromString(answer).events:
                told += event.chunk.events
                if event.HasField("failed"):
                    raise SystemExit(event.failed.error.message)
        after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / told * 1e6


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="CPU of a replica for each event, by engine.")
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--events", type=int, default=250)
    args = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    provider = context.Process(target=serve, args=(args.events, theirs), daemon=True)
    provider.start()
    url = f"http://127.0.0.1:{ours.recv()}"
    engines = {
        "simulated": ("simulated", f"tokens_per_second={1 / _PACE_S:g}"),
        "openai": ("openai", f"base_url={url}/v1"),
        "bedrock": ("bedrock", f"endpoint_url={url}", "region=eu-west-1"),
    }
    told: dict[str, float] = {"streams": args.streams, "events_each": args.events}
    for name, (engine, *settings) in engines.items():
        with replica(engine, *settings) as (process, address):
            measure(process, address, args.streams, args.events)
            told[f"{name}_us"] = round(measure(process, address, args.streams, args.events), 1)
    provider.terminate()
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
