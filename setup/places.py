"""Where things lie in this checkout."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "setup" / "locks"
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
CLIENTS_VENV = ROOT / ".venv-clients"
NODE_CLIENTS = ROOT / "tests" / "clients" / "node"
LOGS = ROOT / "build" / "setup"
