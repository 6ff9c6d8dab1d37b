"""What is wanted: a deployment's spec, and what tells it and its versions from others.

The uid tells namesakes apart: it is made with the deployment and never used again. The generation
grows with each change of the spec. The template digest says what replicas are made of: equal
digests, equal replicas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NewType

from penstock.control.declared.fields import PAIRS, check, flat, inner, said, setting
from penstock.control.errors import InvalidSpec
from penstock.control.state.providers.settings import START_LIMIT_MS
from penstock.control.state.rollout.lease import Lease, Owner
from penstock.control.state.rollout.revision import (
    NOBODY,
    REVISIONS,
    Cause,
    Made,
    Origin,
    Revision,
    RevisionState,
    begun,
    failed,
    last_served,
    tried_again,
)
from penstock.control.state.rollout.settings_past import SETTINGS_PAST, SettingsPast, noted
from penstock.control.state.rollout.template import Template, check_template, template_digest
from penstock.control.state.rollout.update import OnFailure, RolloutSettings
from penstock.control.state.routing.degrading import Degrading
from penstock.control.state.routing.limits import MAX_COUNT, Limits, Sharing
from penstock.control.state.routing.slo import Objectives
from penstock.control.state.tenancy.prices import Prices, provider_prices
from penstock.control.state.tenancy.spend import Budgets

DeploymentName = NewType("DeploymentName", str)

HEAD = "penstock"  # who goes back by itself
MAX_REPLICAS = 1000

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class DeploymentSpec:
    """What an operator asks for. Raises InvalidSpec where it contradicts itself."""

    name: DeploymentName
    template: Template = field(metadata=said(inner=True))
    replicas: int = setting("", 1, ge=0, le=MAX_REPLICAS)
    limits: Limits = inner(Limits)
    sharing: Sharing = inner(Sharing)
    degrading: Degrading = inner(Degrading)
    budgets: Budgets = inner(Budgets)
    prices: Prices = inner(Prices)
    objectives: Objectives = inner(Objectives)
    labels: tuple[tuple[str, str], ...] = setting(
        "for people and programs: Penstock gives them no meaning",
        (),
        form=PAIRS,
        most=100,
        examples=({"team": "search"},),
    )
    start_limit_ms: int = setting(
        "{unit} from a replica's start to ready, after which it is started anew; "
        "0: the node agent's default, and a minute where a provider answers",
        0,
        ge=0,
        le=MAX_COUNT,
        unit="milliseconds",
    )
    rollout: RolloutSettings = inner(RolloutSettings)

    def __post_init__(self) -> None:
        check_name(self.name)
        check_template(self.template)
        check(self, InvalidSpec)
        _check_canary(self)
        _check_fallbacks(self)
        _check_roles(self)

    @property
    def all_prices(self) -> Prices:
        """By which requests are reckoned, wherever that is said."""
        if not self.template.is_managed:
            return self.prices
        return self.prices.over(provider_prices(self.template.engine_args))

    @property
    def costs_money(self) -> bool:
        """Whether its requests do, for all that is known."""
        return self.template.is_managed or self.prices != Prices()

    @property
    def usual_start_limit_ms(self) -> int:
        """`start_limit_ms`, where nothing is said that of its engine; 0: the node agent's."""
        managed = START_LIMIT_MS if self.template.is_managed else 0
        return self.start_limit_ms or managed


