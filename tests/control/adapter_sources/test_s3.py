"""Buckets are read whole, within bounds and in time, or it is said what is wrong with them."""

from __future__ import annotations

import logging
import urllib.request
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from boto3.session import Session
from moto.server import ThreadedMotoServer

from penstock.adapters.fitness import FamilyLimits
from penstock.adapters.version import CONFIG_FILE, WEIGHTS_FILE
from penstock.control.adapter_sources.patience import Patience
from penstock.control.adapter_sources.sources import MachineSources
from penstock.control.errors import BadAdapter, StoreUnavailable, Unavailable
from penstock.control.store.adapters.content import AdapterContents
from tests.control.adapter_sources import broken_buckets
from tests.control.adapter_sources.broken_buckets import BrokenBucket
from tests.control.adapter_sources.files import FILES, LARGE, is_the_adapter
from tests.fakes.ports import free_address

KEY_ID, SECRET = "AKIAEXAMPLE", "the-secret-key"
SHORT = timedelta(milliseconds=300)
BRIEF = Patience(connect=SHORT, silence=SHORT, tries=1)


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of a server that speaks S3."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine of which boto3 knows these credentials and nothing else."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return monkeypatch


@pytest.fixture
def lora(s3: str, variables: pytest.MonkeyPatch) -> Iterator[Any]:
    """A bucket with an adapter below `team/lora`, which the head's variables lead to."""
    variables.setenv("AWS_ENDPOINT_URL", s3)
    client = Session().client("s3", endpoint_url=s3)
    client.create_bucket(Bucket="adapters")
    for name, data in FILES.items():
        client.put_object(Bucket="adapters", Key=f"team/lora/{name}", Body=data)
    yield client
    client.close()
    told(s3, "reset")


def told(s3: str, what: str, value: str = "") -> None:
    """Tells the server something about itself."""
    headers = {"content-type": "text/plain"}
    url = f"{s3}/moto-api/{what}"
    request = urllib.request.Request(url, value.encode(), headers, method="POST")
    urllib.request.urlopen(request).close()


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


@pytest.fixture
def sources(scratch: Path) -> MachineSources:
    return MachineSources(scratch, Path("/nowhere"), BRIEF)


def test_a_prefix_is_downloaded_for_the_block_and_gone_afterwards(
    sources: MachineSources, lora: Any, scratch: Path, tmp_path: Path
) -> None:
    for source in ("s3://adapters/team/lora", "s3://adapters/team/lora/"):
        with sources.fetched(source, len(FILES[WEIGHTS_FILE])) as directory:
            assert is_the_adapter(directory)
            AdapterContents(tmp_path / "stored").take_in(directory, FamilyLimits())
        assert not list(scratch.iterdir())


def test_a_bucket_may_be_an_adapter_itself(sources: MachineSources, lora: Any) -> None:
    for name, data in FILES.items():
        lora.put_object(Bucket="adapters", Key=name, Body=data)
    with sources.fetched("s3://adapters", LARGE) as directory:
        assert is_the_adapter(directory)


def test_the_endpoint_of_s3_alone_goes_before_that_of_all_services(
    sources: MachineSources, lora: Any, s3: str, variables: pytest.MonkeyPatch
) -> None:
    variables.setenv("AWS_ENDPOINT_URL", f"http://{free_address()}")
    variables.setenv("AWS_ENDPOINT_URL_S3", s3.replace("127.0.0.1", "localhost"))
    with sources.fetched("s3://adapters/team/lora", LARGE) as directory:
        assert is_the_adapter(directory)


def test_what_the_block_says_of_a_file_is_told_of_the_source(
    sources: MachineSources, lora: Any, tmp_path: Path
) -> None:
    lora.put_object(Bucket="adapters", Key=f"team/lora/{WEIGHTS_FILE}", Body=b"none")
    stored = AdapterContents(tmp_path / "stored")
    with pytest.raises(BadAdapter) as error, sources.fetched("s3://adapters/team/lora", LARGE) as d:
        stored.take_in(d, FamilyLimits())
    assert str(error.value).startswith(f"'s3://adapters/team/lora/{WEIGHTS_FILE}'")


def failure(sources: MachineSources, source: str, max_bytes: int = LARGE) -> str:
    """How a source fails: the error's code, and what it says."""
    with (
        pytest.raises((BadAdapter, Unavailable)) as error,
        sources.fetched(source, max_bytes),
    ):
        pass
    said = str(error.value)
    assert SECRET not in said
    assert "secret-token" not in said
    assert error.value.__cause__ is None
    return f"{error.value.code}: {said}"


