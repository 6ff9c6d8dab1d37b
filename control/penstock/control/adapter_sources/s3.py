"""Adapters in a bucket: `s3://bucket/prefix`, at Amazon or at whatever speaks its protocol.

Where the endpoint is and who asks is boto3's to find out: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL,
AWS_REGION, and its chain of credentials. What boto3 says is never repeated: an endpoint or a proxy
may have a password in its URL. Importing this costs tens of megabytes: do so when it is needed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.exceptions import ConnectionError as NoConnection
from urllib3.exceptions import HTTPError, IncompleteRead

from penstock.adapters.shown import shown
from penstock.adapters.version import CONFIG_FILE, CONTENT_FILES
from penstock.control.adapter_sources.patience import Patience
from penstock.control.adapter_sources.scratch import LARGEST_CONFIG, ReceivedFile
from penstock.control.errors import BadAdapter, Code, PenstockError, Unavailable

_PIECE: Final = 1 << 20
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_LONGEST_KEY: Final = 1024
_CODE: Final = re.compile(r"[A-Za-z0-9.]{1,64}")
_DENIED: Final = (401, 403)
_PASSING: Final = {"ExpiredToken", "RequestExpired", "RequestTimeTooSkewed", "SlowDown"}
_CREDENTIALS: Final = (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError)

# At DEBUG botocore logs the headers that it signs, session tokens among them.
for _talker in ("boto3", "botocore", "urllib3"):
    logging.getLogger(_talker).setLevel(logging.INFO)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in which bucket; `prefix` is empty or ends with a slash."""

    bucket: str
    prefix: str

    @staticmethod
    def parse(source: str) -> Place:
        """Of `s3://bucket/prefix`. Raises `BadAdapter`, and repeats nothing secret."""
        bucket, _, prefix = source.removeprefix("s3://").partition("/")
        if "@" in bucket or ":" in bucket:
            raise BadAdapter(
                "an s3:// source begins with its bucket: credentials and endpoint are the head's, "
                "by AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL"
            )
        prefix = prefix.rstrip("/") + "/" if prefix.strip("/") else ""
        if not _BUCKET.fullmatch(bucket):
            raise BadAdapter(f"{shown(source)} names no bucket: write s3://bucket/prefix")
        if not prefix.isprintable() or len(prefix.encode()) + 64 > _LONGEST_KEY:
            raise BadAdapter(f"{shown(source)} names no prefix that keys could have")
        return Place(bucket, prefix)

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


def download(
    place: Place, directory: Path, max_bytes: int, patience: Patience, given_up: Callable[[], bool]
) -> None:
    """Brings an adapter's two files into the directory. `given_up` is asked between pieces.

    Raises `BadAdapter`, `source-unavailable`, and `StoreUnavailable` for our own disk.
    """
    with _in_words(place, "S3"):
        client = Session().client(
            "s3",
            config=Config(
                connect_timeout=patience.connect.total_seconds(),
                read_timeout=patience.silence.total_seconds(),
                retries={"mode": "standard", "total_max_attempts": patience.tries},
            ),
        )
    bucket = _Bucket(client, place, patience, given_up)
    try:
        for name in CONTENT_FILES:
            largest = LARGEST_CONFIG if name == CONFIG_FILE else max_bytes
            with ReceivedFile(directory / name, largest, f"{name} of {place}") as file:
                bucket.copy(place.prefix + name, file)
    finally:
        client.close()


