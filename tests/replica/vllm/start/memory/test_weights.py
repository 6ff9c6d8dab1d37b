"""How much weights are, by their headers, whatever stands there."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.replica.vllm.start.memory.weights import Weights, loaded, weights_in
from tests.fakes.large_models import llama_8b, llama_8b_awq, write_weights

SIXTEEN_BITS, THIRTY_TWO_BITS = 2, 4


def test_weights_take_the_width_that_the_engine_runs_with(tmp_path: Path) -> None:
    write_weights(tmp_path / "a.safetensors", {"a": ("F32", (10, 10)), "b": ("BF16", (100,))})
    found = weights_in([tmp_path / "a.safetensors"])
    assert found.stored == 600
    assert (found.loaded(SIXTEEN_BITS), found.loaded(THIRTY_TWO_BITS)) == (400, 800)


def test_packed_and_narrow_weights_stay_as_they_are_stored(tmp_path: Path) -> None:
    tensors = {"a": ("I32", (25,)), "b": ("F8_E4M3", (100,)), "c": ("F16", (50,))}
    write_weights(tmp_path / "a.safetensors", tensors)
    assert weights_in([tmp_path / "a.safetensors"]).loaded(THIRTY_TWO_BITS) == 100 + 100 + 200


def test_weights_of_several_files_are_added(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_weights(tmp_path / f"{name}.safetensors", {name: ("F16", (50,))})
    files = sorted(tmp_path.iterdir())
    assert weights_in(files) == Weights(stored=200, floating_bytes=200, floating=100)


def test_a_real_models_weights_are_read_from_its_header_alone(tmp_path: Path) -> None:
    for make, gigabytes in ((llama_8b, 16.06), (llama_8b_awq, 5.73)):
        path = make(tmp_path / make.__name__) / "model.safetensors"
        assert path.stat().st_blocks * 512 < 1 << 20
        assert weights_in([path]).loaded(SIXTEEN_BITS) / 1e9 == pytest.approx(gigabytes, abs=0.01)


def test_weights_that_a_model_brings_once_more_are_counted_once(tmp_path: Path) -> None:
    names = ("consolidated.safetensors", "model-1-of-2.safetensors", "model-2-of-2.safetensors")
    files = [tmp_path / name for name in names]
    assert loaded(files) == files[1:]
    assert loaded(files[:1]) == files[:1]


def test_files_of_other_formats_count_with_their_size(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"x" * 1000)
    assert weights_in([tmp_path / "pytorch_model.bin"]).loaded(THIRTY_TWO_BITS) == 1000


def test_weights_that_nobody_writes_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.safetensors")
    assert weights_in([tmp_path / "model.safetensors"]) == Weights()


LENGTHS = st.one_of(st.integers(0, 200), st.integers(0, 2**64 - 1))
HEADERS = st.one_of(
    st.binary(max_size=100),
    st.dictionaries(
        st.text(max_size=5),
        st.fixed_dictionaries(
            {
                "dtype": st.sampled_from(("F16", "F4", "I32", "", "BF16")),
                "shape": st.lists(st.integers(-(2**70), 2**70), max_size=3),
                "data_offsets": st.lists(st.integers(-5, 2**70), max_size=3),
            }
        ),
        max_size=3,
    ).map(lambda tensors: json.dumps(tensors).encode()),
)


@settings(max_examples=60, deadline=None)
@given(length=LENGTHS, header=HEADERS, data=st.binary(max_size=50), cut=st.integers(0, 60))
def test_a_header_that_lies_makes_its_file_count_with_its_size(
    tmp_path_factory: pytest.TempPathFactory, length: int, header: bytes, data: bytes, cut: int
) -> None:
    path = tmp_path_factory.mktemp("odd") / "model.safetensors"
    path.write_bytes((struct.pack("<Q", length) + header + data)[cut:])
    size = path.stat().st_size
    assert 0 <= weights_in([path]).stored <= size
