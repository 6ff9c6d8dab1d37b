"""A stand-in for the gateway binary: takes its flags, answers /livez, exits as it does."""

from __future__ import annotations

import signal
import sys
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
    flags = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    host, port = flags["--listen"].rsplit(":", 1)
    signal.signal(signal.SIGTERM, _exit)
    try:
        server = HTTPServer((host, int(port)), Lives)
    except OSError:
        sys.stderr.write(f"penstock-gateway: error: {flags['--listen']} is taken\n")
        sys.exit(3)
    server.serve_forever()


if __name__ == "__main__":
    main()
