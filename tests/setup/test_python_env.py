"""How .venv is made: set-up's own scripts with the real pip, and a fake uv that pip installs."""

from __future__ import annotations

import shutil
import subprocess

from tests.fakes.fake_machine import FakeMachine
from tests.setup.conftest import INSTALL_CORE


def installs(machine: FakeMachine) -> list[list[str]]:
    """What uv was asked to install."""
    return [call for call in machine.calls("uv") if "--dry-run" not in call]


def test_what_is_installed_is_not_installed_again(set_up: FakeMachine) -> None:
    done = set_up.python(INSTALL_CORE)
    assert done.returncode == 0, done.stderr
    assert not set_up.calls("uv")


def test_every_package_is_checked_against_its_hash(set_up_once: FakeMachine) -> None:
    assert all("--require-hashes" in call for call in installs(set_up_once))
    assert installs(set_up_once)


def test_an_installer_with_another_hash_is_refused(machine: FakeMachine) -> None:
    lock = machine.checkout / "setup" / "locks" / "uv.txt"
    lock.write_text(f"uv==1 \\\n    --hash=sha256:{'0' * 64}\n")
    done = machine.python(INSTALL_CORE)
    assert done.returncode == 1
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in done.stderr


def test_an_interrupted_environment_is_made_anew(machine: FakeMachine) -> None:
    half = machine.checkout / ".venv" / "bin" / "python"
    half.parent.mkdir(parents=True)
    shutil.copy("/bin/true", half)
    done = machine.python(INSTALL_CORE)
    assert done.returncode == 0, done.stderr
    assert ".venv is not whole: making it anew" in done.stdout


def test_interrupted_packages_are_installed_once_more_from_the_beginning(
    set_up: FakeMachine,
) -> None:
    lock = set_up.checkout / "setup" / "locks" / "core.txt"
    lock.write_text(lock.read_text().replace("one==1", "one==2"))
    set_up.say("interrupt")
    assert set_up.python(INSTALL_CORE).returncode == 1
    set_up.unsay("interrupt")
    assert set_up.python(INSTALL_CORE).returncode == 0
    first, second = installs(set_up)
    assert "--reinstall" not in first
    assert "--reinstall" in second


def test_a_copied_checkout_runs_its_own_programs(set_up: FakeMachine) -> None:
    done = set_up.python(INSTALL_CORE)
    assert "turning it to this folder" in done.stdout
    pip = set_up.checkout / ".venv" / "bin" / "pip"
    assert pip.read_text().startswith(f"#!{set_up.checkout}/.venv/bin/python")
    version = subprocess.run([pip, "--version"], capture_output=True, text=True, check=True)
    assert str(set_up.checkout) in version.stdout
    assert "turning" not in set_up.python(INSTALL_CORE).stdout


def test_an_environment_without_a_stamp_of_its_own_is_known_by_its_configuration(
    set_up: FakeMachine,
) -> None:
    (set_up.checkout / ".venv" / "penstock-venv.stamp").unlink()
    assert "turning it to this folder" in set_up.python(INSTALL_CORE).stdout


def test_a_copied_checkout_installs_the_project_anew_and_builds_nothing_of_the_original(
    set_up_once: FakeMachine, set_up: FakeMachine
) -> None:
    digest = "import builds; print(builds.sources_digest())"
    assert set_up_once.python(digest).stdout != set_up.python(digest).stdout
    tree = set_up.checkout / "gateway_cpp" / "build" / "asan"
    tree.mkdir(parents=True)
    (tree / "CMakeCache.txt").write_text("CMAKE_CACHEFILE_DIR:INTERNAL=/elsewhere/build/asan\n")
    own = set_up.checkout / "gateway_cpp" / "build" / "release"
    own.mkdir()
    (own / "CMakeCache.txt").write_text(f"CMAKE_CACHEFILE_DIR:INTERNAL={own}\n")
    done = set_up.python("import builds, places; builds.forget_foreign(places.ROOT)")
    assert done.returncode == 0, done.stderr
    assert not tree.exists()
    assert own.exists()


def test_two_builds_of_vllm_never_share_an_environment(set_up: FakeMachine) -> None:
    (set_up.checkout / ".venv" / "penstock-cuda.stamp").write_text("whole")
    done = set_up.python(
        "import python_env, places\n"
        "python_env.ensure(('cpu',), places.LOGS); print(python_env.installed_build())",
        PENSTOCK_TORCH="ordinary",
    )
    assert ".venv holds vLLM's cuda build: making it anew" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "cpu"
