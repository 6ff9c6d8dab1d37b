"""Words of gRPC and of its messages, in those of the head."""

from __future__ import annotations

import pytest

from penstock.control.rpc.wire import host_of


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("ipv4:10.0.0.7:50051", "10.0.0.7"),
        ("ipv6:%5B2001:db8::7%5D:50051", "[2001:db8::7]"),
        ("ipv6:[::1]:50051", "[::1]"),
        ("unix:/run/head.sock", ""),
        ("", ""),
    ],
)
def test_the_host_of_a_peer_is_what_its_reports_come_from(peer: str, host: str) -> None:
    assert host_of(peer) == host
