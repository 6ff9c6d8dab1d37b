"""What adapters may be made for: the models that deployments serve, and what those take. Pure."""

from __future__ import annotations

from typing import Final

from penstock.adapters.adapter import BaseModelFamily
from penstock.adapters.alias import Target
from penstock.adapters.fitness import FamilyLimits
from penstock.adapters.lora_config import LARGEST_RANK
from penstock.control.errors import Code, InvalidInput, PenstockError
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import (
    Deployment,
    DeploymentName,
    DeploymentSpec,
)
from penstock.control.state.rollout.template import Template

_USUAL_REVISION: Final = "main"


def family_named(view: ClusterView, base: str) -> BaseModelFamily:
    """The family of a deployment, or the family itself. Raises `InvalidInput` for what nobody
    serves: nothing could be said of what fits it."""
    deployment = view.deployments.get(DeploymentName(base))
    if deployment is not None:
        return deployment.spec.template.family
    families = {str(each.spec.template.family) for each in view.deployments.values()}
    if base in families:
        return BaseModelFamily(base)
    known = sorted({*view.deployments, *families})
    raise InvalidInput(
        f"base is {base!r}: name a deployment, or the model that one serves; there are "
        f"{', '.join(known[:20]) or 'none: create the deployment first'}"
    )


def limits_of(view: ClusterView, family: BaseModelFamily) -> FamilyLimits:
    """What the most generous of the family's deployments takes: an alias of a narrower one is
    refused when it is set."""
    ranks = (template.adapter_rank for template in _templates(view, family))
    return FamilyLimits(max_rank=max(ranks, default=0) or LARGEST_RANK)


def revision_of(view: ClusterView, family: BaseModelFamily) -> str | None:
    """The revision at which the family's deployments take their model, if it is one of the hub;
    none where they differ: no one model would tell then what fits all of them."""
    templates = _templates(view, family)
    told = {dict(each.engine_args).get("revision") or _USUAL_REVISION for each in templates}
    return told.pop() if len(told) == 1 else None


def check_taken(view: ClusterView, deployment: Deployment, target: Target) -> None:
    """Raises `InvalidInput` where the deployment's engine could not load what the target names, be
    it after its rollout failed."""
    name = str(deployment.spec.name)
    _check_takes(view, name, deployment.spec.template, target)
    if back := deployment.way_back:
        name = f"{name} has a change under way and may go back to revision {back.number}, which"
        _check_takes(view, name, back.template, target)


def _check_takes(view: ClusterView, name: str, template: Template, target: Target) -> None:
    if not template.adapter_slots:
        raise InvalidInput(
            f"{name} takes no adapters: set max_adapters in its spec, which takes new replicas"
        )
    for ref in target.refs:
        rank = view.adapters.version(str(ref)).manifest.rank
        if rank > template.adapter_rank:
            raise InvalidInput(
                f"{ref} has rank {rank}, {name} takes ranks up to {template.adapter_rank}: set its "
                "max_adapter_rank, which takes new replicas"
            )


def check_aliases_fit(view: ClusterView, spec: DeploymentSpec) -> None:
    """Raises `adapter-in-use` where what the deployment's aliases name does not fit this spec: they
    would answer with nothing, or on another model."""
    template = spec.template
    for alias in view.adapters.aliases_of(spec.name):
        for ref in alias.target.refs:
            manifest = view.adapters.version(str(ref)).manifest
            if manifest.family != template.family:
                misfit = f"is made for {manifest.family}, not for {template.family}"
            elif not template.adapter_slots:
                misfit = "needs room, and max_adapters is 0"
            elif manifest.rank > template.adapter_rank:
                misfit = (
                    f"has rank {manifest.rank}, and max_adapter_rank is {template.adapter_rank}"
                )
            else:
                continue
            raise PenstockError(
                f"the alias {alias.full_name} names {ref}, which {misfit}: move or delete it first",
                Code.ADAPTER_IN_USE,
            )


def _templates(view: ClusterView, family: BaseModelFamily) -> list[Template]:
    templates = (each.spec.template for each in view.deployments.values())
    return [template for template in templates if template.family == family]
