"""Stands in for `penstock serve`: the same options, lists and kind of answers, one process.

Both pids that it lists are its own. Run by command line from the tests of the benchmark.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar


def event(text: str) -> bytes:
    """One content event."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    chunk = {"object": "chat.completion.chunk", "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


TOKEN = "pst_fake"
KEY = "psk_fake"


class Handler(BaseHTTPRequestHandler):
    """Answers for the gateway and for the admin API alike."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    lists: ClassVar[dict[str, Any]] = {
        "/v1/models": {"data": [{"id": "bench"}]},
        "/admin/v1/gateways": [{"id": "gw-1", "state": "ready", "pid": os.getpid()}],
        "/admin/v1/replicas": [
            {"id": "r-0", "state": "starting", "pid": 1},
            {"id": "r-1", "state": "ready", "pid": os.getpid()},
        ],
    }

    def do_GET(self) -> None:
        if self.path == "/metrics":
            self.reply("text/plain", b"penstock_gateway_queued 0\n")
            return
        if self.path.startswith("/admin/") and self.headers["authorization"] != f"Bearer {TOKEN}":
            self.send_error(401)
            return
        self.reply("application/json", json.dumps(self.lists[self.path]).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path.startswith("/admin/"):
            self.reply("application/json", json.dumps({"id": "bench", "key": KEY}).encode())
            return
        if self.path != "/v1/chat/completions":
            self.send_error(404)
            return
        words = min(body["max_tokens"], 64)
        if body["stream"]:
            events = b"".join(event(f"word{n} ") for n in range(words))
            self.reply("text/event-stream", events + b"data: [DONE]\n\n")
        else:
            self.reply("application/json", b'{"choices": []}')

    def reply(self, content_type: str, body: bytes) -> None:
        """One whole answer."""
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: the test reads what the benchmark prints."""


class Server(ThreadingHTTPServer):
    """All of a load connect at once: whom a short queue does not hold come a second later, and the
    others keep this process busy until then."""

    request_queue_size = 256


def main() -> None:
    """Serves until a signal."""
    parser = argparse.ArgumentParser()
    told = ("engine", "engine-args", "name", "replicas", "data-dir")
    for name in (
        *told,
        "gateway",
        "admin",
        "rpc",
        "gateway-metrics",
        "head-metrics",
        "node-metrics",
    ):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    data = Path(args.data_dir)
    data.mkdir(parents=True, exist_ok=True)
    (data / "admin.token").write_text(f"{TOKEN}\n")
    for address in (args.gateway, args.admin, args.gateway_metrics):
        host, port = address.split(":")
        server = Server((host, int(port)), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
