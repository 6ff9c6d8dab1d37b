"""What is printed when everything is ready."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

from penstock.control.serving.options import Adapter, ServeOptions
from penstock.control.serving.panel import admin_curl, curl, python, ready_text
from penstock.control.settings import GatewayTls

WISH = ServeOptions(
    "penstock-mini",
    "penstock-mini",
    Path("/data"),
    adapters=(Adapter("pirate", "pirate@1", "x"),),
    gateway="0.0.0.0:9000",
    admin="127.0.0.1:9001",
)


def test_the_text_names_every_address_and_model() -> None:
    text = ready_text(WISH, seconds=12.3)
    for words in (
        "http://127.0.0.1:9000/v1",
        "http://127.0.0.1:9001/admin/v1",
        "penstock-mini, penstock-mini:pirate",
        "/data",
        "12 s",
        "Ctrl-C stops everything",
    ):
        assert words in text
    assert curl(WISH) in text
    assert python(WISH) in text
    assert admin_curl(WISH) in text


def test_where_keys_are_asked_for_the_snippets_send_one_and_the_text_says_how_to_make_it() -> None:
    text = ready_text(WISH, seconds=1, asks_for_keys=True)
    assert "penstock keys create" in text
    assert "-H 'Authorization: Bearer YOUR_KEY'" in text
    assert 'api_key="YOUR_KEY"' in text
    assert 'api_key="none"' not in text
    open_to_all = ready_text(WISH, seconds=1)
    assert "Authorization: Bearer YOUR_KEY" not in open_to_all
    assert "penstock keys create" not in open_to_all
    assert 'api_key="none"' in open_to_all


def test_a_gateway_with_a_certificate_is_called_by_https() -> None:
    secret = replace(WISH, gateway_tls=GatewayTls(Path("/c.pem"), Path("/k.pem")))
    text = ready_text(secret, seconds=1)
    assert "https://127.0.0.1:9000/v1" in text
    assert "/c.pem" in text
    assert "https://127.0.0.1:9000/v1/chat/completions" in curl(secret)
    assert "http://127.0.0.1:9001/admin/v1" in text
    assert "Certificate" not in ready_text(WISH, seconds=1)


def test_the_curl_snippet_is_a_command_with_a_json_body() -> None:
    words = shlex.split(curl(WISH))
    assert words[0] == "curl"
    body = json.loads(words[words.index("-d") + 1])
    assert body["model"] == "penstock-mini"


def test_the_python_snippet_is_python() -> None:
    compile(python(WISH), "snippet", "exec")


def test_the_snippets_of_an_embedding_model_ask_for_an_embedding() -> None:
    embeds = replace(WISH, model="penstock-embed", name="embed", adapters=())
    words = shlex.split(curl(embeds))
    assert words[1] == "http://127.0.0.1:9000/v1/embeddings"
    assert json.loads(words[words.index("-d") + 1])["model"] == "embed"
    compile(python(embeds), "snippet", "exec")
    assert "client.embeddings.create" in python(embeds)


def test_the_admin_snippet_reads_the_token_from_its_file() -> None:
    words = shlex.split(admin_curl(replace(WISH, data_dir=Path("/my data"))))
    assert words[0:2] == ["curl", "-H"]
    assert words[2] == "Authorization: Bearer $(cat '/my data/admin.token')"
