"""What is kept of prompts and answers: written down, redacted where that is asked for, and no more
of it than there is time for. Pure, but for the clock that it is given.

Nothing goes on from here that redaction has not seen, unless `full` was asked for.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.control.comparer.answers import answer_of, session_of
from penstock.control.state.shadow.spec import ENDPOINTS, Record
from penstock.evals.comparison.pair import Pair
from penstock.evals.comparison.recorded_pair import as_dict
from penstock.evals.comparison.recording import Answered, BadRecording, Recorded, request_line
from penstock.evals.comparison.redaction import Rules, redact, rules
from penstock.v1 import shadow_pb2

LONGEST: Final = 1 << 20
"""Characters of a request, or of a pair's texts: more takes too long to look through, a second or
more for each million."""
SECONDS: Final = 2.0
"""That the pairs of one batch may take: whoever asks how shadows stand waits for it."""
_MILLI: Final = 1000
_ID: Final = re.compile(r"[A-Za-z0-9._:/-]{1,128}")
_MOST_STATUS: Final = 599


class NotKept(Exception):
    """A pair whose texts are not kept; says why, in a word."""


@dataclass(slots=True)
class Recorder:
    """Writes down the pairs of one batch after the other."""

    now: Callable[[], float]
    held: Rules = field(default_factory=rules)
    _until: float = 0.0

    def begin(self) -> None:
        """Another batch."""
        self._until = self.now() + SECONDS

    def pair(self, message: shadow_pb2.ShadowPair, pair: Pair, how: Record) -> bytes:
        """A pair's texts. Raises `NotKept`."""
        told = as_dict(self._body(message), pair)
        if len(json.dumps(told, ensure_ascii=False)) > LONGEST:
            raise NotKept("too large")
        return json.dumps(self._redacted(told, how)).encode()

    def request(self, message: shadow_pb2.ShadowPair, began_ms: int, how: Record) -> bytes:
        """A request as a line of a recording. Raises `NotKept`."""
        body = self._redacted(self._body(message), how)
        recorded = Recorded(
            id=self._id(message, how),
            at=(message.at_ms - began_ms) / _MILLI,
            path=message.path,
            body=body,
            session=session_of(message),
            answered=_answered(message),
        )
        try:
            return request_line(recorded)
        except BadRecording as error:
            raise NotKept("unreadable") from error

    def _id(self, message: shadow_pb2.ShadowPair, how: Record) -> str:
        """Clients may name their requests as they like: what may not be kept, or would not fit, is
        called after all that was said."""
        told = message.request_id
        if _ID.fullmatch(told) and self._redacted(told, how) == told:
            return told
        return hashlib.sha256(message.SerializeToString()).hexdigest()[:32]

    def _body(self, message: shadow_pb2.ShadowPair) -> dict[str, Any]:
        if self.now() > self._until:
            raise NotKept("no time")
        if len(message.body) > LONGEST:
            raise NotKept("too large")
        try:
            body = json.loads(message.body)
        except (ValueError, RecursionError) as error:
            raise NotKept("unreadable") from error
        if not isinstance(body, dict):
            raise NotKept("unreadable")
        return body

    def _redacted(self, told: Any, how: Record) -> Any:
        return told if how is Record.FULL else redact(told, self.held, self.now).body


def _answered(message: shadow_pb2.ShadowPair) -> Answered | None:
    """None: its client left, so nobody knows what it would have been."""
    told, usage = message.primary, message.primary.usage
    if "client_left" in message.marks or not 0 < told.status <= _MOST_STATUS:
        return None
    streamed = told.content_type.startswith("text/event-stream")
    return Answered(
        status=told.status,
        finish_reason=_finish_reason(message),
        prompt_tokens=usage.prompt_tokens if told.HasField("usage") else None,
        completion_tokens=usage.completion_tokens if told.HasField("usage") else None,
        ttft_ms=told.ttft_us / _MILLI if streamed and told.ttft_us else None,
        total_ms=told.total_us / _MILLI if told.total_us else None,
    )


def _finish_reason(message: shadow_pb2.ShadowPair) -> str:
    if message.path not in ENDPOINTS or message.primary.cut:
        return ""
    choices = answer_of(message.primary).choices
    return choices[0].finish_reason if choices else ""
