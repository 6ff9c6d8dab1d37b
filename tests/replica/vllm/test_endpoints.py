"""Which endpoints a model serves: those for which vLLM has both a path and an object."""

from __future__ import annotations

from types import SimpleNamespace

from penstock.replica.vllm.endpoints import ENDPOINTS, served


def test_a_model_serves_what_vllm_made_an_object_for() -> None:
    state = SimpleNamespace(serving_pooling=object(), serving_scores=None)
    paths = {endpoint.path for endpoint in ENDPOINTS.values()}
    assert served(state, paths) == ("/pooling",)


def test_an_object_without_a_path_serves_nothing() -> None:
    assert served(SimpleNamespace(serving_pooling=object()), {"/embeddings"}) == ()


def test_nothing_of_vllms_that_steers_it_is_in_the_table() -> None:
    steering = ("lora", "sleep", "profile", "batch", "render", "invocations", "pause", "load")
    assert [name for name in ENDPOINTS for word in steering if word in name] == []
