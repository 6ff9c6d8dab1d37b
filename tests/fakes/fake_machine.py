"""A machine for set-up's scripts: programs on PATH that note how they were called.

The scripts run as they are, in a copy of the checkout's `setup/`; what they would call (dpkg, apt,
sudo, cmake, uv) is a small program here. `notes()` gives the calls.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

NOTE = r"""#!%s -I
import json, os, sys
home = os.path.dirname(os.path.abspath(__file__)) + "/../fakes/"
home = os.environ.get("FAKES", home)
def has(name):
    return os.path.exists(os.path.join(home, name))
def lines(name):
    return open(os.path.join(home, name)).read().split() if has(name) else []
def note():
    call = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
    with open(os.path.join(home, "notes"), "a") as out:
        out.write(json.dumps({"call": call, "env": dict(os.environ)}) + "\n")
"""
PROGRAMS = {
    "dpkg-query": """
print("install ok installed" if sys.argv[-1] in lines("installed") else "", end="")
""",
    "apt-cache": """
for name in sys.argv[2:]:
    print(f"{name}:\\n  Candidate: {'1.0' if name in lines('archive') else '(none)'}")
""",
    "apt-get": """
note()
if has("lock-held"):
    os.remove(os.path.join(home, "lock-held"))
    print("E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)")
    sys.exit(100)
""",
    "sudo": """
note()
kept = next((a for a in sys.argv if a.startswith("--preserve-env=")), "=").split("=")[1].split(",")
env = {k: v for k, v in os.environ.items() if k in ("PATH", "FAKES", *kept)}
command = [a for a in sys.argv[1:] if not a.startswith("--preserve-env")]
os.execvpe(command[0], command, env)
""",
    "cmake": "note()\n",
    "uv": """
note()
if "--dry-run" in sys.argv:
    answer = (lines("torch") or ["offered"])[0]
    if answer == "refused":
        sys.exit("error: No solution found when resolving dependencies")
    if answer == "unreachable":
        print("error: Failed to fetch: an index\\n  cause: dns error", file=sys.stderr)
        sys.exit(2)
elif has("interrupt"):
    sys.exit(130)
""",
}


@dataclass(frozen=True)
class FakeMachine:
    """A checkout with fakes around it. `env` is what its scripts run with."""

    folder: Path

    @property
    def checkout(self) -> Path:
        """The copy of the repository that the scripts think they are in."""
        return self.folder / "checkout"

    @property
    def env(self) -> dict[str, str]:
        """Nothing of this machine's but the programs behind the fakes; pip asks no network."""
        return {
            "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin",
            "HOME": str(self.folder),
            "FAKES": str(self.folder / "fakes"),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.folder / "wheels"),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }

    def say(self, name: str, text: str = "") -> None:
        """Tells the fakes something: `installed`, `archive`, `lock-held`, `torch`, `interrupt`."""
        (self.folder / "fakes" / name).write_text(text)

    def unsay(self, name: str) -> None:
        """Takes it back."""
        (self.folder / "fakes" / name).unlink()

    def run(self, *command: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in the checkout."""
        return subprocess.run(
            command,
            cwd=self.checkout,
            env=self.env | env,
            capture_output=True,
            text=True,
            check=False,
        )

    def python(self, code: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Runs code that may import the checkout's set-up."""
        return self.run(
            sys.executable, "-c", f"import sys; sys.path.insert(0, 'setup')\n{code}", **env
        )

    def notes(self, program: str) -> list[dict[str, str]]:
        """The environments that a program was called with."""
        return [json.loads(line)["env"] for line in self._noted(program)]

    def calls(self, program: str) -> list[list[str]]:
        """The arguments that a program was called with."""
        return [json.loads(line)["call"][1:] for line in self._noted(program)]

    def _noted(self, program: str) -> list[str]:
        notes = self.folder / "fakes" / "notes"
        found = notes.read_text().splitlines() if notes.exists() else []
        return [line for line in found if json.loads(line)["call"][0] == program]


def make(folder: Path) -> FakeMachine:
    """A machine where every system package is in the archive and none is installed."""
    machine = FakeMachine(folder)
    for name in ("bin", "fakes", "wheels", "checkout"):
        (folder / name).mkdir(parents=True)
    for name, body in PROGRAMS.items():
        if name != "uv":
            program(folder / "bin" / name, body)
    shutil.copytree(
        ROOT / "setup", machine.checkout / "setup", ignore=shutil.ignore_patterns("__pycache__")
    )
    locks = machine.checkout / "setup" / "locks"
    for name in ("clients", "core", "cpu", "cuda", "dev", "torch-ordinary"):
        (locks / f"{name}.txt").write_text(f"one==1 \\\n    --hash=sha256:{'0' * 64}\n")
    wheel = uv_wheel(folder / "wheels")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (locks / "uv.txt").write_text(f"uv==1 \\\n    --hash=sha256:{digest}\n")
    return machine


def program(path: Path, body: str) -> None:
    """Writes a fake program."""
    path.write_text(NOTE % sys.executable + body)
    path.chmod(0o755)


def uv_wheel(folder: Path) -> Path:
    """A wheel that pip installs, with the fake uv as its program."""
    path = folder / "uv-1-py3-none-any.whl"
    files = {
        "uv-1.data/scripts/uv": NOTE.replace("#!%s -I", "#!python") + PROGRAMS["uv"],
        "uv-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: uv\nVersion: 1\n",
        "uv-1.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in {**files, "uv-1.dist-info/RECORD": record(files)}.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o100755 << 16
            wheel.writestr(info, text)
    return path


def record(files: dict[str, str]) -> str:
    """A wheel's list of its files."""
    lines = []
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()
        lines.append(f"{name},sha256={digest.rstrip('=')},{len(text)}\n")
    return "".join(lines)
