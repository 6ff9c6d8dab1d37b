"""The command line of a local gateway."""

from __future__ import annotations

from pathlib import Path

from penstock.control.managers.fleet.gateway_process import SHARE_PORT, GatewayCommand
from penstock.control.settings import GatewayTls

COMMAND = GatewayCommand("gw-1", Path("/bin/gw"), "a:1", "b:2", Path("/data"))
SECRET = GatewayCommand(
    "gw-1",
    Path("/bin/gw"),
    "a:1",
    "b:2",
    Path("/data"),
    tls=GatewayTls(Path("/c.pem"), Path("/k.pem")),
)


def test_every_generation_shows_the_certificate() -> None:
    for command in (SECRET, SECRET.successor(), SECRET.of_generation(7)):
        assert "--tls-cert /c.pem --tls-key /k.pem" in " ".join(command.argv())
    assert "--tls-cert" not in COMMAND.argv()


def test_a_gateway_without_the_certificate_runs_another_command() -> None:
    assert SECRET.runs(["sh", *SECRET.argv()[1:], SHARE_PORT])
    assert not SECRET.runs(COMMAND.argv())
