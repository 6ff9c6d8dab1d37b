"""What the documents of each kind change in the view: by the same steps as a single call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, Final

from penstock.adapters.adapter import AdapterRef
from penstock.adapters.alias import Alias, Move, Target
from penstock.adapters.version import VersionState
from penstock.control.admin.adapters.alias_models import AliasSpecModel
from penstock.control.admin.apply.canary_kind import CanaryKind
from penstock.control.admin.apply.deployment_kind import Deployments
from penstock.control.admin.apply.documents import SHAPES, validated, written
from penstock.control.admin.apply.named_kind import CACHED, Applier, NamedKind
from penstock.control.admin.auth import check_role
from penstock.control.admin.shadow.models import ShadowSpecModel
from penstock.control.admin.tenancy.tenant_models import AccessModel, TenantSpecModel
from penstock.control.errors import Code, PenstockError
from penstock.control.managers.adapters.aliases import check_named as check_alias
from penstock.control.managers.adapters.aliases import moved, target_of
from penstock.control.managers.adapters.versions import with_registered
from penstock.control.managers.shadow.shadows import new_shadow
from penstock.control.managers.tenancy.tenants import new_tenant, put_tenant
from penstock.control.state.adapters.bases import family_named
from penstock.control.state.applied import Fields
from penstock.control.state.applying import Standing
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.engines import engines_of
from penstock.control.state.shadow.naming import check_named
from penstock.control.state.shadow.spec import ShadowSpec
from penstock.control.state.tenancy.tenants import TenantSpec
from penstock.control.state.tenancy.tokens import Role


class Tenants(NamedKind):
    """Documents of kind tenant; its keys are no part of it."""

    @property
    def defaults(self) -> Fields:
        return _tenant_fields(TenantSpec())

    def names(self, view: ClusterView) -> Iterable[str]:
        return view.tenancy.tenants

    def standing(self, view: ClusterView, name: str) -> Standing | None:
        known = view.tenancy.tenants.get(name)
        return Standing(known.uid, _tenant_fields(known.spec)) if known else None

    def put(self, view: ClusterView, name: str, fields: Fields) -> ClusterView:
        known = view.tenancy.tenants.get(name)
        spec = validated(TenantSpecModel, fields).to_spec()
        if known and known.spec == spec:
            return view
        new = new_tenant(name, spec, self._by.now)
        return replace(view, tenancy=put_tenant(view.tenancy, new))

    def delete(self, view: ClusterView, name: str) -> ClusterView | None:
        return replace(view, tenancy=view.tenancy.without_tenant(name))


class Adapters(NamedKind):
    """Documents of kind adapter. A version never changes, and its name is never given again: so no
    set of documents deletes one."""

    def names(self, view: ClusterView) -> Iterable[str]:
        versions = view.adapters.versions
        return [str(ref) for ref, it in versions.items() if it.state is not VersionState.RETIRED]

    def standing(self, view: ClusterView, name: str) -> Standing | None:
        known = view.adapters.versions.get(AdapterRef.parse(name))
        if known is None:
            return None
        said = known.manifest
        fields = {"base": str(said.family), "source": said.source, "labels": dict(said.labels)}
        return Standing(said.digest, {k: v for k, v in fields.items() if v})

    def put(self, view: ClusterView, name: str, fields: Fields) -> ClusterView:
        ref = AdapterRef.parse(name)
        standing = self.standing(view, name)
        if standing is None:
            version = self._by.fetched.get(ref)
            if version is None:
                raise PenstockError(f"{name} was deleted meanwhile: apply it again", Code.CONFLICT)
            adapters, _ = with_registered(view.adapters, version)
            return replace(view, adapters=adapters)
        for field_name, value in fields.items():
            said = str(family_named(view, value)) if field_name == "base" else value
            if said != (stands := standing.fields.get(field_name)):
                raise PenstockError(
                    f"{field_name} of {name} is {stands!r}, not {said!r}: a version never changes,"
                    " take another one",
                    Code.ADAPTER_TAKEN,
                )
        return view


class Aliases(NamedKind):
    """Documents of kind alias."""

    @property
    def defaults(self) -> Fields:
        return {"preload": None, "pinned": False}

    def names(self, view: ClusterView) -> Iterable[str]:
        engines = engines_of(view)
        return [n for n, each in view.adapters.aliases.items() if each.deployment not in engines]

    def standing(self, view: ClusterView, name: str) -> Standing | None:
        known = view.adapters.aliases.get(name)
        if known is None:
            return None
        own = {"target": _target(known.target), "preload": known.preload, "pinned": known.pinned}
        return Standing(known.moves[0].at.isoformat(), own)

    def set_by(self, view: ClusterView, name: str, field_name: str) -> str:
        return view.adapters.aliases[name].moves[-1].by if field_name == "target" else ""

    def put(self, view: ClusterView, name: str, fields: Fields) -> ClusterView:
        deployment, _, alias = name.partition(":")
        known = view.adapters.aliases.get(name)
        named = "split" if isinstance(fields.get("target"), dict) else "target"
        said = {named if key == "target" else key: value for key, value in fields.items()}
        spec = validated(AliasSpecModel, said).to_spec()
        move = Move(target_of(spec.weights), self._by.now, self._by.write.who)
        made = moved(known, deployment, alias, spec, move)
        return view if made == known else _with_alias(view, made)

    def check(self, view: ClusterView, name: str) -> None:
        check_alias(view, view.adapters.aliases[name])

    def delete(self, view: ClusterView, name: str) -> ClusterView | None:
        alias = view.adapters.aliases[name]
        return replace(view, adapters=view.adapters.without_alias(alias))


class Shadows(NamedKind):
    """Documents of kind shadow."""

    @property
    def defaults(self) -> Fields:
        return _default_shadow()

    def names(self, view: ClusterView) -> Iterable[str]:
        return [name for name, each in view.shadows.named.items() if not each.ended]

    def standing(self, view: ClusterView, name: str) -> Standing | None:
        known = view.shadows.named.get(name)
        return Standing(known.uid, _shadow_fields(known.spec)) if known else None

    def put(self, view: ClusterView, name: str, fields: Fields) -> ClusterView:
        known = view.shadows.named.get(name)
        spec = validated(ShadowSpecModel, {"name": name, **fields}).to_spec()
        if known and known.spec == spec:
            return view
        others = view.shadows.without(name) if known else view.shadows
        return replace(view, shadows=others.with_new(new_shadow(spec, self._by.now)))

    def check(self, view: ClusterView, name: str) -> None:
        check_named(view, view.shadows.shadow(name).spec)

    def only_by_force(self, old: ClusterView, new: ClusterView, name: str) -> str:
        return (
            "a shadow never changes: by force another one takes its place, and what this one has"
            " compared is forgotten"
        )

    def delete(self, view: ClusterView, name: str) -> ClusterView | None:
        return replace(view, shadows=view.shadows.without(name))


class Access(NamedKind):
    """The one document of kind access."""

    @property
    def defaults(self) -> Fields:
        return {"anonymous": "allowed"}

    def names(self, view: ClusterView) -> Iterable[str]:
        return ["access"] if view.tenancy.access.keys_required else []

    def standing(self, view: ClusterView, name: str) -> Standing | None:
        return Standing("access", AccessModel.of(view.tenancy.access).model_dump())

    def put(self, view: ClusterView, name: str, fields: Fields) -> ClusterView:
        allowed = validated(AccessModel, fields).anonymous == "allowed"
        if view.tenancy.access.keys_required is not allowed:
            return view
        check_role(self._by.write.who, self._by.write.role, Role.ADMIN)
        return replace(view, tenancy=view.tenancy.with_anonymous(allowed=allowed))


KINDS: Final[Mapping[str, type[NamedKind]]] = {
    "deployment": Deployments,
    "tenant": Tenants,
    "adapter": Adapters,
    "alias": Aliases,
    "shadow": Shadows,
    "canary": CanaryKind,
    "access": Access,
}


def kinds_of(by: Applier) -> dict[str, NamedKind]:
    """Each kind of document, in the order in which they are made."""
    return {name: KINDS[name](by) for name in SHAPES}


def documents_of(view: ClusterView, by: Applier) -> list[dict[str, Any]]:
    """The documents that say what there is: each field that is not at its default."""
    return [
        written(
            name,
            each,
            {k: v for k, v in kind.fields(view, each).items() if v != kind.defaults.get(k)},
        )
        for name, kind in kinds_of(by).items()
        for each in sorted(kind.names(view))
    ]


@lru_cache(CACHED)
def _tenant_fields(spec: TenantSpec) -> Fields:
    return TenantSpecModel.showing(spec).model_dump(mode="json")


def _shadow_fields(spec: ShadowSpec) -> Fields:
    return ShadowSpecModel.of_spec(spec).model_dump(mode="json", exclude={"name"})


@cache
def _default_shadow() -> Fields:
    has_to_be_said = {"primary": "a", "candidate": "b", "share_permille": 1}
    spec = ShadowSpecModel.model_validate({"name": "any", **has_to_be_said}).to_spec()
    fields = _shadow_fields(spec)
    return {name: value for name, value in fields.items() if name not in has_to_be_said}


def _target(target: Target) -> str | dict[str, int]:
    if len(target.shares) == 1:
        return str(target)
    return {str(ref): weight for ref, weight in target.shares}


def _with_alias(view: ClusterView, alias: Alias) -> ClusterView:
    return replace(view, adapters=view.adapters.with_alias(alias))
