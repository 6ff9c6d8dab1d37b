"""Which messages of a conversation stay within a budget of tokens."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from penstock.replica.trimming import Conversation, Fit, Message, fitted

_IDS = st.sampled_from(["a", "b", "c"])
_SIZES = st.integers(0, 40)
_ONE = st.one_of(
    st.builds(Message, st.sampled_from(["user", "assistant"]), st.booleans(), size=_SIZES),
    st.builds(Message, st.sampled_from(["system", "developer", "odd"]), size=_SIZES),
    st.builds(
        Message,
        st.just("assistant"),
        st.booleans(),
        calls=st.lists(_IDS, min_size=1, max_size=2).map(tuple),
        size=_SIZES,
    ),
    st.builds(Message, st.just("tool"), st.booleans(), result_of=_IDS, size=_SIZES),
)
_CONVERSATIONS = st.lists(_ONE, max_size=20)


@st.composite
def _asked(draw: st.DrawFn) -> tuple[list[Message], int]:
    """A conversation, and a budget that is near what some of its turns have."""
    messages = draw(_CONVERSATIONS)
    conversation = Conversation(messages)
    kept = conversation.kept(draw(st.integers(0, conversation.cuts)))
    return messages, _tokens(messages, kept) + draw(st.sampled_from([0, 0, -1, 1, 7]))


def _trimmed(messages: Sequence[Message], budget: int) -> Fit | None:
    """With a tokenizer that sees two tokens around each message."""
    return fitted(messages, budget, lambda places: _tokens(messages, places))


def _tokens(messages: Sequence[Message], places: Sequence[int]) -> int:
    return sum(messages[place].size + 2 for place in places)


def _pairs(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """Each result with the newest call before it that has its id."""
    return [
        (max(made), result)
        for result, one in enumerate(messages)
        if one.result_of
        and (made := [i for i in range(result) if one.result_of in messages[i].calls])
    ]


@given(_asked())
def test_what_fits_has_no_more_tokens_than_it_may_and_says_truly_how_many(
    asked: tuple[list[Message], int],
) -> None:
    messages, budget = asked
    fit = _trimmed(messages, budget)
    if fit is not None:
        assert fit.tokens == _tokens(messages, fit.kept) <= budget
        assert fit.whole == _tokens(messages, range(len(messages)))


@given(_asked())
def test_a_call_and_its_results_stay_or_go_together(
    asked: tuple[list[Message], int],
) -> None:
    messages, budget = asked
    fit = _trimmed(messages, budget)
    if fit is not None:
        for call, result in _pairs(messages):
            assert (call in fit.kept) == (result in fit.kept)


@given(_asked())
def test_what_stays_keeps_its_order(asked: tuple[list[Message], int]) -> None:
    messages, budget = asked
    fit = _trimmed(messages, budget)
    if fit is not None:
        assert list(fit.kept) == sorted(set(fit.kept))


@given(_asked())
def test_system_pinned_and_the_newest_turn_stay(asked: tuple[list[Message], int]) -> None:
    messages, budget = asked
    fit = _trimmed(messages, budget)
    if fit is None:
        return
    users = [place for place, one in enumerate(messages) if one.role == "user"]
    newest = range(users[-1] if users else 0, len(messages))
    lasting = [
        place
        for place, one in enumerate(messages)
        if one.pinned or one.role in ("system", "developer")
    ]
    assert {*newest, *lasting} <= set(fit.kept)


@given(_CONVERSATIONS)
def test_oldest_turns_go_first(messages: list[Message]) -> None:
    conversation = Conversation(messages)
    for cuts in range(conversation.cuts):
        before, after = conversation.kept(cuts), conversation.kept(cuts + 1)
        went = set(before) - set(after)
        assert went
        assert went | set(after) == set(before)
        loose = [place for place in after if place < max(went)]
        calls = {call for pair in _pairs(messages) for call in pair}
        assert all(
            messages[place].pinned or messages[place].role in ("system", "developer")
            or place in calls
            for place in loose
        )  # fmt: skip


@given(_asked())
def test_no_turn_goes_that_need_not(asked: tuple[list[Message], int]) -> None:
    messages, budget = asked
    conversation = Conversation(messages)
    enough = [
        cuts
        for cuts in range(conversation.cuts + 1)
        if _tokens(messages, conversation.kept(cuts)) <= budget
    ]
    fit = _trimmed(messages, budget)
    if not enough:
        assert fit is None
    else:
        assert fit is not None
        assert fit.kept == conversation.kept(enough[0])


@given(_asked(), st.integers(1, 100))
def test_more_room_never_keeps_less(asked: tuple[list[Message], int], more: int) -> None:
    messages, budget = asked
    tight, wide = _trimmed(messages, budget), _trimmed(messages, budget + more)
    if tight is not None:
        assert wide is not None
        assert set(tight.kept) <= set(wide.kept)


@given(st.lists(st.integers(1, 2000), min_size=2, max_size=1000), st.floats(0.01, 0.99))
def test_a_long_conversation_is_measured_few_times(sizes: list[int], share: float) -> None:
    messages = [Message("user", size=size) for size in sizes]
    asked = []

    def measure(places: Sequence[int]) -> int:
        asked.append(places)
        return _tokens(messages, places)

    fitted(messages, int(share * _tokens(messages, range(len(messages)))), measure)
    assert len(asked) <= 4 + len(messages).bit_length()


def test_a_conversation_that_fits_is_measured_once() -> None:
    asked = []

    def measure(places: Sequence[int]) -> int:
        asked.append(places)
        return 10

    assert fitted([Message("user"), Message("user")], 10, measure) == Fit((0, 1), 10, 10)
    assert asked == [(0, 1)]


def test_turns_that_a_call_and_its_result_have_in_common_go_at_once() -> None:
    messages = [
        Message("user"),
        Message("assistant", calls=("a",)),
        Message("user"),
        Message("tool", result_of="a"),
        Message("user"),
    ]
    conversation = Conversation(messages)
    assert conversation.cuts == 1
    assert conversation.kept(1) == (4,)


def test_of_an_id_that_comes_again_the_newest_call_is_meant() -> None:
    turn = [Message("user"), Message("assistant", calls=("a",)), Message("tool", result_of="a")]
    assert Conversation(turn * 3).kept(2) == (6, 7, 8)


def test_a_pinned_result_keeps_its_call_and_the_other_results() -> None:
    messages = [
        Message("user"),
        Message("assistant", calls=("a", "b")),
        Message("tool", result_of="a"),
        Message("tool", True, result_of="b"),
        Message("assistant"),
        Message("user"),
    ]
    assert Conversation(messages).kept(1) == (1, 2, 3, 5)


def test_what_cannot_fit_is_told_as_that() -> None:
    messages = [Message("system", size=5), Message("user", size=9)]
    assert _trimmed(messages, 17) is None
    assert _trimmed(messages, 18) is not None
