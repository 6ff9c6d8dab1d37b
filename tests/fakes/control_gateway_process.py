"""A stand-in for the gateway binary: takes its flags, answers /livez, exits as it does."""

from __future__ import annotations

import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import NoReturn


class Lives(BaseHTTPRequestHandler):
    """200 for everything."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def _exit(*_: object) -> NoReturn:
    sys.exit(0)


def main() -> None:
    """Runs until SIGTERM."""
    words = zip(sys.argv[1:-1], sys.argv[2:], strict=True)
    flags = {word: value for word, value in words if word.startswith("--")}
    signal.signal(signal.SIGTERM, _exit)
    try:
        clients, status = [_server(flags[name]) for name in ("--listen", "--metrics")]
    except OSError:
        sys.stderr.write(f"penstock-gateway: error: {flags['--listen']} is taken\n")
        sys.exit(3)
    threading.Thread(target=clients.serve_forever, daemon=True).start()
    status.serve_forever()


def _server(address: str) -> HTTPServer:
    host, port = address.rsplit(":", 1)
    return HTTPServer((host, int(port)), Lives)


if __name__ == "__main__":
    main()
