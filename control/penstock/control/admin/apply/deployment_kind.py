"""Documents of kind deployment: by the same steps as a single call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

from penstock.control.admin.apply.documents import SHAPES, validated
from penstock.control.admin.apply.named_kind import CACHED, Applier, NamedKind
from penstock.control.admin.rollout.deployments_api import check_code
from penstock.control.admin.rollout.models import ENGINES_OWN, SpecModel
from penstock.control.declared.fields import leaves
from penstock.control.managers.rollout.specs import check_beside, with_spec
from penstock.control.state.applied import Fields, flattened
from penstock.control.state.applying import Standing
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import DeploymentName, DeploymentSpec
from penstock.control.state.rollout.engines import check_of_people
from penstock.control.state.rollout.handing_over import asked_at_once
from penstock.control.state.rollout.lease import Owner
from penstock.control.state.rollout.revision import failure_of


class Deployments(NamedKind):
    """Documents of kind deployment."""

    def __init__(self, by: Applier) -> None:
        super().__init__(by)
        self._ending: set[str] = set()  # whose fallbacks lead nowhere back, as far as was looked

    @property
    def defaults(self) -> Fields:
        return _default_spec()

    def names(self, view: ClusterView) -> Iterable[str]:
        return [n for n, each in view.deployments.items() if each.owner is Owner.PEOPLE]

    def standing(self, view: ClusterView, name: str) -> Standing | None:
        known = view.deployments.get(DeploymentName(name))
        return Standing(known.uid, _spec_fields(known.spec)) if known else None

    def fields(self, view: ClusterView, name: str) -> Fields:
        """Those that a document of it says: with the text of its program, not its digest."""
        found = super().fields(view, name)
        program = found.get("program") or {}
        if text := view.programs.get(program.get("digest", "")):
            written = {k: v for k, v in program.items() if k != "digest"}
            return {**found, "program": {"file": text, **written}}
        return found

    def intended(self, view: ClusterView, name: str) -> Fields:
        return _spec_fields(view.deployment(name).intended)

    def set_by(self, view: ClusterView, name: str, field_name: str) -> str:
        return view.deployment(name).set_by(field_name)

    def beside(self, standing: Fields, said: Fields) -> Fields:
        if said.get("engine", standing["engine"]) == standing["engine"]:
            return standing
        return {k: v for k, v in standing.items() if k.partition(".")[0] not in ENGINES_OWN}

    def put(self, view: ClusterView, name: str, fields: Fields) -> ClusterView:
        known = view.deployments.get(DeploymentName(name))
        check_of_people(known)
        spec = validated(SpecModel, fields, SHAPES["deployment"].groups).to_spec(name)
        if not known or known.spec != spec:
            check_code(self._by.write, known, spec)
            view = with_spec(view, spec, self._by.now, self._by.write.origin)
        return asked_at_once(view, name) if self._by.write.hand_over else view

    def check(self, view: ClusterView, name: str) -> None:
        check_beside(view, view.deployment(name).spec, self._ending)
        self._ending.add(name)

    def only_by_force(self, old: ClusterView, new: ClusterView, name: str) -> str:
        before, after = old.deployment(name), new.deployment(name)
        if before.template_digest == after.template_digest:
            return ""
        bad = failure_of(before.revisions, after.template_digest)
        if bad is None:
            return ""
        return f"revision {bad.number} of this template failed: {bad.cause}; change it, or force it"

    def delete(self, view: ClusterView, name: str) -> ClusterView | None:
        return view.without_deployment(DeploymentName(name))


@lru_cache(CACHED)
def _spec_fields(spec: DeploymentSpec) -> Fields:
    shown, order = SpecModel.of(spec).model_dump(mode="json"), _order()
    if program := shown["program"]:
        shown["program"] = {key: value for key, value in program.items() if value}
    return flattened({name: shown[name] for name in order}, SHAPES["deployment"].groups)


@cache
def _order() -> Sequence[str]:
    """What a spec's fields are called, what replicas are made of first."""
    names = (leaf.name.partition(".")[0] for leaf in leaves(DeploymentSpec))
    return [name for name in dict.fromkeys(names) if name in SpecModel.model_fields]


@cache
def _default_spec() -> Fields:
    fields = _spec_fields(SpecModel.model_validate({"model": "any"}).to_spec("any"))
    return {name: value for name, value in fields.items() if name != "model"}
