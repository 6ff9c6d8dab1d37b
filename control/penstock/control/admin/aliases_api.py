"""Aliases: set, undo, history, delete."""

from __future__ import annotations

from fastapi import APIRouter, Response, status

from penstock.control.admin.alias_models import AliasModel, AliasSpecModel, MoveModel
from penstock.control.admin.auth import Operator, Viewer
from penstock.control.admin.documents import or_created
from penstock.control.managers.aliases import AliasManager


class AliasesApi:
    """The handlers of /aliases; their docstrings are the API's documents."""

    def __init__(self, aliases: AliasManager) -> None:
        self._aliases = aliases

    def router(self) -> APIRouter:
        """The handlers on their paths."""
        router = APIRouter(prefix="/aliases", tags=["adapters"])
        router.get("")(self.list_aliases)
        one = "/{deployment}/{alias}"
        router.get(one)(self.get_alias)
        router.put(one, responses=or_created(AliasModel))(self.put_alias)
        router.delete(one, status_code=status.HTTP_204_NO_CONTENT)(self.delete_alias)
        router.post(one + "/undo")(self.undo_alias)
        router.get(one + "/history")(self.alias_history)
        return router

    async def list_aliases(self, _: Viewer, deployment: str | None = None) -> list[AliasModel]:
        """All aliases, or those of one deployment, by name."""
        found = sorted(self._aliases.view.adapters.aliases.items())
        return [AliasModel.of(a) for _, a in found if deployment in (None, a.deployment)]

    async def get_alias(self, deployment: str, alias: str, _: Viewer) -> AliasModel:
        """One alias."""
        return AliasModel.of(self._aliases.alias(deployment, alias))

    async def put_alias(
        self,
        deployment: str,
        alias: str,
        body: AliasSpecModel,
        caller: Operator,
        response: Response,
    ) -> AliasModel:
        """Moves an alias, or makes it (201). All gateways are told at once; a request that has
        begun ends under the version that it began with."""
        made, is_new = await self._aliases.put(deployment, alias, body.to_wish(), caller.name)
        if is_new:
            response.status_code = status.HTTP_201_CREATED
        return AliasModel.of(made)

    async def delete_alias(self, deployment: str, alias: str, caller: Operator) -> None:
        """Deletes an alias; the versions that it named stay."""
        await self._aliases.delete(deployment, alias, caller.name)

    async def undo_alias(self, deployment: str, alias: str, caller: Operator) -> AliasModel:
        """Takes the last move back; undone twice, it is where it was."""
        return AliasModel.of(await self._aliases.undo(deployment, alias, caller.name))

    async def alias_history(self, deployment: str, alias: str, _: Viewer) -> list[MoveModel]:
        """The moves of an alias, the newest first."""
        moves = self._aliases.alias(deployment, alias).moves
        return [MoveModel.of(move) for move in reversed(moves)]
