"""Engines: a model that serves for a while, by one request."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response, status

from penstock.control.admin.auth import Viewer
from penstock.control.admin.parameters import Paged
from penstock.control.admin.resources import resources
from penstock.control.admin.rollout.deployments_api import check_code
from penstock.control.admin.rollout.engine_models import EngineModel, NewEngine
from penstock.control.admin.writes import Change, Create, tagged
from penstock.control.errors import Code, Refused
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.rollout.engines import EngineManager, WantedEngine
from penstock.control.state.rollout.deployment import DeploymentSpec
from penstock.control.state.rollout.engines import engine_named, engines_of, id_of
from penstock.control.state.tenancy.tokens import Role

Wait = Annotated[bool, Query(description="false: answer 202 at once, whatever becomes of it")]
STARTED: dict[int | str, dict[str, Any]] = {
    HTTPStatus.ACCEPTED.value: {"model": EngineModel, "description": "It is on its way"},
    HTTPStatus.TOO_MANY_REQUESTS.value: {"description": "There are as many as may be"},
}


class EnginesApi:
    """The handlers of /engines; their docstrings are the API's documents."""

    def __init__(self, engines: EngineManager, cluster: ClusterStore, base_url: str | None) -> None:
        self._engines = engines
        self._cluster = cluster
        self._base_url = base_url

    def router(self) -> APIRouter:
        """The handlers on their paths."""
        router = resources("/engines", tag="engines")
        router.get("")(self.list_engines)
        router.post("", status_code=status.HTTP_201_CREATED, responses=STARTED)(self.start_engine)
        router.get("/{engine_id}")(self.get_engine)
        router.delete("/{engine_id}", status_code=status.HTTP_204_NO_CONTENT)(self.end_engine)
        return router

    async def list_engines(self, _: Viewer, page: Paged) -> list[EngineModel]:
        """Engines, by name."""
        view = self._cluster.view()
        named = page.of(engines_of(view))
        return [EngineModel.of(view, each, self._base_url) for each in named]

    async def start_engine(self, body: NewEngine, write: Create, wait: Wait = True) -> EngineModel:
        """Starts an engine, and answers once its first request would be answered. A caller that
        goes away meanwhile leaves it to its `ttl_s`. 409 where the name is taken, or it does not
        get ready: then nothing of it is left; 429 for more than there may be; 503 where no node
        could take it."""

        def spec(name: str) -> DeploymentSpec:
            if not body.ttl_s and not write.role.includes(Role.ADMIN):
                raise Refused(
                    f"ttl_s is 0, for an engine that never ends: this needs a token of role"
                    f" {Role.ADMIN}, {write.who!r} has role {write.role}",
                    Code.FORBIDDEN,
                )
            made = body.to_spec(name)
            check_code(write, None, made)
            return made

        wanted = WantedEngine(body.to_terms(), spec)
        made = await self._engines.start(wanted, write, wait=wait)
        write.tell(made, f"/admin/v1/engines/{id_of(made.uid)}")
        if not wait:
            write.response.status_code = status.HTTP_202_ACCEPTED
        return EngineModel.of(self._cluster.view(), made, self._base_url)

    async def get_engine(self, engine_id: str, _: Viewer, response: Response) -> EngineModel:
        """One engine, by id or name."""
        view = self._cluster.view()
        known = engine_named(view, engine_id)
        tagged(response, known)
        return EngineModel.of(view, known, self._base_url)

    async def end_engine(self, engine_id: str, write: Change) -> None:
        """Ends an engine, by id or name: it finishes the requests that it has, and its name may be
        taken again at once."""
        await self._engines.end(engine_id, write)