class _Bucket:
    """One bucket, asked by one thread."""

    def __init__(
        self, client: Any, place: Place, patience: Patience, given_up: Callable[[], bool]
    ) -> None:
        self._client, self._place, self._patience = client, place, patience
        self._given_up = given_up
        self._ends = monotonic() + patience.whole.total_seconds()
        self._raw: Any = None
        # The body that boto3 gives reads until it has as much as was asked for, however slowly that
        # comes; the connection's own gives what is there, so that the pace can be looked at.
        client.meta.events.register("after-call.s3.GetObject", self._keep_connection)

    def copy(self, key: str, file: ReceivedFile) -> None:
        """Brings one object; goes on where it was when the connection breaks."""
        etag = ""
        for attempt in range(1, self._patience.tries + 1):
            etag, rest = self._open(key, file.size, etag)
            try:
                file.will_have(file.size + rest)
                for piece in self._pieces(rest):
                    file.write(piece)
                return
            except (HTTPError, OSError) as error:
                if attempt == self._patience.tries or not etag:
                    raise _silent(
                        f"{self._endpoint} breaks off in {self._told(key)}, after {file.size} "
                        f"bytes ({type(error).__name__}); try again",
                    ) from None
            finally:
                self._raw.close()

    def _open(self, key: str, at: int, etag: str) -> tuple[str, int]:
        """Asks for the object from a byte on, as it was when it had this tag.

        Returns its tag, and how many bytes there are to come; 0 where that is not told.
        """
        wanted = {"Range": f"bytes={at}-", "IfMatch": etag} if at else {}
        with _in_words(self._place, self._endpoint):
            answer = self._client.get_object(Bucket=self._place.bucket, Key=key, **wanted)
        if at and not str(answer.get("ContentRange", "")).startswith(f"bytes {at}-"):
            self._raw.close()
            raise _silent(
                f"{self._endpoint} broke off in {self._told(key)} and cannot go on from there; "
                "try again",
            )
        return str(answer.get("ETag", "")), int(answer.get("ContentLength", 0))

    def _pieces(self, rest: int) -> Iterator[bytes]:
        """The rest of the object, as it comes. Raises `source-unavailable` where it hardly does."""
        came, window = 0, 0
        ends = monotonic() + self._patience.window.total_seconds()
        while piece := self._raw.read1(_PIECE):
            yield piece
            came += len(piece)
            window += len(piece)
            if self._given_up():
                raise _silent(f"the head ends: {self._place} was not read to its end")
            if monotonic() >= self._ends:
                raise _silent(
                    f"{self._endpoint} has not sent {self._place} whole after "
                    f"{self._patience.whole.total_seconds():.0f} s, which is all that is waited",
                )
            if monotonic() < ends:
                continue
            if window < self._patience.least:
                raise _silent(
                    f"{self._endpoint} sends {self._place} too slowly: {window} bytes in "
                    f"{self._patience.window.total_seconds():.0f} s; try again",
                )
            window, ends = 0, monotonic() + self._patience.window.total_seconds()
        if came < rest:  # a connection that is closed is an end like any other to read1
            raise IncompleteRead(came, rest - came)

    def _keep_connection(self, http_response: Any, **_: object) -> None:
        self._raw = http_response.raw

    @property
    def _endpoint(self) -> str:
        """Host and port; not the URL, which may have a password in it."""
        url = urlsplit(self._client.meta.endpoint_url)
        return f"{url.hostname}:{url.port}" if url.port else str(url.hostname)

    def _told(self, key: str) -> str:
        return shown(f"s3://{self._place.bucket}/{key}")


@contextmanager
def _in_words(place: Place, endpoint: str) -> Iterator[None]:
    """Says what is wrong in words of ours, without those of boto3."""
    try:
        yield
    except ClientError as error:
        raise _refusal(place, endpoint, error) from None
    except _CREDENTIALS:
        raise _silent(
            f"the head has no credentials to read {place} with: give its process "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what else boto3 looks for",
        ) from None
    except (NoConnection, HTTPClientError) as error:
        raise _silent(
            f"{endpoint} does not answer for {place} ({type(error).__name__}); is it there, and is "
            "AWS_ENDPOINT_URL of the head's process right?",
        ) from None
    except (BotoCoreError, ValueError) as error:
        raise _silent(
            f"{place} cannot be asked for ({type(error).__name__}): look at the variables AWS_... "
            "of the head's process and at its ~/.aws",
        ) from None


def _silent(text: str) -> Unavailable:
    return Unavailable(text, Code.SOURCE_UNAVAILABLE)


def _refusal(place: Place, endpoint: str, error: ClientError) -> PenstockError:
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    code = code if _CODE.fullmatch(code) else "no code"
    if status == 412:
        return _silent(f"{place} was changed while it was read; try again")
    if status >= 500 or code in _PASSING:
        return _silent(f"{endpoint} answers {status} ({code}) for {place}; try again")
    if code == "NoSuchBucket":
        return BadAdapter(f"{endpoint} has no bucket {place.bucket}")
    if status == 404:
        names = " and ".join(place.prefix + name for name in CONTENT_FILES)
        return BadAdapter(
            f"{place} is no adapter: its bucket has to hold {names}, and one is not there"
        )
    if status in _DENIED:
        return BadAdapter(
            f"{endpoint} does not let the head read {place} ({code}): its credentials need "
            "s3:GetObject below that prefix"
        )
    return BadAdapter(
        f"{endpoint} refuses {place}: {status} ({code}); is AWS_REGION of the head's process the "
        "bucket's?"
    )