@dataclass(frozen=True, slots=True)
class Deployment:
    """A spec with its identity and history."""

    spec: DeploymentSpec = field(metadata=said(inner=True))
    uid: str  # hex
    generation: int  # begins at 1, grows by one with each change
    template_digest: str  # what its replicas are made of
    template_generation: int  # the generation that last changed the template
    created_at: datetime
    updated_at: datetime
    trouble: str = ""  # why the last attempt at a replica came to nothing; empty once all is well
    tries: int = 0  # such attempts in a row
    load_ms: int = 0  # milliseconds that its last replica took to get ready; 0: not known
    model_generation: int = 0  # the generation that last changed the model
    revisions: tuple[Revision, ...] = setting("", (), form=REVISIONS)  # oldest first
    restart_generation: int = 0  # replicas of an older one are outgoing, whatever their template
    settings_past: SettingsPast = setting("", (), form=SETTINGS_PAST)
    paused: bool = False  # its rollout: no replica takes another's place for another revision
    hand_over: bool = False  # whether replicas that leave hand their streams over at once
    owner: Owner = Owner.PEOPLE  # no part of the spec: nobody can ask for another one
    lease: Lease = inner(Lease, prefix="lease_")  # of an engine

    @property
    def revision(self) -> Revision:
        """What was asked for last."""
        return self.revisions[-1]

    @property
    def target(self) -> Revision:
        """What its replicas are to be made of: the last revision, or where that has failed or is
        paused on its way or judged beside it, the last before it that served."""
        current = self.revision
        stays = current.state in (RevisionState.FAILED, RevisionState.JUDGED)
        stays = stays or (self.paused and current.is_rolling_out)
        return (last_served(self.revisions) if stays else None) or current

    @property
    def judged(self) -> Revision | None:
        """Of which some replicas run beside those of its target; None: a canary judges none."""
        return self.revision if self.revision.is_judged else None

    def made_of(self, digest: str) -> Revision:
        """What a replica of this template is to be started from, which is one of the two."""
        judged = self.judged
        return judged if judged and judged.template_digest == digest else self.target

    @property
    def intended(self) -> DeploymentSpec:
        """The spec as it was asked for last: a revision that took a failed one's place by itself
        is nobody's wish."""
        undone = (r for r in self.revisions if r.number == self.revision.undoes)
        bad = next(undone, None)
        return replace(self.spec, template=bad.template) if bad else self.spec

    @property
    def running(self) -> DeploymentSpec:
        """The spec with what its replicas are to be made of now."""
        template = self.target.template
        same = template == self.spec.template
        return self.spec if same else replace(self.spec, template=template)

    @property
    def way_back(self) -> Revision | None:
        """What its replicas may become again by themselves; None: what was asked for has served,
        or nothing before it did."""
        has_served = self.revision.state is RevisionState.SERVED
        return None if has_served else last_served(self.revisions)

    def set_by(self, name: str) -> str:
        """Who had a field of the spec become what was asked for last, by its name outside; empty:
        nobody knows."""
        root, by = name.partition(".")[0], ""
        last = self.revision.undoes or self.revision.number
        asked = [each for each in self.revisions if each.number <= last]
        if root not in flat(self.spec.template):
            changes = (c.by for c in reversed(self.settings_past) if {name, root} & c.after.keys())
            return next(changes, "")
        for each in reversed(asked):
            if flat(each.template)[root] != flat(asked[-1].template)[root]:
                break
            by = each.by
        return by

    def revision_of(self, digest: str, generation: int) -> Revision | None:
        """What a replica of this template was made of, which the deployment's generation of then
        tells; None: it is not kept."""
        found = [each for each in self.revisions if each.template_digest == digest]
        then = [each for each in found if each.generation <= generation]
        return max(then or found, key=lambda each: each.number, default=None)


@dataclass(frozen=True, slots=True)
class Departed:
    """A deployment that is no more: whether replicas of it are drained, or left alone."""

    uid: str
    name: str
    collected: bool  # False: not ours to end, a take-over only stopped waiting for it
    serial: int = 0  # grows: the oldest are forgotten first


def alone(deployment: Deployment, revision: Revision | None = None) -> Deployment:
    """The deployment as if there were nothing but this revision, or the newest, to make replicas
    of: while one is judged, others are made of what it is judged against."""
    only = revision or replace(deployment.revision, state=RevisionState.ROLLING_OUT)
    return replace(deployment, revisions=(only,))


def created(
    spec: DeploymentSpec, now: datetime, *, uid: str, origin: Origin = NOBODY
) -> Deployment:
    """A deployment's first generation, under a uid that nothing else ever had."""
    digest = template_digest(spec.template)
    first = begun((), Made(spec.template, digest, 1), now, origin, keep=spec.rollout.revision_limit)
    return Deployment(spec, uid, 1, digest, 1, created_at=now, updated_at=now, revisions=first)


def changed(
    deployment: Deployment, spec: DeploymentSpec, now: datetime, origin: Origin = NOBODY
) -> Deployment:
    """The next generation; the same one where the spec says nothing new."""
    if spec == deployment.spec:
        return deployment
    old, keep = deployment.spec, spec.rollout.revision_limit
    deployment = replace(
        deployment,
        spec=spec,
        generation=deployment.generation + 1,
        updated_at=now,
        hand_over=False,
        settings_past=noted(
            deployment.settings_past, flat(old), flat(spec), now, origin, keep=keep
        ),
    )
    if spec.template == old.template:  # its digest may be an older head's, who knew other fields
        return deployment
    revised = _revised(deployment, template_digest(spec.template), now, origin)
    return replace(revised, load_ms=0)


