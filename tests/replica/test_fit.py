"""`python -m penstock.replica.fit`: a sum without a start."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.replica import fit
from tests.fakes.large_models import llama_8b


def test_it_prints_the_sum_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit.main(["penstock-mini", "--free", str(8 << 30)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "penstock-mini on CPUs"
    rows = {line[2:16].strip(): line.split("MiB")[0][16:].strip() for line in printed[1:-1]}
    parts = [rows[what] for what in ("weights", "KV cache", "processes")]
    assert parts[1] == "1,024"
    assert rows["free"] == "8,192"
    assert printed[-1] == "It fits."


def test_it_says_why_not_and_what_helps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fit.main([str(llama_8b(tmp_path)), "--gpu", "t4"])
    *_, verdict, why, helps = capsys.readouterr().out.splitlines()
    assert verdict == "It does not fit."
    assert why.startswith("Why: gpu_memory_utilization=0.92 gives it 13.4 GiB")
    assert "tensor_parallel_size=2, or a GPU such as l4" in helps


def test_programs_read_it_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    fit.main(["penstock-mini", "--json", "--free", "1000", "--engine-arg", "cpu_kvcache_gib=0.5"])
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "too_large"
    assert told["needed"] == sum(line["bytes"] for line in told["lines"])
    assert {line["what"]: line["bytes"] for line in told["lines"]}["KV cache"] == 512 << 20
    assert told["refusal"].startswith("model penstock-mini: it needs about")


def test_a_model_that_is_not_here_is_said_to_be_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit.main(["someone/some-model"]) == 0
    assert "is not on this machine yet" in capsys.readouterr().out


@pytest.mark.parametrize(
    "argv",
    [
        ["/no/such/model"],
        ["penstock-mini", "--gpu", "abacus"],
        ["penstock-mini", "--engine-arg", "cpu_kvcache_gib=much"],
        ["penstock-mini", "--engine-arg", "max_model_len"],
    ],
)
def test_what_cannot_be_used_is_named(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert fit.main(argv) == 72
    assert "error: " in capsys.readouterr().err


def test_it_loads_nothing_heavy() -> None:
    code = (
        "import sys, penstock.replica.fit as f; f.main(['penstock-mini']);"
        "print([m for m in ('torch', 'vllm', 'numpy', 'psutil', 'grpc') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"
