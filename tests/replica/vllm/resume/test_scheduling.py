"""The scheduler's half, on stand-ins for vLLM's scheduler, requests and grammars."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.replica.vllm.resume.delivered import KEY
from penstock.replica.vllm.resume.scheduling import continuing


class _Grammar:
    """Allows ids that grow."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def accept(self, ids: list[int]) -> bool:
        for one in ids:
            if self.read and one <= self.read[-1]:
                return False
            self.read.append(one)
        return True


class _Manager:
    """As vLLM's: where the model reasons, its grammar begins behind id `ends`."""

    def __init__(self, ends: int | None = None) -> None:
        self._ends = ends
        self.made: list[tuple[Any, list[int]]] = []

    def grammar_init(self, request: Any) -> None:
        self.made.append((self._create_grammar(request), list(request.output_token_ids)))

    def _create_grammar(self, request: Any) -> _Grammar:
        return _Grammar()

    def accept_tokens(self, request: Any, ids: list[int]) -> bool:
        told = request.structured_output_request
        assert request.all_token_ids[-len(ids) :] == ids
        if self._ends is not None and not told.reasoning_ended:
            if self._ends not in ids:
                return True
            told.reasoning_ended = True
            ids = ids[ids.index(self._ends) + 1 :]
        return bool(told.grammar.accept(ids))


class _Scheduler:
    def __init__(self, manager: _Manager) -> None:
        self.structured_output_manager = manager
        self.added: list[Any] = []

    def add_request(self, request: Any) -> None:
        self.added.append(request)


class _Request:
    def __init__(self, ids: list[int] | None) -> None:
        self.request_id = "r"
        self.prompt_token_ids = [50, 51]
        self.sampling_params = SimpleNamespace(extra_args=None if ids is None else {KEY: ids})
        self.output_token_ids: list[int] = []
        self.prefill_stats: Any = "counted"
        self.structured_output_request = SimpleNamespace(
            reasoning_ended=None, reasoning_parser_kwargs=None, reasoner=None
        )

    @property
    def num_output_tokens(self) -> int:
        return len(self.output_token_ids)

    def append_output_token_ids(self, ids: list[int]) -> None:
        self.output_token_ids += ids


def test_a_request_is_taken_up_with_its_outputs_once() -> None:
    scheduler = continuing(_Scheduler)(_Manager())
    request = _Request([1, 2, 3])
    scheduler.structured_output_manager.grammar_init(request)
    scheduler.add_request(request)
    assert request.output_token_ids == [1, 2, 3]
    assert request.prefill_stats is None
    assert scheduler.added == [request]


def test_a_request_that_begins_is_left_as_it_is() -> None:
    scheduler = continuing(_Scheduler)(_Manager())
    request = _Request(None)
    scheduler.add_request(request)
    assert (request.output_token_ids, request.prefill_stats) == ([], "counted")


@pytest.mark.parametrize("count", [1, 63, 64, 65, 200])
def test_a_grammar_has_read_what_was_delivered(count: int) -> None:
    manager = continuing(_Scheduler)(_Manager()).structured_output_manager
    manager.grammar_init(_Request(list(range(count))))
    [(grammar, outputs)] = manager.made
    assert grammar.read == outputs == list(range(count))


@pytest.mark.parametrize("thought", [0, 1, 63, 64, 150])
def test_a_grammar_begins_behind_the_reasoning(thought: int) -> None:
    manager = continuing(_Scheduler)(_Manager(ends=999)).structured_output_manager
    request = _Request([*[5] * thought, 999, 1, 2])
    manager.grammar_init(request)
    assert manager.made[0][0].read == [1, 2]
    assert request.structured_output_request.reasoning_ended


def test_reasoning_that_has_not_ended_leaves_the_grammar_where_it_begins() -> None:
    manager = continuing(_Scheduler)(_Manager(ends=999)).structured_output_manager
    request = _Request([5] * 70)
    manager.grammar_init(request)
    assert manager.made[0][0].read == []
    assert not request.structured_output_request.reasoning_ended


def test_outputs_that_its_grammar_does_not_allow_fail_the_request() -> None:
    manager = continuing(_Scheduler)(_Manager()).structured_output_manager
    with pytest.raises(ValueError, match="does not allow what was delivered"):
        manager.grammar_init(_Request([2, 1]))
