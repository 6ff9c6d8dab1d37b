"""What a user sees when everything is ready: where to go, and snippets that work when pasted.

Pure.
"""

from __future__ import annotations

import shlex

from penstock.control.serving.options import ServeOptions

QUESTION = "What is Penstock?"
KEY = "YOUR_KEY"
KEYS = """\
  Keys         clients have to send one; `penstock tenants create NAME` and
               `penstock keys create NAME` make one
"""


def ready_text(options: ServeOptions, *, seconds: float, asks_for_keys: bool = False) -> str:
    """The whole text. `seconds`: how long it took. `asks_for_keys`: clients have to send one."""
    key, keys = (KEY, KEYS) if asks_for_keys else ("", "")
    return f"""\
Penstock is ready after {seconds:.0f} s.

  OpenAI API   {options.gateway_url}/v1
  Admin API    {options.admin_url}/admin/v1   (documentation: {options.admin_url}/docs)
{_certificate(options)}{keys}  Models       {", ".join(options.model_names)}
  Logs, data   {options.data_dir}

With curl:

{curl(options, key)}

With Python (pip install openai):

{python(options, key)}

The admin API, with the token that lies in the data directory:

{admin_curl(options)}

Ctrl-C stops everything."""


def _certificate(options: ServeOptions) -> str:
    """A line for who would use an address that the certificate is not for."""
    if options.gateway_tls is None:
        return ""
    return (
        f"  Certificate  {options.gateway_tls.cert}\n"
        "               (clients say a name that is in it instead of the address, and trust who"
        " signed it)\n"
    )


def curl(options: ServeOptions, key: str = "") -> str:
    """A streamed question, for a shell; of a model that embeds, an embedding."""
    words = " -H 'Content-Type: application/json'"
    if key:
        words += f" -H 'Authorization: Bearer {key}'"
    if options.embeds:
        return f"""\
curl {options.gateway_url}/v1/embeddings{words} -d '{{
  "model": "{options.name}",
  "input": "{QUESTION}"
}}'"""
    return f"""\
curl -N {options.gateway_url}/v1/chat/completions{words} -d '{{
  "model": "{options.name}",
  "messages": [{{"role": "user", "content": "{QUESTION}"}}],
  "stream": true
}}'"""


def admin_curl(options: ServeOptions) -> str:
    """What runs, asked of the admin API, for a shell."""
    token = f'-H "Authorization: Bearer $(cat {shlex.quote(str(options.admin_token_file))})"'
    return f"curl {token} {options.admin_url}/admin/v1/deployments"


def python(options: ServeOptions, key: str = "") -> str:
    """A streamed question, for Python; of a model that embeds, an embedding."""
    if options.embeds:
        return f"""\
from openai import OpenAI

client = OpenAI(base_url="{options.gateway_url}/v1", api_key="{key or "none"}")
answer = client.embeddings.create(model="{options.name}", input="{QUESTION}")
print(answer.data[0].embedding)"""
    return f"""\
from openai import OpenAI

client = OpenAI(base_url="{options.gateway_url}/v1", api_key="{key or "none"}")
answer = client.chat.completions.create(
    model="{options.name}",
    messages=[{{"role": "user", "content": "{QUESTION}"}}],
    stream=True,
)
for chunk in answer:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
print()"""
