"""The small parts of providers: hosts, secrets, costs, streams of events, pauses."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.replica.providers import errors
from penstock.replica.providers.account import Account, Prices
from penstock.replica.providers.hosts import Hosts
from penstock.replica.providers.reachability import proxy_to
from penstock.replica.providers.retries import pause
from penstock.replica.providers.secrets import NoSecret, Secrets, scrubbed
from penstock.replica.providers.sse import BadEvents, Events
from penstock.replica.providers.values import Place
from penstock.replica.values import CannotLoad, Usage


@pytest.mark.parametrize(
    ("patterns", "host", "allowed"),
    [
        ((), "anywhere.example", True),
        (("api.example.com",), "API.example.com.", True),
        (("api.example.com",), "xapi.example.com", False),
        (("*.example.com",), "a.b.example.com", True),
        (("*.example.com",), "example.com", False),
        (("*.example.com",), "badexample.com", False),
        (("a.example", "*.b.example"), "c.b.example", True),
    ],
)
def test_a_host_is_allowed_by_its_name_or_by_that_above_it(
    patterns: tuple[str, ...], host: str, allowed: bool
) -> None:
    assert Hosts(patterns).allow(host) == allowed


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "[::ffff:169.254.169.254]",
        "0xa9fea9fe",
        "2852039166",
        "169.254.43518",
        "fe80::1",
        "fd00:ec2::254",
        "100.100.100.200",
    ],
)
def test_no_way_to_write_the_address_of_a_metadata_service_is_allowed(host: str) -> None:
    assert not Hosts().allow(host)
    assert not Hosts((host,)).allow(host, resolve=True)


def test_a_name_without_an_address_is_judged_by_its_name() -> None:
    assert Hosts().allow("localhost", resolve=True)
    assert Hosts().allow("no-such-host.invalid", resolve=True)
    assert not Hosts(("a.example",)).allow("no-such-host.invalid", resolve=True)


@pytest.mark.parametrize("pattern", ["https://a.example", "a.example/v1", "*", "a.*.example", ""])
def test_what_is_no_host_is_refused(pattern: str) -> None:
    with pytest.raises(CannotLoad, match="is no host"):
        Hosts((pattern,))


def test_a_link_inside_the_secrets_directory_is_followed(tmp_path: Path) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "key").write_text("sk-inside\n")
    (tmp_path / "key").symlink_to("..data/key")
    assert Secrets(str(tmp_path)).file("key") == "sk-inside"


@pytest.mark.parametrize("content", ["", " \n", "two\nlines", "caf\u00e9"])
def test_what_no_header_can_carry_is_no_secret_and_is_not_shown(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "key").write_text(content)
    with pytest.raises(NoSecret, match="the secret file key") as caught:
        Secrets(str(tmp_path)).file("key")
    assert not content.strip() or content.strip() not in str(caught.value)


def test_variables_are_read_when_they_are_used() -> None:
    environment = {"TEAM_API_KEY": "one", "HOME": "/root", "TEAM_API_KEYS": "three"}
    secrets = Secrets("", environment, ("*_API_KEY",))
    assert secrets.variable("TEAM_API_KEY") == "one"
    environment["TEAM_API_KEY"] = "two"
    assert secrets.variable("TEAM_API_KEY") == "two"
    for other in ("HOME", "TEAM_API_KEYS"):
        with pytest.raises(NoSecret, match="PENSTOCK_PROVIDER_VARIABLES") as caught:
            secrets.variable(other)
        assert environment[other] not in str(caught.value)
    with pytest.raises(NoSecret, match="set --secrets-dir"):
        secrets.file("key")


@pytest.mark.parametrize(
    "text",
    [
        "the key our-own-words is bad",
        "Incorrect API key provided: sk-proj-a1B2c3D4****wxyz",
        "Authorization=AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/2026/x, Signature=deadbeef",
        "header was Bearer abc.def",
        "see https://me:hunter22@proxy.example/",
    ],
)
def test_what_is_secret_is_taken_out_of_others_words(text: str) -> None:
    told = scrubbed(text, ["our-own-words"])
    hidden = ("our-own-words", "a1B2c3D4", "AKIAIOSFODNN7EXAMPLE", "deadbeef", "abc.def", "hunter")
    assert not [secret for secret in hidden if secret in told]
    assert "[secret]" in told


def test_ordinary_words_stay() -> None:
    text = "max_tokens is 7; task-force, risk-free, https://docs.example/a:b@c"
    assert scrubbed(text, ["", "abc"]) == text


_PRICES = Prices(Decimal("2.5"), Decimal("10"), Decimal("1.25"))


def test_what_was_never_sent_costs_nothing_and_what_is_not_told_is_estimated() -> None:
    account = Account(_PRICES, prompt=100)
    assert account.usage() == Usage()
    account.sent = True
    assert account.usage() == Usage(100, 0, 0, 100 * 2500)
    assert account.made(5) == 1
    assert account.made(40) == 10
    assert account.usage() == Usage(100, 11, 0, 100 * 2500 + 11 * 10_000)
    assert account.tell(90, 30, 40) == 19
    assert account.usage() == Usage(90, 30, 40, 50 * 2500 + 40 * 1250 + 30 * 10_000)


@pytest.mark.parametrize(
    ("status", "costs"), [(400, 0), (403, 0), (429, 0), (408, 10), (424, 10), (500, 10), (503, 10)]
)
def test_what_was_turned_away_costs_nothing_and_what_was_worked_on_does(
    status: int, costs: int
) -> None:
    account = Account(_PRICES, prompt=10)
    account.sent = True
    account.refused(status)
    assert account.usage().prompt_tokens == costs


def test_the_costs_of_a_call_are_those_of_all_its_attempts() -> None:
    first = Account(_PRICES, prompt=10)
    first.sent = True
    second = Account(_PRICES, 10, first.costs())
    second.tell(9, 2, 1)
    assert second.usage().prompt_tokens == 9
    assert second.costs() == Usage(19, 2, 1, 10 * 2500 + 8 * 2500 + 1250 + 2 * 10_000)
    assert second.finished().cost_nanousd == second.costs().cost_nanousd


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**7))
def test_a_price_is_exact_and_never_negative(prompt: int, completion: int, cached: int) -> None:
    account = Account(_PRICES, 0)
    account.tell(prompt, completion, cached)
    cached = min(cached, prompt)
    exact = (prompt - cached) * 2500 + cached * 1250 + completion * 10_000
    assert account.usage().cost_nanousd == exact


_EVENTS = st.lists(
    st.tuples(st.sampled_from(["", "done"]), st.text(max_size=8)), min_size=1, max_size=5
)


@given(_EVENTS, st.integers(1, 9), st.sampled_from(["\n", "\r\n"]))
def test_events_do_not_depend_on_how_they_come(
    events: list[tuple[str, str]], size: int, end: str
) -> None:
    told = [(name, data.translate({10: None, 13: None})) for name, data in events]
    text = "".join(
        f"{f'event: {name}{end}' if name else ''}data: {data}{end}: ping{end}{end}"
        for name, data in told
    ).encode()
    reading = Events()
    portions = [text[at : at + size] for at in range(0, len(text), size)]
    assert [event for portion in portions for event in reading.feed(portion)] == told


@pytest.mark.parametrize("size", [1, 2, 100])
def test_a_byte_order_mark_takes_no_event_with_it(size: int) -> None:
    text = "\ufeffdata: one\n\ndata: \ufefftwo\n\n".encode()
    reading = Events()
    portions = [text[at : at + size] for at in range(0, len(text), size)]
    found = [event for portion in portions for event in reading.feed(portion)]
    assert found == [("", "one"), ("", "\ufefftwo")]


def test_an_event_has_an_end() -> None:
    reading = Events()
    reading.feed(b"data: ")
    with pytest.raises(BadEvents, match="more than"):
        reading.feed(b"x" * (33 << 20))


def test_pauses_grow_differ_and_are_as_long_as_the_provider_asks() -> None:
    dice = random.Random(7)
    failure = errors.unreachable("it is away")
    pauses = [pause(attempt, failure, dice) or 0 for attempt in range(4)]
    assert all(0.125 * 2**at <= one <= 0.25 * 2**at for at, one in enumerate(pauses))
    assert (pause(0, errors.throttled("later", after_ms=800), dice) or 0) > 0.8
    assert pause(0, errors.throttled("later", after_ms=3000), dice) is None
    assert pause(1, errors.throttled("later"), dice) is None, "clients ask again, too"
    assert pause(0, errors.throttled("later", after_ms=60_000), dice) is None
    assert pause(0, errors.refused("no"), dice) is None


def test_the_environments_proxy_is_where_a_connection_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example,127.0.0.1")
    assert proxy_to(Place("api.example", 443, tls=True)) == Place("proxy.example", 3128, tls=False)
    assert proxy_to(Place("inside.example", 443, tls=True)) is None
    assert proxy_to(Place("127.0.0.1", 8000, tls=False)) is None
