"""Documents of kind canary: by the same steps as a single call."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, lru_cache

from penstock.control.admin.apply.documents import SHAPES, validated
from penstock.control.admin.apply.named_kind import CACHED, NamedKind
from penstock.control.admin.canary.spec_models import CanarySpecModel
from penstock.control.state.applied import Fields, flattened
from penstock.control.state.applying import Standing
from penstock.control.state.canary.canary import ENDED, Canary, CanaryState
from penstock.control.state.canary.ending import aborted
from penstock.control.state.canary.spec import CanarySpec
from penstock.control.state.canary.starting import started
from penstock.control.state.cluster import ClusterView


class CanaryKind(NamedKind):
    """Documents of kind canary. One that says what a canary said that has ended says nothing new:
    it is not started once more."""

    @property
    def defaults(self) -> Fields:
        return _default_canary()

    def names(self, view: ClusterView) -> Iterable[str]:
        """Those that go on, and those that will with the next revision."""
        named = view.canaries.named.items()
        return [name for name, it in named if it.state not in ENDED or not it.spec.candidate]

    def standing(self, view: ClusterView, name: str) -> Standing | None:
        """Its runs have uids of their own."""
        known = view.canaries.named.get(name)
        return Standing(str(known.spec.target), _canary_fields(known.spec)) if known else None

    def put(self, view: ClusterView, name: str, fields: Fields) -> ClusterView:
        known = view.canaries.named.get(name)
        said = {"name": name, **fields}
        spec = validated(CanarySpecModel, said, SHAPES["canary"].groups).to_spec()
        if known and known.spec == spec:
            return view
        if known and self._gives_way(known):
            view = self._without(view, name)
        made = started(view, spec, secrets.token_hex(16), self._by.now, self._by.write.origin)
        return replace(view, canaries=view.canaries.with_new(made))

    def delete(self, view: ClusterView, name: str) -> ClusterView | None:
        return self._without(view, name)

    def _gives_way(self, known: Canary) -> bool:
        return known.state is CanaryState.WAITING or self._by.write.abort_canary

    def _without(self, view: ClusterView, name: str) -> ClusterView:
        """Nobody has its candidate, unless it has got so far."""
        why = f"{self._by.write.who} applied a file that says otherwise"
        view = aborted(view, name, why, self._by.now)
        return replace(view, canaries=view.canaries.without(name))


@lru_cache(CACHED)
def _canary_fields(spec: CanarySpec) -> Fields:
    shown = CanarySpecModel.showing(spec).model_dump(mode="json", exclude={"name"})
    return flattened(shown, SHAPES["canary"].groups)


@cache
def _default_canary() -> Fields:
    spec = CanarySpecModel.model_validate({"name": "any", "target": "any"}).to_spec()
    return {name: value for name, value in _canary_fields(spec).items() if name != "target"}
