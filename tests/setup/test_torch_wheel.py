"""Which torch a machine without a GPU gets."""

from __future__ import annotations

import subprocess

import pytest

from tests.fakes.fake_machine import FakeMachine

PIN = "torch==2.13.0+cpu"


def choose(machine: FakeMachine, **env: str) -> subprocess.CompletedProcess[str]:
    """The locks that set-up takes for vLLM's CPU build, one name a line."""
    lock = machine.checkout / "setup" / "locks" / "cpu.txt"
    known = f" \\\n    --hash=sha256:{'0' * 64}\n"
    lock.write_text(f"anyio==4{known}torch==2.13.0 ; sys_platform == 'x'{known}{PIN}{known}")
    return machine.python(
        "import places, torch_wheel\nfor path in torch_wheel.locks(places.LOGS): print(path.name)",
        **env,
    )


def test_the_cpu_wheel_is_taken_where_an_index_has_it(set_up: FakeMachine) -> None:
    assert choose(set_up).stdout == "cpu.txt\n"
    assert set_up.calls("uv")[0][-1] == PIN


def test_the_ordinary_wheel_and_its_size_are_named_where_no_index_has_the_other(
    set_up: FakeMachine,
) -> None:
    set_up.say("torch", "refused")
    said, *files = choose(set_up).stdout.splitlines()
    assert f"no index that pip knows has {PIN}" in said
    assert "about 3 GB" in said
    assert files == ["cpu-without-torch.txt", "torch-ordinary.txt"]
    rest = set_up.checkout / "build" / "setup" / "cpu-without-torch.txt"
    assert rest.read_text() == f"anyio==4 \\\n    --hash=sha256:{'0' * 64}\n"


def test_an_index_that_does_not_answer_has_not_said_no(set_up: FakeMachine) -> None:
    set_up.say("torch", "unreachable")
    done = choose(set_up)
    assert done.returncode == 1
    assert f"could not ask the package indexes for {PIN}" in done.stderr
    assert "dns error" in done.stderr
    assert len(set_up.calls("uv")) == 3


def test_the_ordinary_wheel_can_be_asked_for_by_name(set_up: FakeMachine) -> None:
    set_up.say("torch", "unreachable")
    done = choose(set_up, PENSTOCK_TORCH="ordinary")
    assert done.stdout.splitlines() == ["cpu-without-torch.txt", "torch-ordinary.txt"]


@pytest.mark.parametrize("choice", ["cpu", "nothing"])
def test_a_torch_that_there_is_not_is_refused(set_up: FakeMachine, choice: str) -> None:
    assert f"PENSTOCK_TORCH={choice}: say ordinary" in choose(set_up, PENSTOCK_TORCH=choice).stderr