def restarted(deployment: Deployment, now: datetime, origin: Origin) -> Deployment:
    """The next generation, whose replicas are new ones of the same template."""
    generation = deployment.generation + 1
    deployment = replace(
        deployment,
        generation=generation,
        restart_generation=generation,
        updated_at=now,
        hand_over=False,
    )
    return _revised(deployment, deployment.template_digest, now, origin)


def paused(deployment: Deployment, now: datetime) -> Deployment:
    """The next generation, whose rollout goes no further; the same one where it is paused."""
    if deployment.paused:
        return deployment
    generation = deployment.generation + 1
    return replace(deployment, paused=True, generation=generation, updated_at=now)


def resumed(deployment: Deployment, now: datetime) -> Deployment:
    """The next generation, whose rollout goes on, or is tried once more where it had failed; the
    same one where it does."""
    failed_before = deployment.revision.state is RevisionState.FAILED
    if not deployment.paused and not failed_before:
        return deployment
    return replace(
        deployment,
        paused=False,
        hand_over=False,
        revisions=tried_again(deployment.revisions),
        trouble="",
        generation=deployment.generation + 1,
        updated_at=now,
    )


def after_failure(deployment: Deployment, cause: Cause, now: datetime) -> Deployment:
    """Its revision has failed: the last that served goes on, and where its spec says so, takes its
    place as a revision of its own. The same one where none served."""
    bad, back = deployment.revision, last_served(deployment.revisions)
    if back is None:
        return deployment
    deployment = replace(
        deployment, revisions=failed(deployment.revisions, cause), trouble="", tries=0
    )
    if deployment.spec.rollout.update.on_failure is OnFailure.PAUSE:
        return deployment
    why = Origin(
        HEAD, f"back to revision {back.number}: revision {bad.number} failed: {cause.text}"
    )
    spec = replace(deployment.spec, template=back.template)
    generation = deployment.generation + 1
    deployment = replace(deployment, spec=spec, generation=generation, updated_at=now)
    if back.template_digest == bad.template_digest:  # a restart: those from before it will do
        deployment = replace(deployment, restart_generation=back.generation)
    return _revised(deployment, back.template_digest, now, why, undoes=bad.number)


def numbered(deployment: Deployment) -> Deployment:
    """One whose current revision is not known has one anew, whose number is above all that
    replicas of it were told as theirs: an older head stored it, or it cannot be read any more."""
    past = deployment.revisions
    if past and past[-1].template_digest == deployment.template_digest:
        return deployment
    first = Revision(
        max(deployment.generation, *(each.number for each in past), 0) + 1,
        deployment.template_digest,
        deployment.spec.template,
        deployment.updated_at,
        generation=deployment.template_generation,
        state=RevisionState.ROLLING_OUT if deployment.trouble else RevisionState.SERVED,
    )
    return replace(deployment, revisions=(*past, first))


def _revised(
    deployment: Deployment, digest: str, now: datetime, origin: Origin, *, undoes: int = 0
) -> Deployment:
    """With another revision, of the template in its spec: what was in the way of the last one says
    nothing of this one."""
    spec = deployment.spec
    made = Made(spec.template, digest, deployment.generation)
    same_model = deployment.revision.template.family == spec.template.family
    revisions = begun(
        deployment.revisions, made, now, origin, keep=spec.rollout.revision_limit, undoes=undoes
    )
    return replace(
        deployment,
        template_digest=digest,
        template_generation=deployment.generation,
        model_generation=deployment.model_generation if same_model else deployment.generation,
        revisions=revisions,
        trouble="",
        tries=0,
    )


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidSpec(
            f"name is {name!r}: it must be 1 to 63 of a-z, 0-9, '-' and '.', "
            "beginning and ending with a letter or digit"
        )


def _check_canary(spec: DeploymentSpec) -> None:
    for each in spec.sharing.canary:
        check_name(each.deployment)
        if each.deployment == spec.name:
            raise InvalidSpec(f"canary names {spec.name!r} itself: name another deployment")


def _check_roles(spec: DeploymentSpec) -> None:
    roles = spec.sharing.roles
    if roles.total not in (0, spec.replicas):
        raise InvalidSpec(
            f"roles are {roles}, and replicas is {spec.replicas}: the two together have to be"
            " replicas"
        )


def _check_fallbacks(spec: DeploymentSpec) -> None:
    for name in spec.degrading.fallbacks:
        check_name(name)
        if name == spec.name:
            raise InvalidSpec(f"degrade falls back to {name!r} itself: name another deployment")
