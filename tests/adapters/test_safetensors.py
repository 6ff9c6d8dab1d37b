"""What a weights file says of itself is believed only where it fits the bytes that are there."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.adapters.safetensors import (
    LARGEST_HEADER,
    PREFIX_BYTES,
    BadSafetensors,
    Tensor,
    header_length,
    read_header,
)
from tests.adapters.examples import header, safetensors

TWO = {
    "a": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]},
    "b": {"dtype": "F32", "shape": [1], "data_offsets": [12, 16]},
}
SHIPPED = Path("replica/penstock/replica/default_model/weights/adapters")


def changed(**of_b: Any) -> dict[str, Any]:
    return {"a": TWO["a"], "b": TWO["b"] | of_b}


def test_tensors_are_told_by_their_place_in_the_file() -> None:
    backwards = {"__metadata__": {"format": "pt"}, "b": TWO["b"], "a": TWO["a"]}
    a, b = read_header(header(backwards), 16)
    assert a == Tensor("a", "F16", (2, 3), 0, 12)
    assert b == Tensor("b", "F32", (1,), 12, 16)


@pytest.mark.parametrize("name", ["pirate", "json"])
def test_an_adapter_that_peft_wrote_is_read_to_its_last_byte(name: str) -> None:
    content = (SHIPPED / name / "adapter_model.safetensors").read_bytes()
    length = header_length(content[:PREFIX_BYTES])
    data = len(content) - PREFIX_BYTES - length
    tensors = read_header(content[PREFIX_BYTES:][:length], data)
    assert tensors[-1].end == data
    assert all(".lora_" in tensor.name for tensor in tensors)


@pytest.mark.parametrize(
    ("tensors", "data_bytes", "why"),
    [
        (TWO, 15, "cut off"),
        (TWO, 17, "padded"),
        ({"b": TWO["b"]}, 16, "begins at 12"),
        (changed(data_offsets=[8, 12]), 12, "the one before ends at 12"),
        (changed(data_offsets=[12, 20]), 20, "takes 4 bytes"),
        (changed(data_offsets=[12]), 16, "tensor b has no dtype"),
        (changed(dtype="PICKLE"), 16, "of type 'PICKLE'"),
        (changed(shape=[-1]), 16, "the shape"),
        (changed(shape=[True]), 16, "the shape"),
        ({"a": "nothing"}, 0, "tensor a has no dtype"),
        (changed(data_offsets=[True, 16]), 16, "lies from True"),
        (changed(shape=[1] * 9), 16, "the shape"),
        (changed(shape=[10**30, 0]), 16, "the shape"),
        (changed(shape=[10**4000]), 16, "the shape"),
        (TWO | {"__metadata__": {"format": 1}}, 16, "no map of texts"),
        (TWO | {"__metadata__": []}, 16, "no map of texts"),
        ({"x\nERROR forged": TWO["a"]}, 12, r"'x\\nERROR forged'"),
        ({"\ud800": TWO["a"]}, 12, "no short printable text"),
    ],
)
def test_a_header_that_does_not_fit_its_data_is_refused_at_the_tensor(
    tensors: dict[str, Any], data_bytes: int, why: str
) -> None:
    with pytest.raises(BadSafetensors, match=why):
        read_header(header(tensors), data_bytes)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":1,"a":1}',
        b"\xef\xbb\xbf{}",
        b'{"a":NaN}',
    ],
)
def test_a_header_that_is_no_json_object_is_refused(text: bytes) -> None:
    with pytest.raises(BadSafetensors):
        read_header(text, 0)


@pytest.mark.parametrize(
    "prefix", [b"", b"1234567", struct.pack("<Q", LARGEST_HEADER + 1), bytes(8)]
)
def test_a_file_that_cannot_have_a_header_is_refused_before_it_is_read(prefix: bytes) -> None:
    with pytest.raises(BadSafetensors):
        header_length(prefix)


sizes = st.lists(st.integers(0, 9), max_size=3)


@given(shapes=st.lists(sizes, max_size=6), cut=st.integers(1, 40))
def test_whole_files_are_read_and_cut_ones_refused(shapes: list[list[int]], cut: int) -> None:
    tensors, at = {}, 0
    for i, shape in enumerate(shapes):
        end = at + 2
        for size in shape:
            end = at + (end - at) * size
        tensors[str(i)] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, end]}
        at = end
    content = safetensors(tensors, bytes(at))
    length = header_length(content[:PREFIX_BYTES])
    head = content[PREFIX_BYTES : PREFIX_BYTES + length]
    assert {t.name: list(t.shape) for t in read_header(head, at)} == {
        name: about["shape"] for name, about in tensors.items()
    }
    with pytest.raises(BadSafetensors):
        read_header(head, at - cut)


@given(
    st.dictionaries(
        st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=8)
    )
)
def test_any_other_json_is_refused_and_nothing_else_is_raised(parsed: dict[str, Any]) -> None:
    parsed.pop("__metadata__", None)
    if not parsed:
        return
    with pytest.raises(BadSafetensors):
        read_header(json.dumps(parsed).encode(), 0)
