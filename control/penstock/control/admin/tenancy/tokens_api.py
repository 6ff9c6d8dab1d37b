"""Tokens of this API: list, create, revoke."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response, status

from penstock.control.admin.auth import Admin
from penstock.control.admin.parameters import Paged
from penstock.control.admin.resources import resources
from penstock.control.admin.rollout.models import CreatedTokenModel, NewToken, TokenModel
from penstock.control.admin.writes import Asked, changes, creates, tagged
from penstock.control.managers.tenancy.tokens import TokenManager
from penstock.control.state.tenancy.tokens import Role

Creates = Annotated[Asked, creates(Role.ADMIN)]
Changes = Annotated[Asked, changes(Role.ADMIN)]


def tokens_api(tokens: TokenManager) -> APIRouter:
    """All for role admin."""
    router = resources("/tokens", tag="tokens")

    @router.get("")
    async def list_tokens(_: Admin, page: Paged) -> list[TokenModel]:
        """All tokens by id, without the tokens themselves; revoked ones too."""
        return [TokenModel.drawn(t) for t in page.of({token.id: token for token in tokens.all()})]

    @router.get("/{token_id}")
    async def get_token(token_id: str, _: Admin, response: Response) -> TokenModel:
        """One token, without the token itself."""
        tagged(response, tokens.token(token_id))
        return TokenModel.drawn(tokens.token(token_id))

    @router.post("", status_code=status.HTTP_201_CREATED)
    async def create_token(body: NewToken, write: Creates) -> CreatedTokenModel:
        """Makes a token. It is shown in this answer and never again; a dry run shows none."""
        token, secret = await tokens.create(body.name, body.role, write)
        write.tell(token, f"/admin/v1/tokens/{token.id}")
        write.tell_secret()
        return CreatedTokenModel.drawn(token, token=secret)

    @router.delete("/{token_id}", status_code=status.HTTP_204_NO_CONTENT)
    async def revoke_token(token_id: str, write: Changes) -> None:
        """Nobody gets in with it any more."""
        await tokens.revoke(token_id, write)

    return router
