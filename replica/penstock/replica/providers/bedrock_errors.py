"""What Bedrock's errors mean for our client. Pure."""

from __future__ import annotations

import re
from typing import Final

from penstock.replica.providers import errors
from penstock.replica.providers.characters import whole_characters
from penstock.replica.providers.secrets import scrubbed
from penstock.replica.providers.values import ProviderFailed
from penstock.replica.values import Failed

_THROTTLED: Final = {
    "ThrottlingException",
    "Throttling",
    "TooManyRequestsException",
    "ServiceQuotaExceededException",
    "LimitExceededException",
}
_CREDENTIALS: Final = {
    "AccessDenied",
    "AccessDeniedException",
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "IncompleteSignatureException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "NotAuthorized",
    "OptInRequired",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
_STATUSES: Final = {
    "ModelNotReadyException": 503,
    "ServiceUnavailableException": 503,
    "ServiceUnavailable": 503,
    "InternalServerException": 500,
    "InternalFailure": 500,
    "ModelTimeoutException": 504,
    "ModelErrorException": 502,
    "ModelStreamErrorException": 502,
}
"""Failures of Bedrock's own, which another attempt may not meet."""

_TOO_LONG: Final = re.compile(
    r"too long|context (window|length)|maximum.{0,40}tokens|exceeds? the.{0,40}token", re.IGNORECASE
)
_NOT_THE_CLIENTS: Final = re.compile(
    r"model identifier|inference profile|on-demand throughput|guardrail (identifier|version)",
    re.IGNORECASE,
)
_MOST_TEXT: Final = 2000


def refused(
    code: str, message: str, status: int, retry_after_ms: int, model: str
) -> ProviderFailed:
    """An error of Bedrock's, by its name; `status`: 0 where it came in a stream."""
    code = code.rpartition("#")[2].partition(":")[0]
    code = code[:1].upper() + code[1:]
    told = (
        whole_characters(scrubbed(message))[:_MOST_TEXT]
        or f"Bedrock failed with {code or f'status {status}'}."
    )
    if code in _CREDENTIALS or status in (401, 403):
        return errors.credentials()
    if code in _THROTTLED or (status == 429 and code not in _STATUSES):
        return errors.throttled(told, after_ms=retry_after_ms)
    if code == "ResourceNotFoundException":
        return errors.model_not_found(model)
    if code == "ValidationException":
        return _invalid(told, model)
    if code in _STATUSES:
        return errors.upstream(_STATUSES[code], told, again=True, retry_after_ms=retry_after_ms)
    if status == 413:
        return errors.refused(told, code="request_too_large", status=413)
    return errors.upstream(502, told, again=status >= 500)


def _invalid(message: str, model: str) -> ProviderFailed:
    """What Bedrock finds wrong: the request, unless it is what our deployment says."""
    if _NOT_THE_CLIENTS.search(message):
        return errors.model_not_found(model)
    too_long = _TOO_LONG.search(message)
    code = "context_length_exceeded" if too_long else "invalid_value"
    param = "messages" if too_long else ""
    return ProviderFailed(
        Failed(400, "invalid_request_error", code, message, param, fault="client")
    )
