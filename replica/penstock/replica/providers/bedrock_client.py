"""boto3 as a client of Bedrock's runtime: the only file that knows it.

boto3 waits where it reads, so each call has a thread; a call that nobody wants any more has its
connection shut down under it, whether the answer has begun or not. Credentials come by AWS's usual
chain. Nothing of what the SDK says of them is passed on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import boto3
import botocore.config
import botocore.credentials
import botocore.eventstream
import botocore.exceptions
import botocore.session
import urllib3.exceptions

from penstock.replica.providers.feed import Feed
from penstock.replica.providers.hosts import Hosts
from penstock.replica.providers.lines import Line, Lines
from penstock.replica.providers.retries import told_wait_ms
from penstock.replica.providers.secrets import scrubbed
from penstock.replica.providers.values import Broken, TooLarge
from penstock.replica.values import CannotLoad

VERSION: Final = boto3.__version__

# They would log headers and bodies.
for _name in ("boto3", "botocore", "urllib3"):
    logging.getLogger(_name).setLevel(logging.WARNING)


def _without_traceback(record: logging.LogRecord) -> bool:
    """Keeps a warning, and leaves out the words that the token service said."""
    record.exc_info = record.exc_text = None
    return True


for _name in ("botocore.credentials", "botocore.tokens"):
    logging.getLogger(_name).addFilter(_without_traceback)


class Refused(Exception):
    """Bedrock answered with an error, at the beginning or in its stream."""

    def __init__(
        self, code: str, message: str, status: int, retry_after_ms: int, request_id: str
    ) -> None:
        super().__init__(code)
        self.code = code
        self.message = message
        self.status = status
        self.retry_after_ms = retry_after_ms
        self.request_id = request_id


class NoCredentials(Exception):
    """The chain has no credentials, or they cannot be had."""


class NotAllowed(Exception):
    """A host that nothing may be sent to; `str()` is its name."""


@dataclass(frozen=True, slots=True)
class Account:
    """Who asks, and where. Empty: as AWS's own configuration says."""

    region: str
    profile: str
    role_arn: str
    endpoint_url: str


