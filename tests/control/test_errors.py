"""What clients of the admin API know errors by: codes and statuses that stay as they are."""

from __future__ import annotations

from penstock.control.errors import Code, NotFound, Unavailable, UnknownToken

STATUS_OF = {
    "error": 500,
    "invalid": 422,
    "invalid-spec": 422,
    "idempotency-key-reused": 422,
    "invalid-setting": 422,
    "bad-adapter": 422,
    "not-found": 404,
    "unknown-deployment": 404,
    "unknown-revision": 404,
    "unknown-node": 404,
    "unknown-replica": 404,
    "unknown-gateway": 404,
    "unknown-tenant": 404,
    "unknown-key": 404,
    "unknown-adapter": 404,
    "unknown-alias": 404,
    "unknown-shadow": 404,
    "unknown-canary": 404,
    "unknown-recording": 404,
    "unknown-request": 404,
    "unknown-engine": 404,
    "conflict": 409,
    "deployment-exists": 409,
    "tenant-exists": 409,
    "shadow-exists": 409,
    "canary-exists": 409,
    "canary-owns": 409,
    "no-evidence": 409,
    "recording-exists": 409,
    "adapter-taken": 409,
    "adapter-in-use": 409,
    "not-promoted": 409,
    "nothing-to-undo": 409,
    "engine-failed": 409,
    "not-testable": 409,
    "answer-not-kept": 409,
    "secret-shown-once": 409,
    "idempotency-key-in-flight": 409,
    "gateway-not-replaced": 409,
    "revision-mismatch": 412,
    "foreign-head": 412,
    "refused": 500,
    "unauthenticated": 401,
    "too-many-tries": 429,
    "too-many-engines": 429,
    "forbidden": 403,
    "body-too-slow": 408,
    "body-too-large": 413,
    "unsupported-media-type": 415,
    "misdirected": 421,
    "unavailable": 503,
    "node-unreachable": 503,
    "holds-still": 503,
    "token-refused": 503,
    "not-admitted": 503,
    "no-head-answers": 503,
    "store-unavailable": 503,
    "source-unavailable": 503,
    "no-ready-replica": 503,
    "replica-failed": 502,
    "replica-too-slow": 504,
    "replica-refused": 500,
    "impossible-transition": 500,
    "cannot-start": 500,
    "address-taken": 500,
    "data-dir-in-use": 500,
    "store-corrupted": 500,
    "launch-failed": 500,
    "secret-unusable": 500,
}


def test_the_codes_and_their_statuses_are_those_that_clients_know() -> None:
    assert {str(code): code.status for code in Code} == STATUS_OF


def test_an_error_has_the_code_of_its_class_where_it_is_given_no_other() -> None:
    assert UnknownToken("no").code is Code.UNAUTHENTICATED
    assert Unavailable("no").code is Code.UNAVAILABLE
    assert NotFound("no", Code.UNKNOWN_KEY).code is Code.UNKNOWN_KEY
