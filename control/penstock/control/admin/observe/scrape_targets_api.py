"""Prometheus's HTTP service discovery: what there is to scrape."""

from __future__ import annotations

from fastapi import APIRouter, Request

from penstock.control.admin.auth import Viewer
from penstock.control.admin.hosts import bracketed
from penstock.control.admin.observe.scrape_targets import scrape_targets
from penstock.control.admin.observe.target_models import ScrapeTargetModel
from penstock.control.admin.parameters import Paged
from penstock.control.admin.resources import resources
from penstock.control.managers.cluster import Cluster


def scrape_targets_api(cluster: Cluster, head_metrics: str) -> APIRouter:
    """`head_metrics`: host:port of this head's own; empty: none."""
    router = resources(tag="cluster")

    @router.get("/scrape-targets")
    async def list_scrape_targets(
        _: Viewer, page: Paged, request: Request
    ) -> list[ScrapeTargetModel]:
        """Where Prometheus finds the metrics of heads, gateways and node agents, by address.

        Those alone that it can reach by the host that it reached this head by.
        """
        host = bracketed(request.url.hostname or "")
        found = scrape_targets(cluster.view(), head_metrics, host)
        return [
            ScrapeTargetModel(targets=[it.address], labels=dict(it.labels)) for it in page.of(found)
        ]

    return router
