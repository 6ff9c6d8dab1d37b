"""Failures of calls that a provider answers, as values. Pure.

Whose fault it is decides: what the client can mend is 4xx and its fault; what is wrong with our
account, our settings or the provider is not, and says nothing of our credentials.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from penstock.replica.providers.values import ProviderFailed
from penstock.replica.values import Failed

_LONGEST_WAIT_MS: Final = 86_400_000


def refused(
    message: str, param: str = "", code: str = "invalid_value", status: int = 400
) -> ProviderFailed:
    """The request itself is wrong: the same anywhere."""
    return ProviderFailed(
        Failed(status, "invalid_request_error", code, message, param, fault="client")
    )


def unsupported(field: str, why: str = "") -> ProviderFailed:
    """This provider has nothing for what the field says, or its deployment does not allow it: by
    this code a ladder goes on to who has."""
    reason = f": {why}" if why else ""
    return refused(
        f"The model of this deployment does not take {field!r} as it is{reason}.",
        field,
        "unsupported_parameter",
    )


def unsupported_tool(field: str, kind: object, feature: str = "") -> ProviderFailed:
    """A tool that the provider would run, or that it has not."""
    needs = f" without the feature {feature}" if feature else ""
    return unsupported(field, f"tools of type {kind!r} are not served{needs}")


def cannot_resume() -> ProviderFailed:
    """A provider's answer is the provider's: nobody else can go on with it."""
    return upstream(503, "A provider's answer cannot be resumed.", "resume_unsupported")


def too_many_tokens(field: str, asked: int, most: int) -> ProviderFailed:
    """The request asks for more tokens than the gateway allows."""
    message = f"{field} is {asked}, at most {most} tokens are allowed here; ask for fewer."
    return refused(message, field, "token_budget_exceeded")


def beyond_context(field: str, asked: int, context: int) -> ProviderFailed:
    """The request asks for more tokens than the model has room for."""
    message = f"{field} is {asked}, and the model's context has {context} tokens; ask for fewer."
    return refused(message, field, "context_length_exceeded")


def prompt_too_long(field: str, tokens: int, most: int) -> ProviderFailed:
    """The prompt has more tokens than the gateway allows."""
    message = f"The prompt has {tokens} tokens, at most {most} are allowed here; shorten it."
    return refused(message, field, "token_budget_exceeded")


def silent(seconds: float, *, begun: bool) -> ProviderFailed:
    """Nothing came from the provider for so long. It may work on the request, and charge for it: no
    second attempt is made here."""
    what = "sent nothing more" if begun else "did not begin to answer"
    message = f"The provider {what} within {seconds:g} s."
    return ProviderFailed(
        Failed(504, "timeout_error", "upstream_timeout", message, retryable=not begun)
    )


def unreachable(why: str) -> ProviderFailed:
    """No connection to the provider, or it broke before an answer began."""
    message = f"The provider cannot be reached: {why}."
    return upstream(502, message, "upstream_unreachable", again=True)


def upstream(
    status: int,
    message: str,
    code: str = "upstream_error",
    *,
    again: bool = False,
    retry_after_ms: int = 0,
) -> ProviderFailed:
    """The provider's fault, or that of our account with it."""
    kinds = {429: "rate_limit_error", 504: "timeout_error"}
    kind = kinds.get(status, "server_error")
    wait = min(max(0, retry_after_ms), _LONGEST_WAIT_MS)
    failed = Failed(status, kind, code, message, retryable=True, retry_after_ms=wait)
    return ProviderFailed(failed, again=again)


def operators(message: str, code: str, status: int = 502) -> ProviderFailed:
    """What is as wrong at the next attempt, until whoever runs the deployment sees to it."""
    failure = upstream(status, message, code)
    return ProviderFailed(replace(failure.failed, fault="operator"))


def throttled(message: str, code: str = "rate_limit_exceeded", after_ms: int = 0) -> ProviderFailed:
    """The provider takes no more from our account for now."""
    return upstream(429, message, code, again=True, retry_after_ms=after_ms)


def credentials() -> ProviderFailed:
    """The provider does not take our credentials, or there are none. What it said of them stays
    here."""
    message = (
        "The provider refused the credentials of this deployment, or there are none; whoever runs "
        "it has to see to them."
    )
    return operators(message, "upstream_credentials")


def host_not_allowed(host: str) -> ProviderFailed:
    """The node's `--provider-hosts` does not name the host, or nobody may send to it."""
    message = (
        f"This node may send nothing to {host}: its --provider-hosts does not name it, or it is an"
        " address of a cloud's metadata service."
    )
    return operators(message, "upstream_host_not_allowed")


def no_endpoint(path: str) -> ProviderFailed:
    """The provider does not serve what the deployment says it does."""
    message = f"The provider has no {path}: whoever runs this deployment has to see to base_url."
    return operators(message, "upstream_no_endpoint")


def too_large(most: int) -> ProviderFailed:
    """The answer is larger than anything that was asked for."""
    message = f"The provider's answer has more than {most} bytes, which nobody asked for."
    return upstream(502, message, "upstream_too_large")


def model_not_found(model: str) -> ProviderFailed:
    """The provider does not know the model that the deployment names; the client cannot mend it."""
    message = f"The provider has no model {model!r}, or the account may not use it."
    return operators(message, "upstream_model_not_found")


def cut_short(what: str = "The provider's answer stopped before its end.") -> ProviderFailed:
    """The answer ended without saying so, which must never look like an end."""
    return upstream(502, what, "upstream_cut_short", again=True)
