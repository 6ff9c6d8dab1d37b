"""What the sum of `penstock.replica.fit` says, beside what a replica with real vLLM takes on CPUs.

    .venv/bin/python replica/benchmarks/memory.py --work /tmp/memory

Starts one replica after the other and measures each while it is idle, once it is ready: PSS of all
processes of its group. Run it alone: shared pages count by how many processes share them.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

MIB = 1 << 20
SHIPPED = Path(__file__).parents[1] / "penstock/replica/default_model/weights/model"
LARGE = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 12}
LARGE |= {"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 64}


def main() -> int:
    """Prints a line for each shape."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path, required=True, help="where models are made")
    work = parser.parse_args().work
    large = str(large_model(work / "large", 32_000))
    wide = str(large_model(work / "wide", 128_000))
    shapes: list[tuple[str, ...]] = [
        ("penstock-mini",),
        ("penstock-mini", "max_model_len=1024", "cpu_kvcache_gib=0.25"),
        ("penstock-embed",),
        (large, "cpu_kvcache_gib=0.5"),
        (large, "cpu_kvcache_gib=0.5", "dtype=float32"),
        (wide, "cpu_kvcache_gib=0.5"),
    ]
    for model, *settings in shapes:
        told, taken = predicted(model, settings)["needed"], measured(model, settings)
        name = " ".join((Path(model).name, *settings))
        sys.stdout.write(
            f"{name}: sum {told / MIB:.0f} MiB, taken {taken / MIB:.0f} MiB, "
            f"{100 * (told / taken - 1):+.1f} %\n"
        )
        sys.stdout.flush()
    return 0


def arguments(settings: Sequence[str]) -> list[str]:
    """Engine arguments of a command line."""
    return [word for setting in settings for word in ("--engine-arg", setting)]


def predicted(model: str, settings: Sequence[str]) -> dict[str, int]:
    """The sum."""
    command = [sys.executable, "-m", "penstock.replica.fit", model, "--json", *arguments(settings)]
    told: dict[str, int] = json.loads(subprocess.check_output(command))
    return told


def measured(model: str, settings: Sequence[str]) -> int:
    """Bytes that a replica takes once it is ready."""
    command = [sys.executable, "-m", "penstock.replica", "--replica-id", "m", "--deployment", "m"]
    command += ["--engine", "vllm", "--model", model, *arguments(settings)]
    replica = subprocess.Popen(command, stdout=subprocess.PIPE, process_group=0)
    try:
        assert replica.stdout is not None
        replica.stdout.readline()  # it says that it is ready
        return sum(map(pss, members(replica.pid)))
    finally:
        os.killpg(replica.pid, signal.SIGTERM)
        replica.wait()


def members(group: int) -> list[int]:
    """The processes of a group."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(directory.name)) == group:
                found.append(int(directory.name))
        except OSError:
            continue
    return found


def pss(pid: int) -> int:
    """Bytes of a process, its part of shared pages among them."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    found = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines[1:]}
    sys.stderr.write(
        f"  {pid}: PSS {found['Pss'] / MIB:.0f} MiB, of that anonymous "
        f"{found['Pss_Anon'] / MIB:.0f}, files {found['Pss_File'] / MIB:.0f}\n"
    )
    return found["Pss"]


def large_model(directory: Path, vocabulary: int) -> Path:
    """A model with random weights, with the shipped one's tokenizer."""
    if (directory / "model.safetensors").exists():
        return directory
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(SHIPPED, **LARGE, vocab_size=vocabulary)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(directory)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        (directory / name).write_bytes((SHIPPED / name).read_bytes())
    return directory


if __name__ == "__main__":
    raise SystemExit(main())