def test_what_is_missing_is_named(sources: MachineSources, lora: Any, scratch: Path) -> None:
    why = failure(sources, "s3://others/team/lora")
    assert why.startswith("bad-adapter: 127.0.0.1:")
    assert why.endswith("has no bucket others")
    why = failure(sources, "s3://adapters/team")
    assert "bad-adapter: s3://adapters/team is no adapter" in why
    assert f"team/{CONFIG_FILE} and team/{WEIGHTS_FILE}" in why
    lora.delete_object(Bucket="adapters", Key=f"team/lora/{WEIGHTS_FILE}")
    assert "is no adapter" in failure(sources, "s3://adapters/team/lora")
    assert not list(scratch.iterdir())


def test_weights_that_are_too_large_are_refused(
    sources: MachineSources, lora: Any, scratch: Path
) -> None:
    size = len(FILES[WEIGHTS_FILE])
    why = failure(sources, "s3://adapters/team/lora", size - 1)
    assert f"{WEIGHTS_FILE} of s3://adapters/team/lora has more than {size - 1} bytes" in why
    lora.put_object(Bucket="adapters", Key=f"team/lora/{CONFIG_FILE}", Body=bytes((1 << 20) + 1))
    assert f"bad-adapter: {CONFIG_FILE} of" in failure(sources, "s3://adapters/team/lora")
    assert not list(scratch.iterdir())


def test_who_may_not_read_is_told_so_without_the_key(
    sources: MachineSources, lora: Any, s3: str
) -> None:
    told(s3, "reset-auth", "0")
    try:
        why = failure(sources, "s3://adapters/team/lora")
    finally:
        told(s3, "reset-auth", "inf")
    assert "bad-adapter: 127.0.0.1:" in why
    assert "does not let the head read s3://adapters/team/lora (InvalidAccessKeyId)" in why
    assert KEY_ID not in why


def test_without_credentials_it_is_said_how_to_give_them(
    sources: MachineSources, lora: Any, variables: pytest.MonkeyPatch
) -> None:
    variables.delenv("AWS_SECRET_ACCESS_KEY")
    why = failure(sources, "s3://adapters/team/lora")
    assert why.startswith("source-unavailable: the head has no credentials")
    variables.delenv("AWS_ACCESS_KEY_ID")
    assert failure(sources, "s3://adapters/team/lora") == why


@pytest.mark.parametrize(
    ("name", "value"),
    [("AWS_ENDPOINT_URL", "no url: secret-token"), ("AWS_PROFILE", "secret-token")],
)
def test_settings_that_lead_nowhere_are_told_without_repeating_them(
    sources: MachineSources, lora: Any, variables: pytest.MonkeyPatch, name: str, value: str
) -> None:
    variables.setenv(name, value)
    why = failure(sources, "s3://adapters/team/lora")
    assert "source-unavailable: s3://adapters/team/lora cannot be asked for" in why


def test_an_endpoint_that_is_away_is_named_without_its_password(
    sources: MachineSources, variables: pytest.MonkeyPatch, scratch: Path
) -> None:
    address = free_address()
    variables.setenv("AWS_ENDPOINT_URL", f"http://user:secret-token@{address}")
    why = failure(sources, "s3://adapters/team/lora")
    assert f"source-unavailable: {address} does not answer for s3://adapters/team/lora" in why
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            broken_buckets.silent,
            r"source-unavailable: .* does not answer for .*\(ReadTimeoutError\)",
        ),
        (
            broken_buckets.stalled,
            r"source-unavailable: .* breaks off in .*, after 10 bytes \(ReadTimeout",
        ),
        (broken_buckets.endless, r"bad-adapter: .* has more than 1048576 bytes"),
        (broken_buckets.huge, r"bad-adapter: .* has more than 1048576 bytes"),
        (
            broken_buckets.torn,
            r"source-unavailable: .* breaks off in .*config.json', after \d\d bytes",
        ),
        (broken_buckets.failing, r"source-unavailable: .* answers 503 .*try again"),
        (broken_buckets.no_bucket, r"bad-adapter: .* is no adapter"),
        (broken_buckets.expired, r"source-unavailable: .* answers 400 \(ExpiredToken\)"),
        (broken_buckets.elsewhere, r"bad-adapter: .* refuses .*IllegalLocation.*AWS_REGION"),
    ],
)
def test_a_server_that_does_not_bring_the_object_is_given_up(
    sources: MachineSources,
    variables: pytest.MonkeyPatch,
    scratch: Path,
    answer: Callable[[BrokenBucket], None],
    why: str,
) -> None:
    with broken_buckets.bucket(answer) as server:
        variables.setenv("AWS_ENDPOINT_URL", server.url)
        said = failure(sources, "s3://adapters/lora")
    with pytest.raises(AssertionError, match=why):
        raise AssertionError(said)
    assert not list(scratch.iterdir())


