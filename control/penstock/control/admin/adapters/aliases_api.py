"""Aliases: set, undo, history, delete."""

from __future__ import annotations

from fastapi import APIRouter, Response, status

from penstock.adapters.alias import Alias
from penstock.control.admin.adapters.alias_models import AliasModel, AliasSpecModel, MoveModel
from penstock.control.admin.auth import Operator, Viewer
from penstock.control.admin.documents import or_created
from penstock.control.admin.parameters import Paged
from penstock.control.admin.preconditions import IfMatch, IfNoneMatch, check_tag
from penstock.control.admin.resources import resources
from penstock.control.managers.adapters.aliases import AliasManager, OnlyIf


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
        return _shown(self._aliases.alias(deployment, alias), response)

    async def put_alias(
        self,
        deployment: str,
        alias: str,
        body: AliasSpecModel,
        caller: Operator,
        response: Response,
        if_match: IfMatch = None,
        if_none_match: IfNoneMatch = None,
    ) -> AliasModel:
        """Moves an alias, or makes it (201). All gateways are told at once; a request that has
        begun ends under the version that it began with."""
        only_if = _as_read(f"alias {deployment}:{alias}", if_match, if_none_match)
        spec = body.to_spec()
        made, is_new = await self._aliases.put(deployment, alias, spec, caller.name, only_if)
        if is_new:
            response.status_code = status.HTTP_201_CREATED
        return _shown(made, response)

    async def delete_alias(
        self, deployment: str, alias: str, caller: Operator, if_match: IfMatch = None
    ) -> None:
        """Deletes an alias; the versions that it named stay."""
        only_if = _as_read(f"alias {deployment}:{alias}", if_match)
        await self._aliases.delete(deployment, alias, caller.name, only_if)

    async def undo_alias(
        self,
        deployment: str,
        alias: str,
        caller: Operator,
        response: Response,
        if_match: IfMatch = None,
    ) -> AliasModel:
        """Takes the last move back; taken back twice, it is two moves back."""
        only_if = _as_read(f"alias {deployment}:{alias}", if_match)
        return _shown(await self._aliases.undo(deployment, alias, caller.name, only_if), response)

    async def alias_history(self, deployment: str, alias: str, _: Viewer) -> list[MoveModel]:
        """The moves of an alias, the newest first."""
        moves = self._aliases.alias(deployment, alias).moves
        return [MoveModel.of(move) for move in reversed(moves)]


def _shown(alias: Alias, response: Response) -> AliasModel:
    model = AliasModel.of(alias)
    response.headers["etag"] = model.etag
    return model


def _as_read(what: str, if_match: str | None, if_none_match: str | None = None) -> OnlyIf:
    """That the alias is as the caller read it."""
    return lambda alias: check_tag(
        AliasModel.of(alias).etag if alias else "", if_match, if_none_match, what
    )
