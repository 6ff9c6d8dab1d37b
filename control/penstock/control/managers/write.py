"""How a change is asked for, whatever it changes: by whom, why, on what condition, or only tried.

An ETag names one state of what an operator can change, and no state of a namesake.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from penstock.adapters.alias import Alias
from penstock.adapters.promotion import PromotionPolicy
from penstock.adapters.version import AdapterVersion
from penstock.control.errors import Code, InvalidInput, PenstockError
from penstock.control.managers.cluster_store import ClusterStore, Step
from penstock.control.state.adapters.registry import StoredEvidence
from penstock.control.state.canary.canary import Canary
from penstock.control.state.canary.ending import aborted
from penstock.control.state.canary.owning import owned
from penstock.control.state.cluster import ClusterView, Gateway
from penstock.control.state.fleet.replica import Node
from penstock.control.state.recording.recordings import Recording
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.rollout.kept_evidence import DeploymentPolicy, TemplateEvidence
from penstock.control.state.rollout.revision import Origin
from penstock.control.state.routing.suspects import Suspect
from penstock.control.state.shadow.shadows import Shadow
from penstock.control.state.tenancy.tenants import Access, ApiKey, Tenant
from penstock.control.state.tenancy.tokens import Role, Token
from penstock.control.store.adapters.documents import from_alias, from_policy, from_version
from penstock.control.store.documents import POLICIES, RECORDINGS, SHADOWS, from_canary
from penstock.control.store.store import Author, Change, Document

_DIGITS: Final = 32
_ANY: Final = "*"
# Of what has no generation: all that somebody who changes it goes by.
_SAYS: Final[Mapping[type, Callable[[Any], Document]]] = {
    Access: asdict,
    AdapterVersion: from_version,
    Alias: from_alias,
    ApiKey: lambda key: {"id": key.id},
    Canary: from_canary,
    Gateway: lambda gateway: {"id": gateway.id, "pid": gateway.pid},
    Node: lambda it: {"id": it.id, "draining": it.draining, "hand_over": it.hand_over},
    PromotionPolicy: from_policy,
    Recording: RECORDINGS.document,
    DeploymentPolicy: POLICIES.document,
    Shadow: SHADOWS.document,
    StoredEvidence: lambda told: {"id": told.id},
    Suspect: lambda it: {"it": it.fingerprint.hex(), "deaths": len(it.deaths), "to": it.until_ms},
    TemplateEvidence: lambda told: {"id": told.id},
    Token: lambda token: {"id": token.id, "revoked_at": token.revoked_at},
}


@dataclass(frozen=True, slots=True)
class Write:
    """What every change is asked for with. Where it is a dry run everything is checked, and nothing
    changed."""

    who: str
    role: Role = Role.OPERATOR
    reason: str = ""
    dry_run: bool = False
    if_match: str | None = None  # as the headers say it
    if_none_match: str | None = None
    together: Sequence[Change] = ()  # documents that are stored with the change, or not at all
    abort_canary: bool = False  # those that have what it changes; else it is refused
    hand_over: bool = False  # replicas that leave for it hand their streams over at once

    @property
    def origin(self) -> Origin:
        """What a revision says of it."""
        return Origin(self.who, self.reason)

    def author(self, what: str) -> Author:
        """What the audit trail says of it."""
        what += ", streams handed over at once" if self.hand_over else ""
        return Author(self.who, f"{what}: {self.reason}" if self.reason else what)

    def check(self, known: object | None, what: str) -> None:
        """That it is as the caller read it. Raises `revision-mismatch`, and `InvalidInput` for a
        condition that can never hold."""
        found = tag_of(known) if known is not None else ""
        tags = (self.if_match or "").split(",")
        if self.if_match is not None and not any(_names(each, known, found) for each in tags):
            at = f"at {found}" if found else "not there"
            others = " or ".join(map(_bare, tags))
            raise PenstockError(
                f"{what} is {at}, not {others}: read it again", Code.REVISION_MISMATCH
            )
        if found and _bare(self.if_none_match or "") in (_ANY, _bare(found)):
            raise PenstockError(
                f"{what} exists, at {found}: leave If-None-Match out to change it",
                Code.REVISION_MISMATCH,
            )

    async def apply(
        self, cluster: ClusterStore, step: Step, what: str, *, canary: str = ""
    ) -> ClusterView:
        """The view with the change, or as it would be. Raises `canary-owns`, and as
        `ClusterStore.apply`. `canary`: that itself is moved, and may move what it has."""
        step = self._beside_canaries(cluster, step, canary)
        if self.dry_run:
            return cluster.tried(step)
        return await cluster.apply(step, self.author(what), self.together)

    async def apply_slow(self, cluster: ClusterStore, step: Step, what: str) -> ClusterView:
        """As `apply`, of a step that computes for long."""
        step = self._beside_canaries(cluster, step)
        if self.dry_run:
            return await cluster.tried_slow(step)
        return await cluster.apply_slow(step, self.author(what), self.together)

    def _beside_canaries(self, cluster: ClusterStore, step: Step, canary: str = "") -> Step:
        """The step where no canary that goes on has what it changes, or with those aborted by it:
        what the caller has read is what is changed."""

        def freed(view: ClusterView) -> ClusterView:
            new = step(view)
            taken = owned(view, new, canary)
            if not taken:
                return new
            if not self.abort_canary:
                raise PenstockError("; ".join(map(str, taken)), Code.CANARY_OWNS)
            for each in taken:
                if new.canaries.goes_on(each.canary):  # else the change has ended it
                    why = f"{self.who} changed {each.name}"
                    new = aborted(new, each.canary.spec.name, why, cluster.now())
            return new

        return freed

    async def store(self, cluster: ClusterStore, changes: Sequence[Change], what: str) -> None:
        """Stores documents that are not part of the view, or nothing. Raises as
        `ClusterStore.write`."""
        if self.dry_run:
            cluster.tried(lambda view: view)
        else:
            await cluster.write([*changes, *self.together], self.author(what))


def tag_of(known: object) -> str:
    """The ETag of what can be changed, as it is now."""
    if isinstance(known, Deployment | Tenant):
        return f'"{known.generation}-{known.uid}"'
    return digest_tag(_SAYS[type(known)](known))


def digest_tag(said: object) -> str:
    """An ETag of all that is said."""
    text = json.dumps(said, sort_keys=True, default=str)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}"'


def _names(if_match: str, known: object | None, found: str) -> bool:
    wanted = _bare(if_match)
    if wanted in (_ANY, _bare(found)) or not found:
        return bool(found)
    if not isinstance(known, Deployment | Tenant):
        return False
    generation, _, uid = wanted.partition("-")
    if not (generation.isascii() and generation.isdigit()):
        raise InvalidInput(
            f"If-Match is {if_match!r}: give the ETag that you read, or the generation, such as 3"
        )
    return generation.lstrip("0") == str(known.generation) and uid in ("", known.uid)


def _bare(tag: str) -> str:
    return tag.strip().removeprefix("W/").strip('"')
