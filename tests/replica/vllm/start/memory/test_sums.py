"""Models, settings and machines to sums and verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.replica.values import CannotLoad
from penstock.replica.vllm.start import checks
from penstock.replica.vllm.start.memory import judging
from penstock.replica.vllm.start.memory.gpus import GIB, gpu_bytes, gpu_names
from penstock.replica.vllm.start.memory.sums import MIB, Machine, Sum, Verdict
from tests.fakes import large_models

PROFILE = {
    "gpu_memory_utilization": "0.92",
    "max_num_seqs": "128",
    "max_num_batched_tokens": "8192",
    "block_size": "16",
}
A10G = Machine(gpu_bytes("a10g"), gpu_bytes("a10g"), "a10g")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("models")
    large_models.llama_8b_awq(directory / "awq")
    large_models.llama_8b(directory / "whole")
    window = {**large_models.LLAMA_8B, "sliding_window": 1024}
    tensors = large_models.llama_tensors(awq=False)
    large_models.write_model(directory / "window", window, tensors)
    wide = large_models.llama_tensors(awq=False, dtype="F32")
    large_models.write_model(directory / "wide", large_models.LLAMA_8B, wide)
    return directory


def judged(models: Path, name: str, machine: Machine, **engine_args: str) -> Sum:
    model = judging.read_model(checks.find_model(str(models / name)))
    return judging.judge(model, judging.Order(engine_args), machine)


def mib(found: Sum, what: str) -> int:
    return sum(line.bytes for line in found.lines if line.what == what) // MIB


def test_the_profile_of_the_documentation_fits_its_gpu(models: Path) -> None:
    found = judged(models, "awq", A10G, **PROFILE)
    assert found.verdict is Verdict.FITS
    assert mib(found, "weights") == 5462
    assert found.needed == pytest.approx(gpu_bytes("a10g") * 0.92, abs=10)
    tokens = mib(found, "KV cache") * MIB // (2 * 32 * 8 * 128 * 2)
    assert 100_000 < tokens < 110_000


@pytest.mark.parametrize(
    ("name", "gpu", "engine_args", "verdict"),
    [
        ("whole", "a10g", {}, Verdict.FITS),
        ("whole", "t4", {}, Verdict.TOO_LARGE),
        ("whole", "t4", {"tensor_parallel_size": "2"}, Verdict.FITS),
        ("whole", "t4", {"quantization": "fp8"}, Verdict.FITS),
        ("whole", "l4", {"max_model_len": "65536"}, Verdict.TOO_LARGE),
        ("whole", "l4", {"kv_cache_memory_bytes": "512M"}, Verdict.TOO_LARGE),
        ("whole", "l4", {"kv_cache_memory_bytes": "2G"}, Verdict.FITS),
        ("whole", "l4", {"gpu_memory_utilization": "0.5"}, Verdict.TOO_LARGE),
        # What only a full step takes beyond its share is no reason to refuse it.
        ("awq", "l4", {"max_num_batched_tokens": "131072"}, Verdict.TIGHT),
    ],
)
def test_a_gpu_is_judged_by_what_its_share_of_memory_holds(
    models: Path, name: str, gpu: str, engine_args: dict[str, str], verdict: Verdict
) -> None:
    machine = Machine(gpu_bytes(gpu), gpu_bytes(gpu), gpu)
    assert judged(models, name, machine, **engine_args).verdict is verdict


def test_what_others_have_of_a_gpu_is_not_free(models: Path) -> None:
    taken = Machine(A10G.device, A10G.device // 2)
    assert judged(models, "awq", taken).verdict is Verdict.TOO_LARGE


@pytest.mark.parametrize(
    ("engine_args", "free", "verdict"),
    [
        ({}, 20, Verdict.FITS),
        ({}, 12, Verdict.TOO_LARGE),
        ({"dtype": "float32"}, 20, Verdict.TOO_LARGE),
        ({"dtype": "float32", "cpu_kvcache_gib": "2"}, 50, Verdict.FITS),
        ({"max-model-len": "16k"}, 50, Verdict.TOO_LARGE),
        ({"max_model_len": "16k", "cpu_kvcache_gib": "2"}, 50, Verdict.FITS),
        ({"max_model_len": "16k", "kv_cache_dtype": "fp8"}, 50, Verdict.FITS),
        ({"max_model_len": "auto", "cpu_kvcache_gib": "0.1"}, 50, Verdict.FITS),
    ],
)
def test_a_cpu_is_judged_by_its_free_memory(
    models: Path, engine_args: dict[str, str], free: int, verdict: Verdict
) -> None:
    found = judged(models, "whole", Machine(free=free * GIB), **engine_args)
    assert found.verdict is verdict, found


def test_weights_that_are_stored_wide_count_as_they_are_run(models: Path) -> None:
    free = Machine(free=64 * GIB)
    assert mib(judged(models, "wide", free), "weights") == mib(
        judged(models, "whole", free), "weights"
    )


def test_a_model_with_windows_is_not_refused_for_its_kv_cache(models: Path) -> None:
    found = judged(models, "window", Machine(free=50 * GIB), max_model_len="100k")
    assert found.verdict is Verdict.FITS


def test_adapters_take_their_slots(models: Path) -> None:
    model = judging.read_model(checks.find_model(str(models / "whole")))
    order = judging.Order({}, adapter_slots=7)
    slots = mib(judging.judge(model, order, Machine(free=64 * GIB)), "adapters")
    numbers_of_rank_1 = 32 * (2 * 8192 + 2 * (4096 + 1024) + 3 * (4096 + 14336))
    assert slots == 8 * 16 * numbers_of_rank_1 * 2 // MIB


def test_the_shipped_model_starts_on_a_small_machine() -> None:
    for model in ("penstock-mini", "penstock-embed"):
        known = judging.read_model(checks.find_model(model))
        found = judging.judge(known, judging.Order({}), Machine(free=2 * GIB))
        assert found.verdict in (Verdict.FITS, Verdict.TIGHT), model


def test_a_model_that_was_downloaded_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--someone--llama"
    large_models.llama_8b(repository / "snapshots" / "abc")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    model = judging.read_model(checks.find_model("someone/llama"))
    order = judging.Order({"max_model_len": "4096"})
    assert judging.judge(model, order, Machine(free=8 * GIB)).verdict is Verdict.TOO_LARGE
    assert judging.judge(model, order, Machine(free=20 * GIB)).verdict is Verdict.FITS
    (repository / "refs" / "main").write_text("another")
    gone = judging.read_model(checks.find_model("someone/llama"))
    assert judging.judge(gone, order, Machine(free=0)).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    "engine_args", [{"hf-overrides": "{}"}, {"load_format": "dummy"}, {"revision": "v2"}]
)
def test_settings_that_make_another_model_of_it_are_not_judged(
    models: Path, engine_args: dict[str, str]
) -> None:
    found = judged(models, "whole", Machine(free=0), **engine_args)
    assert (found.verdict, found.needed) == (Verdict.UNKNOWN, 0)
    assert found.reason.endswith("may make another model of it")


def test_a_model_that_is_not_here_is_not_judged() -> None:
    model = judging.read_model(checks.find_model("someone/some-model"))
    found = judging.judge(model, judging.Order({}), Machine(free=1))
    assert found.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("name", "machine", "engine_args"),
    [
        ("whole", Machine(free=18 * GIB), {"max_model_len": "16k"}),
        ("whole", Machine(free=20 * GIB), {"cpu_kvcache_gib": "8"}),
        ("whole", Machine(gpu_bytes("t4"), gpu_bytes("t4")), {}),
        ("whole", Machine(gpu_bytes("l4"), gpu_bytes("l4")), {"max_model_len": "128k"}),
        ("whole", Machine(free=24 * GIB), {"dtype": "float32"}),
    ],
)
def test_what_is_advised_fits(
    models: Path, name: str, machine: Machine, engine_args: dict[str, str]
) -> None:
    model = judging.read_model(checks.find_model(str(models / name)))
    order = judging.Order(engine_args)
    assert judging.judge(model, order, machine).verdict is Verdict.TOO_LARGE
    said = [each for each in judging.advice(model, order, machine) if "=" in each]
    assert said
    for each in said:
        change = dict(pair.split("=") for pair in each.split(" with "))
        found = judging.judge(model, judging.Order({**engine_args, **change}), machine)
        assert found.verdict is Verdict.FITS, each


def test_a_larger_gpu_is_advised_by_name(models: Path) -> None:
    model = judging.read_model(checks.find_model(str(models / "whole")))
    t4 = Machine(gpu_bytes("t4"), gpu_bytes("t4"))
    assert "a GPU such as l4 (22 GiB)" in judging.advice(model, judging.Order({}), t4)
    assert list(gpu_names()) == sorted(gpu_names(), key=gpu_bytes)


def test_a_start_is_refused_with_the_sum_and_what_helps(models: Path) -> None:
    place = checks.find_model(str(models / "whole"))
    judging.check(place, judging.Order({}), Machine(free=20 * GIB))
    with pytest.raises(
        CannotLoad,
        match=r"about 18\.\d+ GiB of memory .weights 14\.96, .*KV cache 1\.00.* are free; take ",
    ):
        judging.check(place, judging.Order({}), Machine(free=8 * GIB))
