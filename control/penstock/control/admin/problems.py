"""Errors to problem bodies (RFC 9457): the only place that maps errors to HTTP."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Match

from penstock.control.admin.brake import PERIOD
from penstock.control.admin.refusals import place, refusal
from penstock.control.errors import BadDocuments, Code, PenstockError

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
_HEADERS: Mapping[int | str, Mapping[str, str]] = {
    Code.KEY_IN_FLIGHT: {"retry-after": "1"},
    Code.TOO_MANY_ENGINES: {"x-should-retry": "false"},  # somebody has to end one
    HTTPStatus.UNAUTHORIZED: {"www-authenticate": 'Bearer realm="penstock"'},
    HTTPStatus.FORBIDDEN: {
        "www-authenticate": 'Bearer realm="penstock", error="insufficient_scope"'
    },
    HTTPStatus.TOO_MANY_REQUESTS: {"retry-after": f"{PERIOD:.0f}"},
    HTTPStatus.CONFLICT: {"x-should-retry": "false"},  # which SDKs would repeat
}


class Problem(BaseModel):
    """Why a request failed: `detail` is for a person, `type` for a program."""

    type: str
    title: str
    status: int
    detail: str


def problem(
    status: int, kind: str, detail: str, headers: Mapping[str, str] | None = None, **more: object
) -> JSONResponse:
    """A problem body with its status; `more`: what else it says to programs."""
    body = Problem(
        type=f"urn:penstock:{kind}", title=HTTPStatus(status).phrase, status=status, detail=detail
    )
    return JSONResponse(body.model_dump() | more, status, headers, media_type=MEDIA_TYPE)


def install_problems(app: FastAPI) -> None:
    """Makes every error of this app a problem body."""
    app.add_exception_handler(PenstockError, _explained)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexplained)


def explained(error: PenstockError) -> JSONResponse:
    """The answer to an error of ours."""
    status = error.code.status
    faults = [each._asdict() for each in error.faults] if isinstance(error, BadDocuments) else None
    more = {"faults": faults} if faults else {}
    headers = _HEADERS.get(error.code, _HEADERS.get(status))
    return problem(status, error.code, str(error), headers, **more)


async def _explained(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, PenstockError)
    return explained(error)


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    malformed = any(e["type"] == "json_invalid" for e in found)
    status = HTTPStatus.BAD_REQUEST if malformed else HTTPStatus.UNPROCESSABLE_ENTITY
    lines = (f"{place(e['loc'][1:]) or 'body'}: {refusal(e)}" for e in found)
    detail = "; ".join(lines).encode("utf-8", "backslashreplace").decode()
    return problem(status, "invalid", detail)


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    detail = f"{request.method} {request.url.path}: {error.detail}"
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["allow"] = ", ".join(_methods(request))
    return problem(error.status_code, "http", detail, headers)


def _methods(request: Request) -> list[str]:
    """All that the path knows: Starlette names those of the first route alone."""
    found: set[str] = set()
    for route in request.app.routes:
        match, _ = route.matches(request.scope)
        if match is not Match.NONE:
            found |= getattr(route, "methods", None) or set()
    return sorted(found)


async def _unexplained(request: Request, error: Exception) -> JSONResponse:
    log.error("admin request failed", extra={"path": request.url.path}, exc_info=error)
    detail = "a fault of Penstock's own; the head's log says more"
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", detail)
