"""A node never offers an address that its head cannot reach."""

from __future__ import annotations

import pytest

from penstock.control.errors import Code
from penstock.control.node_addresses import NodeAddresses, advertised, node_addresses
from tests.fakes.control_errors import raises_code

HERE, FAR = "127.0.0.1:8082", "10.0.0.1:8082"


def outgoing(head: str) -> str:
    return "127.0.0.1" if head == HERE else "10.0.0.7"


@pytest.mark.parametrize(
    ("head", "listen", "host", "expected"),
    [
        (HERE, "", "", NodeAddresses("127.0.0.1:0", "127.0.0.1")),
        (HERE, "127.0.0.1:9", "127.0.0.1", NodeAddresses("127.0.0.1:9", "127.0.0.1")),
        (FAR, "", "", NodeAddresses("10.0.0.7:0", "10.0.0.7")),
        (FAR, "0.0.0.0:9", "", NodeAddresses("0.0.0.0:9", "10.0.0.7")),
        (FAR, "10.0.0.8:9", "", NodeAddresses("10.0.0.8:9", "10.0.0.8")),
        (FAR, "", "gpu-7", NodeAddresses("10.0.0.7:0", "gpu-7")),
    ],
)
def test_what_is_left_open_is_found(
    head: str, listen: str, host: str, expected: NodeAddresses
) -> None:
    assert node_addresses(head, listen, host, outgoing) == expected


@pytest.mark.parametrize(
    ("listen", "host", "flag"),
    [
        ("127.0.0.1:9", "", "--listen"),
        ("localhost:9", "10.0.0.7", "--listen"),
        ("10.0.0.7:9", "127.0.0.1", "--host"),
        ("[::1]:9", "", "--listen"),
    ],
)
def test_a_loopback_address_is_not_offered_to_another_machine(
    listen: str, host: str, flag: str
) -> None:
    with raises_code(Code.INVALID_SETTING, match=f"{flag} is .*{FAR} cannot reach.*10.0.0.7"):
        node_addresses(FAR, listen, host, outgoing)


def test_one_that_listens_everywhere_is_reached_where_its_replicas_are() -> None:
    assert advertised("0.0.0.0", "10.0.0.7") == "10.0.0.7"
    assert advertised("[::]", "gpu-7") == "gpu-7"
    assert advertised("10.0.0.8", "10.0.0.7") == "10.0.0.8"
