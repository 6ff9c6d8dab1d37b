"""Tokens of the admin API: made, known again, revoked; kept in the store by their SHA-256."""

from __future__ import annotations

import logging
import secrets
from dataclasses import replace
from datetime import timedelta

from penstock.control.errors import NotFound, Unavailable
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.whole import Whole
from penstock.control.managers.write import Write
from penstock.control.state.tenancy.tokens import (
    Role,
    Token,
    check_new,
    check_revocable,
    digest_of,
    holder,
    router_digests,
)
from penstock.control.store.store import Author, Change, Document, Key
from penstock.control.store.tenancy.documents import from_token, to_token
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

KIND = "token"
PREFIX = "pst_"
TOKEN_BYTES = 32
FIRST_NAME = "admin"
# Writing each use down would make a write of every read.
USE_NOTED_EVERY = timedelta(hours=1)


def new_secret() -> str:
    """A token that nobody can guess."""
    return PREFIX + secrets.token_urlsafe(TOKEN_BYTES)


class TokenManager:
    """All tokens, in memory and in the store. One event loop; changes are stored before they
    count."""

    def __init__(self, cluster: ClusterStore, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._tokens: dict[str, Token] = {}
        self._whole = Whole()  # one change at a time: else a late note of use undoes a revoke

    async def begin(self, secret: str, *, new: bool) -> None:
        """Takes up what is stored, and makes sure that this secret is a token of role admin.

        `new`: it was made just now, with the first start or because an operator took its file away
        to get another. The one before it is revoked then.
        """
        for token_id, document in (await self._cluster.documents(KIND)).items():
            self._take_up(token_id, document)
        digest = digest_of(secret)
        if new or all(token.digest != digest for token in self._tokens.values()):
            await self._take_first(digest)

    def all(self) -> list[Token]:
        """Every token by its making, revoked ones included."""
        return sorted(self._tokens.values(), key=lambda token: (token.created_at, token.id))

    def holder(self, secret: str) -> Token | None:
        """The valid token that this is; None if it is none."""
        return holder(self._tokens.values(), secret)

    def router_digests(self) -> tuple[bytes, ...]:
        """What replicas are told, of the tokens that they are to take."""
        return router_digests(self._tokens.values())

    async def used(self, token: Token) -> None:
        """Notes, now and then, that a token is in use."""
        now = self._clock.now()
        if token.last_used_at is not None and now - token.last_used_at < USE_NOTED_EVERY:
            return

        async def work() -> None:
            current = self._tokens[token.id]
            if current.revoked_at is not None or current.last_used_at != token.last_used_at:
                return
            noted = self._tokens[token.id] = replace(current, last_used_at=now)
            try:
                await self._write([noted], Author("head", f"token {token.name} is used"))
            except Unavailable as error:
                log.warning("use of a token not stored", extra={"error": str(error)})

        await self._whole.do(work)

    async def create(self, name: str, role: Role, write: Write) -> tuple[Token, str]:
        """Makes a token; returns it with the secret, which is known to nobody afterwards. A dry run
        has none.

        Raises `InvalidInput`, `conflict`, `StoreUnavailable` and `HoldsStill`.
        """

        async def work() -> tuple[Token, str]:
            check_new(self._tokens.values(), name)
            secret = new_secret()
            token = self._new(name, role, digest_of(secret))
            await self._store_first(token, write, f"create token {name} of role {role}")
            return token, "" if write.dry_run else secret

        return await self._whole.do(work)

    def token(self, token_id: str) -> Token:
        """The token of this id, also one that is revoked. Raises `NotFound`."""
        token = self._tokens.get(token_id)
        if token is None:
            raise NotFound(f"no token {token_id!r}: GET /admin/v1/tokens lists them")
        return token

    async def revoke(self, token_id: str, write: Write) -> None:
        """From now on nobody gets in with it. Raises `NotFound`, `conflict`, `StoreUnavailable`,
        `HoldsStill` and `revision-mismatch`."""

        async def work() -> None:
            token = self.token(token_id)
            write.check(token, f"token {token_id!r}")
            if token.revoked_at is not None:
                return
            check_revocable(self._tokens.values(), token)
            revoked = replace(token, revoked_at=self._clock.now())
            await self._store_first(revoked, write, f"revoke token {token.name}")

        await self._whole.do(work)

    def _take_up(self, token_id: str, document: Document) -> None:
        try:
            self._tokens[token_id] = to_token(token_id, document)
        except ValueError as error:
            log.error("token not readable", extra={"token": token_id, "error": repr(error)})

    async def _take_first(self, digest: str) -> None:
        """Makes this token the one that is called admin."""
        now = self._clock.now()
        changed = [
            replace(token, revoked_at=now)
            for token in self._tokens.values()
            if token.name == FIRST_NAME and token.revoked_at is None
        ]
        changed.append(self._new(FIRST_NAME, Role.ADMIN, digest))
        for token in changed:
            self._tokens[token.id] = token
        try:
            await self._write(changed, Author("head", "take up the token of role admin"))
        except Unavailable as error:  # the next start takes it up again
            log.error("token of role admin not stored", extra={"error": str(error)})

    def _new(self, name: str, role: Role, digest: str) -> Token:
        return Token(secrets.token_hex(4), name, role, digest, created_at=self._clock.now())

    async def _store_first(self, token: Token, write: Write, what: str) -> None:
        await write.store(self._cluster, [_stored(token)], what)
        if not write.dry_run:
            self._tokens[token.id] = token

    async def _write(self, tokens: list[Token], author: Author) -> None:
        await self._cluster.write([_stored(token) for token in tokens], author)


def _stored(token: Token) -> Change:
    return Change(Key(KIND, token.id), from_token(token))