def test_a_byte_now_and_then_is_too_slow(variables: pytest.MonkeyPatch, scratch: Path) -> None:
    sources = MachineSources(scratch, Path("/nowhere"), Patience(window=SHORT, least=1000))
    with broken_buckets.bucket(broken_buckets.trickling) as server:
        variables.setenv("AWS_ENDPOINT_URL", server.url)
        assert "too slowly" in failure(sources, "s3://adapters/lora")


def test_a_download_ends_however_steadily_it_comes(
    variables: pytest.MonkeyPatch, scratch: Path
) -> None:
    sources = MachineSources(scratch, Path("/nowhere"), Patience(whole=SHORT))
    with broken_buckets.bucket(broken_buckets.trickling) as server:
        variables.setenv("AWS_ENDPOINT_URL", server.url)
        assert "has not sent s3://adapters/lora whole" in failure(sources, "s3://adapters/lora")
    assert not list(scratch.iterdir())


def test_a_connection_that_breaks_is_gone_on_with(
    variables: pytest.MonkeyPatch, scratch: Path
) -> None:
    sources = MachineSources(scratch, Path("/nowhere"), Patience(connect=SHORT, tries=20))
    with broken_buckets.bucket(broken_buckets.torn) as server:
        variables.setenv("AWS_ENDPOINT_URL", server.url)
        with sources.fetched("s3://adapters/lora", LARGE) as directory:
            assert is_the_adapter(directory)
    assert server.seen[0] == f"/adapters/lora/{CONFIG_FILE}"
    assert server.seen[1].startswith(f"/adapters/lora/{CONFIG_FILE} bytes=")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (broken_buckets.torn_and_forgetful, "cannot go on from there"),
        (broken_buckets.torn_and_changed, "was changed while it was read"),
    ],
)
def test_halves_of_two_objects_are_never_made_one(
    variables: pytest.MonkeyPatch,
    scratch: Path,
    answer: Callable[[BrokenBucket], None],
    why: str,
) -> None:
    sources = MachineSources(scratch, Path("/nowhere"), Patience(connect=SHORT, tries=3))
    with broken_buckets.bucket(answer) as server:
        variables.setenv("AWS_ENDPOINT_URL", server.url)
        assert why in failure(sources, "s3://adapters/lora")


def test_a_head_that_ends_waits_for_no_download(
    variables: pytest.MonkeyPatch, scratch: Path
) -> None:
    sources = MachineSources(scratch, Path("/nowhere"))
    sources.give_up()
    with broken_buckets.bucket(broken_buckets.endless) as server:
        variables.setenv("AWS_ENDPOINT_URL", server.url)
        assert "the head ends" in failure(sources, "s3://adapters/lora")


def test_a_disk_that_takes_nothing_is_no_fault_of_the_source(lora: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    sources = MachineSources(tmp_path / "file", Path("/nowhere"), BRIEF)
    with pytest.raises(StoreUnavailable), sources.fetched("s3://adapters/team/lora", LARGE):
        pass


@pytest.mark.parametrize(
    "source",
    ["s3://", "s3:///team", "s3://a b/team", "s3://adapters/\n", "s3://adapters/" + "a" * 2000],
)
def test_an_address_that_can_be_none_is_refused(sources: MachineSources, source: str) -> None:
    assert " names no " in failure(sources, source)


def test_credentials_in_an_address_are_not_repeated(sources: MachineSources) -> None:
    why = failure(sources, f"s3://{KEY_ID}:{SECRET}@adapters/team")
    assert "credentials and endpoint are the head's" in why
    assert KEY_ID not in why


def test_no_secret_is_logged_whatever_is_logged(
    sources: MachineSources,
    lora: Any,
    variables: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    variables.setenv("AWS_SESSION_TOKEN", "secret-token")
    with caplog.at_level(logging.DEBUG), sources.fetched("s3://adapters/team/lora", LARGE):
        pass
    assert SECRET not in caplog.text
    assert "secret-token" not in caplog.text
