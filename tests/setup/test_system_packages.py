"""System packages, with set-up's own scripts and a fake apt, dpkg and sudo."""

from __future__ import annotations

import subprocess

from tests.fakes.fake_machine import FakeMachine

ROOT_USER, SOMEBODY = 0, 1000


def ensure(
    machine: FakeMachine, user: int, *packages: tuple[str, ...], **env: str
) -> subprocess.CompletedProcess[str]:
    """Set-up's step for these packages, each by its names, as a user."""
    wanted = ", ".join(f"Package({names!r}, 'a reason')" for names in packages)
    return machine.python(
        "import places; from system_packages import Package, ensure\n"
        f"ensure([{wanted}], places.LOGS, {user})",
        **env,
    )


def test_what_is_installed_is_left_alone(machine: FakeMachine) -> None:
    machine.say("installed", "cmake")
    done = ensure(machine, SOMEBODY, ("cmake",))
    assert done.returncode == 0, done.stderr
    assert not machine.calls("apt-get")


def test_the_first_name_that_the_archive_has_is_installed(machine: FakeMachine) -> None:
    machine.say("archive", "libboost1.81-dev cmake")
    done = ensure(machine, ROOT_USER, ("libboost1.83-dev", "libboost1.81-dev"), ("cmake",))
    assert done.returncode == 0, done.stderr
    assert machine.calls("apt-get")[-1][-2:] == ["libboost1.81-dev", "cmake"]


def test_apt_waits_for_the_first_boots_own_updates(machine: FakeMachine) -> None:
    machine.say("archive", "cmake")
    machine.say("lock-held")
    done = ensure(machine, ROOT_USER, ("cmake",))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "another program holds apt's lock" in done.stdout
    assert [call[4] for call in machine.calls("apt-get")] == ["update", "update", "install"]
    assert all("DPkg::Lock::Timeout=300" in call for call in machine.calls("apt-get"))


def test_sudo_leaves_apt_its_proxies(machine: FakeMachine) -> None:
    machine.say("archive", "cmake")
    done = ensure(machine, SOMEBODY, ("cmake",), http_proxy="http://proxy:3128", no_proxy="here")
    assert done.returncode == 0, done.stderr
    assert len(machine.calls("sudo")) == 2
    for env in machine.notes("apt-get"):
        assert env["http_proxy"] == "http://proxy:3128"
        assert env["no_proxy"] == "here"
        assert env["DEBIAN_FRONTEND"] == "noninteractive"
    assert not any("proxy:3128" in part for call in machine.calls("sudo") for part in call)


def test_without_sudo_the_hint_names_what_this_system_has(machine: FakeMachine) -> None:
    (machine.folder / "bin" / "sudo").unlink()
    machine.say("archive", "libboost1.81-dev libnuma1")
    done = ensure(
        machine,
        SOMEBODY,
        ("libboost1.83-dev", "libboost1.81-dev"),
        ("libnuma1", "libnuma1t64"),
        PATH=str(machine.folder / "bin"),
    )
    assert "apt-get install libboost1.81-dev libnuma1\n" in done.stderr


def test_without_sudo_and_package_lists_the_lists_come_first(machine: FakeMachine) -> None:
    (machine.folder / "bin" / "sudo").unlink()
    done = ensure(machine, SOMEBODY, ("cmake",), PATH=str(machine.folder / "bin"))
    assert "have an administrator run\n  `apt-get update`" in done.stderr


def test_a_package_that_the_archive_has_not_is_named(machine: FakeMachine) -> None:
    machine.say("archive", "cmake")
    done = ensure(machine, ROOT_USER, ("cmake",), ("g++",))
    assert "no package g++ (a reason) for this distribution" in done.stderr
