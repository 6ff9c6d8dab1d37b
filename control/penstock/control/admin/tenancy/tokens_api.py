"""Tokens of this API: list, create, revoke."""

from __future__ import annotations

from fastapi import APIRouter, Response, status

from penstock.control.admin.auth import Admin
from penstock.control.admin.parameters import Paged
from penstock.control.admin.resources import resources
from penstock.control.admin.rollout.models import CreatedTokenModel, NewToken, TokenModel
from penstock.control.managers.tenancy.tokens import TokenManager


def tokens_api(tokens: TokenManager) -> APIRouter:
    """All for role admin."""
    router = resources("/tokens", tag="tokens")

    @router.get("")
    async def list_tokens(_: Admin, page: Paged) -> list[TokenModel]:
        """All tokens by id, without the tokens themselves; revoked ones too."""
        return [TokenModel.drawn(t) for t in page.of({token.id: token for token in tokens.all()})]

    @router.post("", status_code=status.HTTP_201_CREATED)
    async def create_token(body: NewToken, caller: Admin, response: Response) -> CreatedTokenModel:
        """Makes a token. It is shown in this answer and never again."""
        token, secret = await tokens.create(body.name, body.role, caller.name)
        response.headers["location"] = f"/admin/v1/tokens/{token.id}"
        response.headers["cache-control"] = "no-store"
        return CreatedTokenModel.drawn(token, token=secret)

    @router.delete("/{token_id}", status_code=status.HTTP_204_NO_CONTENT)
    async def revoke_token(token_id: str, caller: Admin) -> None:
        """Nobody gets in with it any more."""
        await tokens.revoke(token_id, caller.name)

    return router
