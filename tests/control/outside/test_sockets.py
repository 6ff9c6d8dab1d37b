"""Listening sockets, and what those that they accept have from them."""

from __future__ import annotations

import socket

import pytest

from penstock.control.errors import AddressTaken
from penstock.control.outside.sockets import listen


def test_an_answer_in_two_writes_waits_for_no_acknowledgement_between_them() -> None:
    with listen("127.0.0.1", 0, flag="--admin") as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_address_that_is_taken_is_told_with_the_flag_that_names_it() -> None:
    with listen("127.0.0.1", 0, flag="--admin") as listener:
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(AddressTaken, match=rf"127\.0\.0\.1:{port}: .*--admin"):
            listen("127.0.0.1", port, flag="--admin")
