"""How uv reaches the network: as pip is configured to."""

from __future__ import annotations

from pathlib import Path

from installer import parse_settings, with_certificates
from tests.fakes.fake_machine import FakeMachine


def test_pips_settings_are_read_from_what_it_lists() -> None:
    listed = ":env:.find-links='/a/wheels'\nglobal.cert='/a b.pem'\nnoise\n"
    assert list(parse_settings(listed)) == [("find-links", "/a/wheels"), ("cert", "/a b.pem")]


def test_the_systems_certificates_serve_pip_and_uv(tmp_path: Path) -> None:
    store = tmp_path / "ca.crt"
    store.touch()
    assert with_certificates({}, {}, store) == {"PIP_CERT": str(store), "UV_SYSTEM_CERTS": "1"}


def test_a_machine_without_a_store_keeps_the_installers_own(tmp_path: Path) -> None:
    assert with_certificates({}, {}, tmp_path / "none.crt") == {}


def test_certificates_that_the_user_names_go_first(tmp_path: Path) -> None:
    store = tmp_path / "ca.crt"
    store.touch()
    mine = {"SSL_CERT_FILE": "/mine.pem"}
    assert with_certificates(mine, {}, store) == {**mine, "PIP_CERT": "/mine.pem"}
    assert with_certificates({}, {"cert": "/pips.pem"}, store) == {"SSL_CERT_FILE": "/pips.pem"}


def test_pips_proxy_is_uvs_proxy_unless_the_environment_names_one(tmp_path: Path) -> None:
    none = tmp_path / "none.crt"
    proxied = with_certificates({"https_proxy": "http://b"}, {"proxy": "http://a"}, none)
    assert proxied == {"https_proxy": "http://b", "HTTP_PROXY": "http://a"}


def test_uv_gets_pips_indexes_and_the_extra_one(set_up: FakeMachine) -> None:
    done = set_up.python(
        "import installer; print(*installer.sources())",
        PIP_EXTRA_INDEX_URL="http://one http://two",
        PIP_TRUSTED_HOST="one",
        PENSTOCK_EXTRA_INDEX="http://three",
    )
    assert "--index http://one --index http://two" in done.stdout
    assert "--allow-insecure-host one" in done.stdout
    assert done.stdout.endswith("--index http://three\n")
