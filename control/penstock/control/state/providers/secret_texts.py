"""What looks like a secret, by its name or by its form. Pure.

Secrets are named in specs, never written into them: what is written there stands in the store, in
the audit trail and in every answer of the admin API. Whoever refuses one does not repeat it.
"""

from __future__ import annotations

import re

# The last word of a setting's name, where its value is one; api_key_env only says where one is.
_WORDS = frozenset(
    {
        "auth",
        "authorization",
        "bearer",
        "credential",
        "credentials",
        "key",
        "password",
        "passwd",
        "pwd",
        "secret",
        "token",
    }
)
_RUN_TOGETHER = re.compile(r"(apikey|accesskey|secretkey|privatekey|accesstoken|authtoken)(id)?$")
_FORMS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{4,}"  # OpenAI, Anthropic and those who follow them
    r"|(?:AKIA|ASIA)[A-Z0-9]{8,}"  # ids of AWS keys
    r"|ABSK[A-Za-z0-9+/=]{16,}"  # Bedrock's own keys
    r"|ps[kt]_[A-Za-z0-9_-]{8,}"  # Penstock's
    r"|gh[opsu]_[A-Za-z0-9]{16,}|github_pat_\w{16,}"
    r"|hf_[A-Za-z0-9]{16,}"
    r"|gsk_[A-Za-z0-9]{16,}"
    r"|AIza[A-Za-z0-9_-]{16,}"
    r"|xox[abprs]-[A-Za-z0-9-]{8,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"  # signed web tokens
    r")"
    r"|://[^/?#\s]*@"  # a URL with its user's password
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|\bBearer\s+[A-Za-z0-9._~+/-]{8,}"
)


def names_secret(setting: str) -> bool:
    """Whether the value of a setting of this name would be one: api_key, aws-secret-access-key."""
    words = re.findall(r"[a-z0-9]+", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", setting).lower())
    return bool(words) and (words[-1] in _WORDS or bool(_RUN_TOGETHER.search("".join(words))))


def looks_secret(text: str) -> bool:
    """Whether a text holds one, as far as its form shows that."""
    return bool(_FORMS.search(text))


def without_secrets(text: str) -> str:
    """A text that others wrote, without what looks like one in it."""
    return _FORMS.sub("[secret]", text)
