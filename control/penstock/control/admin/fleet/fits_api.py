"""What memory a model would take on a node."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from penstock.adapters.lora_config import LARGEST_RANK
from penstock.control.admin.auth import Operator
from penstock.control.admin.fit_models import MemoryFitModel
from penstock.control.admin.resources import resources
from penstock.control.managers.cluster import Cluster
from penstock.control.managers.fleet.node_drain import node_in
from penstock.control.managers.rollout.fits import Fits
from penstock.control.state.rollout.engine_args import check_engine_args
from penstock.control.state.rollout.template import MOST_ADAPTERS, Template, check_template

Settings = Annotated[
    list[str] | None,
    Query(description="the engine's settings, `key=value` each", examples=[["dtype=float32"]]),
]


def fits_api(cluster: Cluster, fits: Fits) -> APIRouter:
    """For operators: it tells what lies on a node's disk."""
    router = resources("/nodes", tag="cluster")

    @router.get("/{node_id}/fit")
    async def read_fit(
        node_id: str,
        _: Operator,
        model: str,
        engine_arg: Settings = None,
        max_adapters: Annotated[int, Query(ge=0, le=MOST_ADAPTERS)] = 0,
        max_adapter_rank: Annotated[int, Query(ge=0, le=LARGEST_RANK)] = 0,
    ) -> MemoryFitModel:
        """What a replica of a model would take there, beside what is free; nothing is started."""
        node = node_in(cluster.view(), node_id)
        pairs = tuple((k, v) for k, _, v in (each.partition("=") for each in engine_arg or ()))
        template = Template("vllm", model, pairs, max_adapters, max_adapter_rank)
        check_template(template)
        check_engine_args(template)
        return MemoryFitModel.drawn(await fits.on(node, template))

    return router
