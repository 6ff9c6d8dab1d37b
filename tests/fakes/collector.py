"""A collector of traces: OTLP over HTTP, read by OpenTelemetry's own messages.

It runs on threads of its own. It answers what it is told to, so that it can refuse, ask for
patience, throw spans away, or say nothing.
"""

from __future__ import annotations

import gzip
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

TYPE = "application/x-protobuf"


@dataclass(frozen=True, slots=True)
class Answer:
    """To one POST."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    rejected: int = 0  # spans that it says it has thrown away


@dataclass(frozen=True, slots=True)
class Told:
    """A span with what was said of the process that it is of."""

    resource: Mapping[str, object]
    span: Span

    @property
    def name(self) -> str:
        """The span's."""
        return self.span.name

    @property
    def attributes(self) -> dict[str, object]:
        """The span's."""
        return _values(self.span.attributes)

    @property
    def events(self) -> dict[str, dict[str, object]]:
        """The span's, by name; of namesakes the last."""
        return {event.name: _values(event.attributes) for event in self.span.events}


class FakeCollector:
    """Takes spans from `with` on, at `url`; `tls`: over HTTPS."""

    def __init__(self, *answers: Answer, tls: ssl.SSLContext | None = None) -> None:
        """`answers`: to the first requests; all is well with those that follow."""
        self.requests: list[tuple[str, dict[str, str]]] = []  # path, headers in small letters
        self.told: list[Told] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self._answers = list(answers)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.may_answer.set()
        self._server.shutdown()
        self._server.server_close()

    def named(self, name: str) -> list[Told]:
        """The spans of that name, in the order in which they came."""
        return [told for told in self.told if told.name == name]

    def take(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """One POST."""
        self.requests.append((path, headers))
        self.may_answer.wait()
        answer = self._answers.pop(0) if self._answers else Answer()
        if answer.status == 200:
            packed = headers.get("content-encoding") == "gzip"
            self._read(gzip.decompress(body) if packed else body)
        return answer

    def _read(self, body: bytes) -> None:
        for each in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = _values(each.resource.attributes)
            self.told += [Told(resource, s) for scope in each.scope_spans for s in scope.spans]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                answer = collector.take(self.path, headers, body)
                told = ExportTraceServiceResponse()
                if answer.rejected:
                    told.partial_success.rejected_spans = answer.rejected
                self.send_response(answer.status)
                for name, value in {"content-type": TYPE, **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(told.ByteSize()))
                self.end_headers()
                self.wfile.write(told.SerializeToString())

            def log_message(self, format: str, *args: object) -> None:
                """Says nothing."""

        return Handler


def _values(attributes: object) -> dict[str, object]:
    pairs: list[KeyValue] = list(attributes)  # type: ignore[call-overload]
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind) if kind else None
