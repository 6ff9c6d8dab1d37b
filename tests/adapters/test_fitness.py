"""Config and tensors have to agree, and both with the family; the answer says what does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.adapters.fitness import (
    AdapterFacts,
    FamilyLimits,
    UnfitAdapter,
    check_family,
    facts_of,
)
from penstock.adapters.safetensors import Tensor
from tests.adapters.examples import config, pair

Q = "model.layers.0.self_attn.q_proj"
UP = "model.layers.0.mlp.up_proj"


def test_an_adapter_that_is_right_tells_its_rank_and_modules() -> None:
    assert facts_of(config(), pair(Q) + pair(UP)) == AdapterFacts(
        8, ("q_proj", "up_proj"), {Q: (16, 16), UP: (16, 16)}
    )


def test_a_module_that_the_base_model_lacks_may_be_missing() -> None:
    assert facts_of(config(), pair(Q)).modules == ("q_proj",)


def test_ranks_may_differ_where_the_config_says_so() -> None:
    facts = facts_of(config(rank_pattern={"up_proj": 16}), pair(Q) + pair(UP, rank=16))
    assert facts.rank == 16


def test_modules_may_be_named_by_their_whole_path() -> None:
    assert list(facts_of(config(target_modules=[Q]), pair(Q)).shapes) == [Q]


@pytest.mark.parametrize(
    ("tensors", "why"),
    [
        ([], "no tensor"),
        (pair(Q)[:1], "lora_A alone"),
        (pair(Q)[1:], "lora_B alone"),
        (pair(f"base_model.model.{Q}"), "take for another"),
        (pair("lm_head.base_layer.q_proj"), "take for another"),
        (pair(Q, rank=4), "rank 4, its config says 8"),
        (pair(Q, rank=16), "rank 16, its config says 8"),
        ([*pair(Q)[:1], *pair(Q, rank=4)[1:]], "rank 8 in lora_A and 4 in lora_B"),
        (pair("model.layers.0.self_attn.v_proj"), "target_modules are 'q_proj, up_proj'"),
        (pair("model.layers.0.my_q_proj"), "target_modules"),
        ([Tensor("lm_head.weight", "BF16", (2, 2), 0, 8)], "none of a LoRA pair"),
        ([replace(pair(Q)[0], shape=(8,))], "the shape"),
        ([replace(pair(Q)[0], shape=(8, 0))], "the shape"),
        ([replace(pair(Q)[0], dtype="I8")], "of type I8"),
        ([*pair(Q), replace(pair(Q)[0], name=f"{Q}.lora_A.weight")], "there twice"),
    ],
)
def test_tensors_that_are_not_what_the_config_says_are_refused(
    tensors: list[Tensor], why: str
) -> None:
    with pytest.raises(UnfitAdapter, match=why):
        facts_of(config(), tensors)


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (FamilyLimits(max_rank=4), "its rank is 8"),
        (FamilyLimits(max_bytes=99), "100 bytes, at most 99"),
        (FamilyLimits(shapes={Q: (16, 16)}), "up_proj, which its base model does not have"),
        (FamilyLimits(shapes={Q: (32, 16), UP: (16, 64)}), "16 to 16 wide in it, 32 to 16 in its"),
    ],
)
def test_what_the_family_does_not_take_is_refused(limits: FamilyLimits, why: str) -> None:
    facts = AdapterFacts(8, ("q_proj", "up_proj"), {Q: (16, 16), UP: (16, 64)})
    check_family(facts, 100, FamilyLimits())
    with pytest.raises(UnfitAdapter, match=why):
        check_family(facts, 100, limits)


def test_a_copy_of_base_weights_that_peft_keeps_is_passed_over() -> None:
    copy = Tensor("base_model.model.lm_head.base_layer.weight", "BF16", (2, 2), 0, 8)
    assert list(facts_of(config(), [copy, *pair(Q)]).shapes) == [Q]


def test_each_module_has_the_rank_that_the_pattern_gives_it() -> None:
    swapped = config(rank_pattern={"q_proj": 16})
    with pytest.raises(UnfitAdapter, match="rank 8, its config says 16"):
        facts_of(swapped, pair(Q) + pair(UP, rank=16))


def test_an_engine_needs_room_for_the_largest_rank_that_the_config_names() -> None:
    small = config(r=512, rank_pattern={"q_proj": 8})
    assert facts_of(small, pair(Q)).rank == 512
