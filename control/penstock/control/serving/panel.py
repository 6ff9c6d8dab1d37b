"""What a user sees when everything is ready: where to go, and snippets that work when pasted.

Pure.
"""

from __future__ import annotations

from penstock.control.serving.wish import Wish

QUESTION = "What is Penstock?"


def ready_text(wish: Wish, *, seconds: float) -> str:
    """The whole text; `seconds` is how long it took."""
    return f"""\
Penstock is ready after {seconds:.0f} s.

  OpenAI API   {wish.gateway_url}/v1
  Admin API    {wish.admin_url}/admin/v1   (documentation: {wish.admin_url}/docs)
  Models       {", ".join(wish.model_names)}
  Logs, data   {wish.data_dir}

With curl:

{curl(wish)}

With Python (pip install openai):

{python(wish)}

Ctrl-C stops everything."""


def curl(wish: Wish) -> str:
    """A streamed question, for a shell."""
    return f"""\
curl -N {wish.gateway_url}/v1/chat/completions -H 'Content-Type: application/json' -d '{{
  "model": "{wish.name}",
  "messages": [{{"role": "user", "content": "{QUESTION}"}}],
  "stream": true
}}'"""


def python(wish: Wish) -> str:
    """A streamed question, for Python."""
    return f"""\
from openai import OpenAI

client = OpenAI(base_url="{wish.gateway_url}/v1", api_key="none")
answer = client.chat.completions.create(
    model="{wish.name}",
    messages=[{{"role": "user", "content": "{QUESTION}"}}],
    stream=True,
)
for chunk in answer:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
print()"""
