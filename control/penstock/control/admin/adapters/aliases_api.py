"""Aliases: set, undo, history, delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response, status

from penstock.control.admin.adapters.alias_models import AliasModel, AliasSpecModel, MoveModel
from penstock.control.admin.auth import Viewer
from penstock.control.admin.documents import or_created
from penstock.control.admin.parameters import Paged
from penstock.control.admin.resources import resources
from penstock.control.admin.writes import Asked, OverCanaries, over_canaries, puts, tagged
from penstock.control.managers.adapters.aliases import AliasManager
from penstock.control.state.tenancy.tokens import Role

Puts = Annotated[Asked, over_canaries(puts(Role.OPERATOR))]


class AliasesApi:
    """The handlers of /aliases; their docstrings are the API's documents."""

    def __init__(self, aliases: AliasManager) -> None:
        self._aliases = aliases

    def router(self) -> APIRouter:
        """The handlers on their paths."""
        router = resources("/aliases", tag="adapters")
        router.get("")(self.list_aliases)
        one = "/{deployment}/{alias}"
        router.get(one)(self.get_alias)
        router.put(one, responses=or_created(AliasModel))(self.put_alias)
        router.delete(one, status_code=status.HTTP_204_NO_CONTENT)(self.delete_alias)
        router.post(one + "/undo")(self.undo_alias)
        router.get(one + "/history")(self.alias_history)
        return router

    async def list_aliases(
        self, _: Viewer, page: Paged, deployment: str | None = None
    ) -> list[AliasModel]:
        """All aliases, or those of one deployment, by `model`, as clients name them."""
        known = self._aliases.view.adapters.aliases
        found = {name: a for name, a in known.items() if deployment in (None, a.deployment)}
        return [AliasModel.of(alias) for alias in page.of(found)]

    async def get_alias(
        self, deployment: str, alias: str, _: Viewer, response: Response
    ) -> AliasModel:
        """One alias."""
        tagged(response, found := self._aliases.alias(deployment, alias))
        return AliasModel.of(found)

    async def put_alias(
        self, deployment: str, alias: str, body: AliasSpecModel, write: Puts
    ) -> AliasModel:
        """Moves an alias, or makes it (201). All gateways are told at once; a request that has
        begun ends under the version that it began with."""
        made, is_new = await self._aliases.put(deployment, alias, body.to_spec(), write)
        write.tell(made, f"/admin/v1/aliases/{deployment}/{alias}" if is_new else "")
        return AliasModel.of(made)

    async def delete_alias(self, deployment: str, alias: str, write: OverCanaries) -> None:
        """Deletes an alias; the versions that it named stay."""
        await self._aliases.delete(deployment, alias, write)

    async def undo_alias(self, deployment: str, alias: str, write: OverCanaries) -> AliasModel:
        """Takes the last move back; taken back twice, it is two moves back."""
        write.tell(undone := await self._aliases.undo(deployment, alias, write))
        return AliasModel.of(undone)

    async def alias_history(
        self, deployment: str, alias: str, _: Viewer, page: Paged
    ) -> list[MoveModel]:
        """The moves of an alias, the newest first; pages go by `at`."""
        moves = reversed(self._aliases.alias(deployment, alias).moves)
        told = [MoveModel.of(move) for move in moves]
        return page.along(told, lambda move: move.model_dump(mode="json")["at"])
