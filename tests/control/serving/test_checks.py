"""What is found out before anything is started."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.control.errors import AddressTaken, CannotStart, Code
from penstock.control.serving.checks import GIB, check_memory, check_ports
from penstock.control.serving.options import ServeOptions
from tests.fakes.control_errors import raises_code
from tests.fakes.ports import free_ports


@pytest.fixture
def options() -> ServeOptions:
    gateway, admin, rpc, metrics = (f"127.0.0.1:{port}" for port in free_ports(4))
    return ServeOptions(
        "m", "mini", Path("/data"), gateway=gateway, admin=admin, rpc=rpc, metrics=metrics
    )


@pytest.fixture
def listener(options: ServeOptions) -> Iterator[socket.socket]:
    """Somebody who listens where the admin API is to be."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(options.admin.rpartition(":")[2])))
        taken.listen()
        yield taken


def test_free_ports_are_fine(options: ServeOptions) -> None:
    check_ports(options, [])


@pytest.mark.usefixtures("listener")
def test_a_taken_port_is_named_with_its_holder_and_its_flag(options: ServeOptions) -> None:
    with pytest.raises(AddressTaken) as taken:
        check_ports(options, [])
    for words in (options.admin, f"process {os.getpid()}", "--admin"):
        assert words in str(taken.value)


@pytest.mark.usefixtures("listener")
def test_a_port_of_a_process_that_will_be_adopted_is_fine(options: ServeOptions) -> None:
    check_ports(options, [os.getpid()])


def test_one_port_for_two_purposes_is_refused() -> None:
    options = ServeOptions(
        "m", "mini", Path("/data"), gateway="127.0.0.1:9000", admin="127.0.0.1:9000"
    )
    with raises_code(Code.INVALID_SETTING, match=r"--admin is .* the port of --gateway"):
        check_ports(options, [])


def test_metrics_have_a_port_of_their_own_and_need_it_not() -> None:
    options = ServeOptions(
        "m", "mini", Path("/data"), metrics="127.0.0.1:9001", head_metrics="127.0.0.1:9001"
    )
    with raises_code(
        Code.INVALID_SETTING, match=r"--head-metrics is .* the port of --gateway-metrics"
    ):
        check_ports(options, [])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        gateway, admin, rpc, metrics = (f"127.0.0.1:{port}" for port in free_ports(4))
        elsewhere = f"127.0.0.1:{taken.getsockname()[1]}"
        check_ports(
            ServeOptions(
                *("m", "mini", Path("/data")),
                gateway=gateway,
                admin=admin,
                rpc=rpc,
                metrics=metrics,
                node_metrics=elsewhere,
            ),
            [],
        )


def test_no_port_is_refused() -> None:
    options = ServeOptions("m", "mini", Path("/data"), gateway="127.0.0.1:0")
    with raises_code(Code.INVALID_SETTING, match="--gateway"):
        check_ports(options, [])


def test_an_address_of_another_machine_is_refused(options: ServeOptions) -> None:
    options = ServeOptions("m", "mini", Path("/data"), gateway="192.0.2.1:8080")
    with pytest.raises(AddressTaken, match=r"192\.0\.2\.1:8080.*--gateway"):
        check_ports(options, [])


def test_too_little_memory_for_vllm_says_how_much_is_needed() -> None:
    with pytest.raises(CannotStart, match=r"need about 4 GiB, 3\.0 GiB are available"):
        check_memory("vllm", 2, 3 * GIB)


def test_the_simulated_engine_needs_no_memory_to_speak_of() -> None:
    check_memory("simulated", 8, 0)
    check_memory("vllm", 1, 2 * GIB)