class Client:
    """A client for `capacity` calls at once. Timeouts in seconds; `read_timeout` is the longest
    silence that a connection may have."""

    def __init__(
        self,
        account: Account,
        hosts: Hosts,
        capacity: int,
        connect_timeout: float,
        read_timeout: float,
    ) -> None:
        self._account = account
        self._hosts = hosts
        self._config = botocore.config.Config(
            connect_timeout=connect_timeout,
            read_timeout=read_timeout,
            retries={"total_max_attempts": 1},
            max_pool_connections=2 * capacity,
            tcp_keepalive=True,
            user_agent_extra="penstock",
        )
        self._lines = Lines()
        # More than calls: a thread needs a moment to see that its client has left.
        self._threads = ThreadPoolExecutor(2 * capacity, thread_name_prefix="bedrock")
        self._lock = threading.Lock()
        self._made: Any = None
        self._files: tuple[str, ...] = ()  # of AWS's configuration
        self._stamp: object = None  # what they looked like when the client was made
        try:
            self.endpoint_url: str = self._runtime().meta.endpoint_url
        except (botocore.exceptions.BotoCoreError, ValueError) as error:
            raise CannotLoad(f"the bedrock engine: {scrubbed(str(error))}") from None

    async def converse(self, request: dict[str, Any], most: int) -> tuple[str, dict[str, Any]]:
        """The request's id and a unary answer of `most` bytes. Raises what stands above, and
        `Broken` and `TooLarge`."""
        loop = asyncio.get_running_loop()
        line = self._lines.line(most)
        try:
            reply = await loop.run_in_executor(self._threads, self._converse, request, line)
        finally:
            line.cut()
        return _request_id(reply), reply

    async def stream(self, request: dict[str, Any], most: int) -> AsyncGenerator[list[Any], None]:
        """A streamed answer: the request's id, a text, before the events. Raises as `converse`
        does; closing it ends the request at Bedrock."""
        feed = Feed()
        self._threads.submit(self._read, request, feed, most)
        async with contextlib.aclosing(feed.batches()) as batches:
            async for batch in batches:
                yield batch

    def close(self) -> None:
        """Takes no more requests. Those that run end with their connections."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _converse(self, request: dict[str, Any], line: Line) -> dict[str, Any]:
        try:
            with self._lines.on(line):
                reply: dict[str, Any] = self._runtime().converse(**request)
        except Exception as error:
            raise self._ours(error) from None
        return reply

    def _read(self, request: dict[str, Any], feed: Feed, most: int) -> None:
        if feed.closed:
            return  # its client left before there was a thread for it
        line = self._lines.line(most)
        feed.opened(line.cut)
        try:
            with self._lines.on(line):
                self._read_events(request, feed)
        except Exception as error:
            feed.end(self._ours(error))

    def _read_events(self, request: dict[str, Any], feed: Feed) -> None:
        reply = self._runtime().converse_stream(**request)
        events = reply["stream"]
        with contextlib.closing(events):
            if feed.put(_request_id(reply)) and all(feed.put(event) for event in events):
                feed.end()

    def _runtime(self) -> Any:
        """The SDK's client, made anew once AWS's files of configuration have changed."""
        with self._lock:
            stamp = _stamp(self._files)
            if self._made is None or self._stamp != stamp:
                session = self._session()
                self._made = session.client(
                    "bedrock-runtime",
                    endpoint_url=self._account.endpoint_url or None,
                    config=self._config,
                )
                _watch(self._made, self._lines)
                self._stamp = _stamp(self._files)
            return self._made

    def _session(self) -> Any:
        account = self._account
        core = botocore.session.Session(profile=account.profile or None)
        variables = ("credentials_file", "config_file")
        self._files = tuple(
            os.path.expanduser(core.get_config_variable(name)) for name in variables
        )
        core.register("before-send.*.*", self._check_host)
        if account.region:
            core.set_config_variable("region", account.region)
        if account.role_arn:
            fetcher = botocore.credentials.AssumeRoleCredentialFetcher(
                partial(core.create_client, config=self._config),
                core.get_credentials(),
                account.role_arn,
                extra_args={"RoleSessionName": "penstock"},
            )
            core._credentials = botocore.credentials.DeferredRefreshableCredentials(
                method="assume-role", refresh_using=fetcher.fetch_credentials
            )
        return boto3.Session(botocore_session=core)

    def _check_host(self, request: Any, **_: Any) -> None:
        host = urlsplit(request.url).hostname or ""
        if not self._hosts.allow(host):
            raise NotAllowed(host)

    def _ours(self, error: Exception) -> Exception:
        """The error as one of those above; other credentials are looked for the next time."""
        made = _translated(error)
        if isinstance(made, NoCredentials) or (
            isinstance(made, Refused) and made.status in (401, 403)
        ):
            with self._lock:
                self._made = None
        return made


def _watch(client: Any, lines: Lines) -> None:
    """Has the SDK's client go by these lines, to proxies, too. There is no setting for that: it
    is where the SDK itself puts the classes of its connections."""
    pools = client._endpoint.http_session._pool_classes_by_scheme
    for scheme, pool in pools.items():
        watched = lines.watched(pool.ConnectionCls)
        pools[scheme] = type(pool.__name__, (pool,), {"ConnectionCls": watched})


def _request_id(reply: dict[str, Any]) -> str:
    return str(reply.get("ResponseMetadata", {}).get("RequestId", ""))


def _stamp(files: tuple[str, ...]) -> object:
    """What these files look like now."""
    stamp = []
    for path in files:
        try:
            status = os.stat(path)
            stamp.append((path, status.st_ino, status.st_mtime_ns, status.st_size))
        except OSError:
            stamp.append((path, 0, 0, 0))
    return stamp


_NO_CREDENTIALS: Final = (
    botocore.exceptions.NoCredentialsError,
    botocore.exceptions.PartialCredentialsError,
    botocore.exceptions.CredentialRetrievalError,
    botocore.exceptions.NoAuthTokenError,
    botocore.exceptions.TokenRetrievalError,
    botocore.exceptions.SSOError,
    botocore.exceptions.ProfileNotFound,
    botocore.exceptions.MetadataRetrievalError,
)
_KINDS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (botocore.exceptions.SSLError, "its certificate is not trusted, or it speaks no TLS"),
    (botocore.exceptions.ConnectTimeoutError, "there was no connection in time"),
    (botocore.exceptions.EndpointConnectionError, "there is no connection"),
    (botocore.exceptions.ProxyConnectionError, "there is no connection to the proxy"),
    (botocore.exceptions.ReadTimeoutError, "the connection was silent for too long"),
    (urllib3.exceptions.ReadTimeoutError, "the connection was silent for too long"),
    (botocore.exceptions.HTTPClientError, "the connection broke"),
    (urllib3.exceptions.HTTPError, "the connection broke"),
    (botocore.eventstream.ParserError, "what came is damaged"),
    (OSError, "the connection broke"),
)


_UNSENT: Final = (
    botocore.exceptions.SSLError,
    botocore.exceptions.ConnectTimeoutError,
    botocore.exceptions.EndpointConnectionError,
    botocore.exceptions.ProxyConnectionError,
)


def _translated(error: Exception) -> Exception:
    cause = getattr(error, "kwargs", {}).get("error")  # what the SDK has wrapped
    if isinstance(cause, TooLarge):
        return cause
    match error:
        case NotAllowed() | TooLarge():
            return error
        case botocore.exceptions.ClientError():
            return _refused(error.response)
        case botocore.exceptions.ParamValidationError():
            return Refused("ValidationException", str(error), 400, 0, "")
    if isinstance(error, _NO_CREDENTIALS):
        return NoCredentials(type(error).__name__)
    for kind, words in _KINDS:
        if isinstance(error, kind):
            return Broken(words, sent=not isinstance(error, _UNSENT))
    return Broken(f"the request could not be made ({type(error).__name__})")


def _refused(response: dict[str, Any]) -> Refused:
    told, about = response.get("Error", {}), response.get("ResponseMetadata", {})
    return Refused(
        str(told.get("Code", "")),
        str(told.get("Message", "")),
        int(about.get("HTTPStatusCode") or 0),
        told_wait_ms(about.get("HTTPHeaders", {}), datetime.now(UTC)),
        str(about.get("RequestId") or ""),
    )
