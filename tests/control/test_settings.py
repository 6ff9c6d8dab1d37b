"""Settings are refused with the flag and the value in the message."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.control.errors import Code
from penstock.control.settings import (
    EngineLimits,
    GatewayTls,
    HeadSettings,
    LogRetention,
    NodeSettings,
    gateway_tls,
    split_address,
    split_hosts,
    split_modules,
)
from tests.fakes.control_errors import raises_code

DATA = Path("data")


@pytest.mark.parametrize("address", ["", "8080", ":8080", "a:", "a:x", "a:65536", "a:-1", "a:٣"])
def test_an_address_without_host_and_port_is_refused(address: str) -> None:
    with raises_code(Code.INVALID_SETTING, match=r"--rpc is .*must be host:port"):
        HeadSettings(DATA, rpc=address)


@pytest.mark.parametrize(("address", "parts"), [("a:0", ("a", 0)), ("[::1]:8080", ("[::1]", 8080))])
def test_an_address_is_taken_apart(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address, flag="--x") == parts


def test_a_gateway_without_a_port_is_refused_unless_there_is_none() -> None:
    with raises_code(Code.INVALID_SETTING, match="name a port"):
        HeadSettings(DATA, gateway="127.0.0.1:0")
    assert not HeadSettings(DATA, gateway="127.0.0.1:0", run_gateway=False).run_gateway


def test_https_takes_certificate_and_key() -> None:
    assert gateway_tls(None, None) is None
    with raises_code(Code.INVALID_SETTING, match="--tls-cert is given without --tls-key"):
        gateway_tls(Path("c.pem"), None)
    with raises_code(
        Code.INVALID_SETTING, match="--gateway-tls-key is given without --gateway-tls-ce"
    ):
        gateway_tls(None, Path("k.pem"), prefix="--gateway-")
    both = gateway_tls(Path("c.pem"), Path("/k.pem"))
    assert both is not None
    assert (both.cert, both.key) == (Path.cwd() / "c.pem", Path("/k.pem"))


def test_a_gateway_without_threads_is_refused() -> None:
    with raises_code(Code.INVALID_SETTING, match="--gateway-threads is 0"):
        HeadSettings(DATA, gateway_threads=0)


def test_a_node_that_strangers_reach_needs_a_token(tmp_path: Path) -> None:
    with raises_code(
        Code.INVALID_SETTING, match=r"--listen is 10\.0\.0\.7:1,.*--cluster-token-file"
    ):
        NodeSettings(head="a:1", data_dir=DATA, node_id="n", listen="10.0.0.7:1")
    token = tmp_path / "cluster.token"
    listen = "10.0.0.7:1"
    NodeSettings("a:1", DATA, "n", listen=listen, cluster_token_file=token)
    NodeSettings("a:1", DATA, "n", listen="[::1]:0")


def test_a_node_needs_a_name() -> None:
    with raises_code(Code.INVALID_SETTING, match="--node-id is empty"):
        NodeSettings(head="a:1", data_dir=DATA, node_id="")


@pytest.mark.parametrize("gib", [-1.0, float("nan"), float("inf")])
def test_a_cache_of_no_size_is_refused(gib: float) -> None:
    with raises_code(Code.INVALID_SETTING, match="--adapter-cache-gib is"):
        NodeSettings(head="a:1", data_dir=DATA, node_id="n1", adapter_cache_gib=gib)


@pytest.mark.parametrize("ports", ["", "9000", "9-", "-9", "9-8", "0-9", "9-65536", "a-b", "٣-9"])
def test_the_ports_of_replicas_are_a_range(ports: str) -> None:
    with raises_code(
        Code.INVALID_SETTING, match=f"--replica-ports is {ports!r}: it must be first-last"
    ):
        NodeSettings("a:1", DATA, "n", replica_ports=ports)
    NodeSettings("a:1", DATA, "n", replica_ports="9000-9000")


@pytest.mark.parametrize("value", [-1, float("nan"), 200_000])
def test_what_log_files_may_take_is_a_number_that_can_be(value: float) -> None:
    with raises_code(Code.INVALID_SETTING, match=f"--log-keep-gib is {value:g}: it must be 0"):
        LogRetention(gib=value)
    with raises_code(Code.INVALID_SETTING, match=f"--log-keep-days is {value:g}: it must be 0"):
        LogRetention(days=value)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("", ()),
        ("API.openai.com", ("api.openai.com",)),
        ("*.amazonaws.com, 10.0.0.7,[::1],", ("*.amazonaws.com", "10.0.0.7", "[::1]")),
    ],
)
def test_hosts_are_taken_apart(text: str, hosts: tuple[str, ...]) -> None:
    assert split_hosts(text) == hosts


@pytest.mark.parametrize("text", ["https://h", "h:80", "*", "*.", "a b", "-h", "h/v1", "a.*.com"])
def test_what_is_no_host_is_refused(text: str) -> None:
    with raises_code(Code.INVALID_SETTING, match=r"--provider-hosts has .*without port and scheme"):
        split_hosts(text)


def test_modules_are_taken_apart_and_what_is_none_is_refused() -> None:
    assert split_modules("ours.routing, other,") == ("ours.routing", "other")
    with raises_code(Code.INVALID_SETTING, match=r"--program-modules has 'a-b'"):
        split_modules("a-b")


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        (HeadSettings(DATA), "http://127.0.0.1:8080/v1"),
        (HeadSettings(DATA, gateway="0.0.0.0:9"), "http://127.0.0.1:9/v1"),
        (
            HeadSettings(DATA, gateway="h:9", gateway_tls=GatewayTls(Path("/c"), Path("/k"))),
            "https://h:9/v1",
        ),
        (HeadSettings(DATA, run_gateway=False), None),
        (HeadSettings(DATA, public_url="https://llm.example"), "https://llm.example/v1"),
        (HeadSettings(DATA, public_url="https://llm.example/v1/"), "https://llm.example/v1"),
        (
            HeadSettings(DATA, public_url="http://[::1]:80/llm", run_gateway=False),
            "http://[::1]:80/llm/v1",
        ),
    ],
)
def test_clients_are_told_where_a_gateway_is(settings: HeadSettings, url: str | None) -> None:
    assert settings.base_url == url


@pytest.mark.parametrize(
    "url",
    [
        *("llm.example", "ftp://llm.example", "https://", "https:///v1", "http://a:0"),
        *(
            "http://a:x",
            "http://[::1",
            "http://me:pw@a",
            "http://a?b=c",
            "http://a#b",
            "http://a b",
        ),
    ],
)
def test_a_public_url_that_no_client_could_use_is_refused(url: str) -> None:
    with raises_code(Code.INVALID_SETTING, match="--public-url is "):
        HeadSettings(DATA, public_url=url)


@pytest.mark.parametrize(
    ("per_token", "total", "flag"),
    [(-1, 1, "--max-engines-per-token is -1"), (1, 10_001, "--max-engines is 10001")],
)
def test_a_number_of_engines_that_cannot_be_is_refused(
    per_token: int, total: int, flag: str
) -> None:
    with raises_code(Code.INVALID_SETTING, match=flag):
        EngineLimits(per_token, total)
