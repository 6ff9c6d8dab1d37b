"""What happened to canaries, as events with the figures that each step was decided from. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from penstock.control.state.canary.canary import Canary, CanaryState, ended
from penstock.control.state.events import Event, EventKind, Reason

Told = tuple[Reason, str]

_FIGURES = re.compile(r"\d[\d,.]*")
_GUARDS = ("errors:", "finish:", "ttft_", "between_tokens_", "total_")
_ENDS = {
    CanaryState.PROMOTED: (Reason.CANARY_PROMOTED, "is promoted"),
    CanaryState.ROLLED_BACK: (Reason.CANARY_ROLLED_BACK, "is rolled back"),
    CanaryState.ABORTED: (Reason.CANARY_ABORTED, "is aborted"),
}


def of_canary(was: Canary | None, now: Canary, at: datetime) -> Iterator[Event]:
    """One that came or went on. Another run of the same name is another one."""
    name = now.spec.name
    lives = [(was, now)]
    if was and was.uid != now.uid:
        over = ended(was, CanaryState.ABORTED, f"{now.candidate or 'another'} is judged now", at)
        lives = [(was, over), (None, now)] if was.is_active else [(None, now)]
    for reason, text in (told for each in lives for told in _life(*each)):
        words = f"canary {name} {text}"
        yield Event(EventKind.CANARY, name, reason, words, at, now.target.deployment)


def _life(was: Canary | None, now: Canary) -> Iterator[Told]:
    if now.is_active and not (was and was.is_active):
        by, why = f", by {now.by}" if now.by else "", f": {now.reason}" if now.reason else ""
        arms = f"{now.candidate} beside {now.stable}"
        yield Reason.CANARY_STARTED, f"of {now.target} starts: {arms}{by}{why}"
    if was and was.is_active:
        yield from _steps(was, now)
    if was is None or was.state is not now.state:
        yield from _state(was, now)
    elif now.state is CanaryState.HELD and was.why and _kind(was.why) != _kind(now.why):
        yield Reason.CANARY_HELD, _held(now)


def _steps(was: Canary, now: Canary) -> Iterator[Told]:
    for passed in now.passed[len(was.passed) :]:
        figures = "; ".join(said for _, said in passed.figures)
        words = f"passed {_share(passed.permille)} of the sessions: {figures or 'nothing to judge'}"
        yield Reason.CANARY_ADVANCED, words


def _state(was: Canary | None, now: Canary) -> Iterator[Told]:
    if now.state in _ENDS:
        reason, words = _ENDS[now.state]
        yield reason, f"{words}: {now.why}" if now.why else words
    elif now.state is CanaryState.HELD:
        yield Reason.CANARY_HELD, _held(now)
    elif now.state is CanaryState.PAUSED:
        yield Reason.CANARY_PAUSED, f"is paused at {_share(now.permille)}"
    if was and was.state is CanaryState.PAUSED and now.is_active:
        yield Reason.CANARY_RESUMED, f"goes on at {_share(now.permille)}"


def _held(now: Canary) -> str:
    return f"is held at {_share(now.permille)}: {now.why}"


def _kind(why: str) -> str:
    """What is missing, whatever the figures, and whatever guards lack: that changes each second."""
    said = (_FIGURES.sub("", each) for each in why.split("; "))
    return "; ".join(each for each in said if not each.startswith(_GUARDS))


def _share(permille: int) -> str:
    return f"{permille / 10:g} %"
