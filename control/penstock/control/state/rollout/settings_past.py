"""What was changed of a deployment's settings: those fields of its spec that take no new replicas,
but for the count of these. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from penstock.control.declared.fields import Form, leaves
from penstock.control.errors import Code, NotFound, PenstockError
from penstock.control.state.rollout.revision import Origin
from penstock.control.state.rollout.template import Template

Said = Mapping[str, Any]  # a spec by the names of its fields, as `flat` has it

NOT_SETTINGS: Final = frozenset({"name", "replicas", *(leaf.name for leaf in leaves(Template))})


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """One change: the fields that differ, as they were and as they became."""

    number: int  # begins at 1, grows by one with each
    at: datetime
    by: str
    reason: str
    before: Said
    after: Said


SettingsPast = tuple[SettingsChange, ...]  # oldest first

SETTINGS_PAST: Final = Form(
    lambda past: [asdict(each) | {"at": each.at.isoformat()} for each in past],
    lambda told: tuple(
        SettingsChange(**each | {"at": datetime.fromisoformat(each["at"])}) for each in told
    ),
)
"""How documents have them."""


def noted(
    past: SettingsPast, old: Said, new: Said, now: datetime, origin: Origin, *, keep: int
) -> SettingsPast:
    """With the change from one spec to another, where it is one of settings; the last `keep`."""
    names = [name for name in old if name not in NOT_SETTINGS and old[name] != new[name]]
    if not names:
        return past
    before, after = ({name: said[name] for name in names} for said in (old, new))
    number = past[-1].number + 1 if past else 1
    return (*past, SettingsChange(number, now, *origin, before, after))[-keep:]


def settings_at(past: Sequence[SettingsChange], number: int | None) -> Said:
    """Those settings that were others after the change of this number, as they were then; None:
    before the last one. Raises `nothing-to-undo` and `unknown-revision`."""
    if not past:
        raise PenstockError(
            "no change of settings is kept: there is nothing to go back to", Code.NOTHING_TO_UNDO
        )
    first, last = past[0].number - 1, past[-1].number
    to = last - 1 if number is None else number
    if not first <= to <= last:
        raise NotFound(
            f"no settings {to} are kept: there are {first} to {last}", Code.UNKNOWN_REVISION
        )
    then: dict[str, Any] = {}
    for each in reversed(past):
        if each.number > to:
            then |= each.before
    return then
