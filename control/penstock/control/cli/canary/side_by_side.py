"""Both arms of a canary side by side, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.control.admin.canary.models import (
    ArmModel,
    CanaryStatusModel,
    FindingModel,
    TimesModel,
)
from penstock.control.cli.canary_tables import share
from penstock.control.cli.tables import Note, Part, listing, notes

GUARD_COLUMNS = ("guard", "verdict", "stable", "candidate", "evidence", "rolls back from")
STEP_COLUMNS = ("step", "share", "passed at")
MOMENT = "%Y-%m-%d %H:%M:%S"

Cell = Callable[[ArmModel], str]


def parts_of(it: CanaryStatusModel) -> list[Part]:
    """All that is known of one."""
    stable, candidate = it.arms.stable, it.arms.candidate
    names = (stable.name or "stable", candidate.name or "candidate")
    rows = [(name, cell(stable), cell(candidate)) for name, cell in _rows(it)]
    guards = [(each.guard, each.verdict, *_figures(each)) for each in it.findings]
    passed = [(f"{e.step}", share(e.permille), e.at.strftime(MOMENT)) for e in it.passed]
    return [
        Note(f"canary {it.name}", headline(it)),
        *notes(("missing", each) for each in it.missing),
        *([] if it.missing or not it.why else [Note("why", it.why)]),
        *([Note(f"shadow {it.shadow}", it.shadow_verdict)] if it.shadow else []),
        listing(f"Arms, in step {it.step}", ("counted", *names), rows),
        listing("Guards", GUARD_COLUMNS, guards),
        *([listing("Steps", STEP_COLUMNS, passed)] if passed else []),
        *notes((f"{e.step}", "; ".join(e.figures.values())) for e in it.passed),
    ]


def headline(it: CanaryStatusModel) -> str:
    """Where it stands, in a line."""
    state = "being promoted" if it.promoting else it.state.replace("_", " ")
    at = f"step {it.step} of {len(it.steps)}, {share(it.permille)} of {it.target}"
    replicas = f"{it.replicas_ready} of {it.replicas_wanted} replicas ready"
    if it.ended_at:
        return f"{state}, at step {it.step} of {len(it.steps)}"
    if not it.candidate_arm:
        return state
    return f"{state}, {at} goes to {it.candidate_arm}, {replicas}"


def _rows(it: CanaryStatusModel) -> Iterator[tuple[str, Cell]]:
    """What is counted, and how it is shown of an arm."""
    arms = (it.arms.stable, it.arms.candidate)
    yield "sessions", lambda arm: f"{arm.sessions:,}"
    yield "bad sessions", lambda arm: _of(arm.bad_sessions, arm.sessions)
    for reason in sorted({reason for arm in arms for reason in arm.errors}):
        yield f"  {reason}", _counted("errors", reason)
    yield "answered sessions", lambda arm: f"{arm.answered_sessions:,}"
    yield "bad finishes", lambda arm: _of(arm.bad_finishes, arm.answered_sessions)
    for name in ("ttft", "between_tokens", "total"):
        yield f"{name} p50, p90", _times(name)
    yield "requests", lambda arm: f"{arm.requests:,}"
    for reason in sorted({reason for arm in arms for reason in arm.finishes}):
        yield f"  {reason}", _counted("finishes", reason)
    yield "prompt tokens", lambda arm: f"{arm.prompt_tokens:,}"
    yield "completion tokens", lambda arm: f"{arm.completion_tokens:,}"
    yield "saved by the stable arm", lambda arm: f"{arm.saved:,}" if arm is arms[1] else ""
    yield "refused by both", lambda arm: f"{arm.refused:,}"


def _figures(it: FindingModel) -> tuple[str, ...]:
    shares = (_percent(it.stable), _percent(it.candidate))
    return (*shares, f"{it.evidence:.2f}", f"{it.limit:.2f}")


def _counted(field: str, reason: str) -> Cell:
    return lambda arm: f"{getattr(arm, field).get(reason, 0):,}"


def _times(field: str) -> Cell:
    def shown(arm: ArmModel) -> str:
        times: TimesModel = getattr(arm, field)
        if not times.sessions:
            return ""
        return f"{_duration(times.p50_ms)}, {_duration(times.p90_ms)}"

    return shown


def _duration(ms: float) -> str:
    return f"{ms / 1000:.2f} s" if ms >= 1000 else f"{ms:.3g} ms"


def _of(count: int, whole: int) -> str:
    return f"{count:,} ({_percent(count / whole)})" if whole else f"{count:,}"


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"
