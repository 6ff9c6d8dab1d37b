"""nginx with one worker in front of an event source: what the gateway is compared with."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil

from penstock.evals.bench_plan import NGINX
from penstock.evals.native import Source, Target
from penstock.evals.processes import Child, free_ports, running
from penstock.evals.scoring import BEHIND, FRONT

CONFIG = """\
daemon off; worker_processes 1; worker_rlimit_nofile 20000;
pid nginx.pid; error_log stderr error;
events {{ worker_connections 16384; }}
http {{
  access_log off; keepalive_requests 1000000; client_body_buffer_size 1m;
  client_body_temp_path temp; proxy_temp_path temp; fastcgi_temp_path temp;
  uwsgi_temp_path temp; scgi_temp_path temp;
  upstream source {{ server 127.0.0.1:{upstream}; keepalive 2048; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://source; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; tcp_nodelay on;
    }}
  }}
}}
"""


def config(port: int, upstream: int) -> str:
    """nginx.conf: answers passed on as they come, connections to both sides kept."""
    return CONFIG.format(port=port, upstream=upstream)


@contextlib.contextmanager
def nginx(program: str, source: Source, folder: Path) -> Iterator[Target]:
    """nginx in front of a source while the block lasts."""
    (port,) = free_ports(1)
    (folder / "nginx.conf").write_text(config(port, source.port))
    command = [program, "-p", str(folder), "-c", "nginx.conf", "-e", "stderr"]
    with running("nginx", command, folder, stop=signal.SIGTERM) as child:
        child.wait_for(lambda: _listens(port), within=10, what=f"a listener on port {port}")
        worker = child.wait_for(lambda: _worker(child), within=10, what="its worker process")
        yield Target(NGINX, port, {FRONT: worker, BEHIND: source.pid})


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _worker(child: Child) -> int | None:
    workers = psutil.Process(child.process.pid).children()
    return int(workers[0].pid) if workers else None
