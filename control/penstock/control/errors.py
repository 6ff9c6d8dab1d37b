"""Every error that may cross a module of control: a text for a person, and a code for a program.

The text says what was wrong, with the value, and what to do. The code stands in problem bodies and
logs, and has the HTTP status that the admin API answers with; nothing else maps errors to HTTP.
There is a class for each branch that code catches, and for no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Code(StrEnum):
    """What went wrong: the name of it, its HTTP status, and what it means."""

    status: int
    meaning: str

    def __new__(cls, name: str, status: int, meaning: str) -> Code:
        """The name as text, with the rest beside it."""
        self = str.__new__(cls, name)
        self._value_, self.status, self.meaning = name, status, meaning
        return self

    ERROR = "error", 500, "something that Penstock itself can explain"

    INVALID = "invalid", 422, "the caller's value cannot be used; the same value never will be"
    INVALID_SPEC = "invalid-spec", 422, "a spec contradicts itself or names something impossible"
    KEY_REUSED = "idempotency-key-reused", 422, "the key came before, with another request"
    INVALID_SETTING = "invalid-setting", 422, "a flag or environment variable of a process"
    BAD_ADAPTER = "bad-adapter", 422, "the files of an adapter cannot be served as they are"

    NOT_FOUND = "not-found", 404, "what was named does not exist"
    UNKNOWN_DEPLOYMENT = "unknown-deployment", 404, "no deployment has this name"
    UNKNOWN_REVISION = "unknown-revision", 404, "the deployment keeps no revision of this number"
    UNKNOWN_NODE = "unknown-node", 404, "no node agent of this id has registered"
    UNKNOWN_REPLICA = "unknown-replica", 404, "no replica has this id"
    UNKNOWN_GATEWAY = "unknown-gateway", 404, "this head runs no gateway of this id"
    UNKNOWN_TENANT = "unknown-tenant", 404, "no tenant has this id"
    UNKNOWN_KEY = "unknown-key", 404, "the tenant has no key of this id"
    UNKNOWN_ADAPTER = "unknown-adapter", 404, "no adapter version of this name is registered"
    UNKNOWN_ALIAS = "unknown-alias", 404, "the deployment has no alias of this name"
    UNKNOWN_SHADOW = "unknown-shadow", 404, "no shadow has this name"
    UNKNOWN_CANARY = "unknown-canary", 404, "no canary has this name"
    UNKNOWN_ENGINE = "unknown-engine", 404, "no engine has this name or id"
    UNKNOWN_RECORDING = "unknown-recording", 404, "no recording has this name"
    UNKNOWN_REQUEST = "unknown-request", 404, "no gateway keeps what it decided about the request"

    CONFLICT = "conflict", 409, "what exists already stands in the way"
    DEPLOYMENT_EXISTS = "deployment-exists", 409, "a deployment of this name exists"
    TENANT_EXISTS = "tenant-exists", 409, "a tenant of this id exists"
    SHADOW_EXISTS = "shadow-exists", 409, "a shadow of this name exists"
    CANARY_EXISTS = "canary-exists", 409, "a canary of this name has not ended"
    CANARY_OWNS = "canary-owns", 409, "a canary that has not ended moves it: abort that first"
    NO_EVIDENCE = "no-evidence", 409, "the policy asks for evidence, and there is none that passed"
    RECORDING_EXISTS = "recording-exists", 409, "a recording of this name exists"
    ADAPTER_TAKEN = "adapter-taken", 409, "the `name@version` means other bytes, or did once"
    ADAPTER_IN_USE = "adapter-in-use", 409, "an alias names the adapter version"
    NOT_PROMOTED = "not-promoted", 409, "the adapter version cannot come to that state, or not yet"
    NOTHING_TO_UNDO = "nothing-to-undo", 409, "no earlier revision of the deployment served"
    ENGINE_FAILED = "engine-failed", 409, "the engine did not get ready, and is no more"
    NOT_TESTABLE = "not-testable", 409, "nothing that a test could ask, or no replica is to be"
    ANSWER_NOT_KEPT = "answer-not-kept", 409, "done before, and what was answered then is not known"
    SECRET_SHOWN_ONCE = "secret-shown-once", 409, "done before, and the secret is not shown again"
    KEY_IN_FLIGHT = "idempotency-key-in-flight", 409, "the first request with this key is under way"
    GATEWAY_NOT_REPLACED = "gateway-not-replaced", 409, "the next one fails, or is on its way"

    REVISION_MISMATCH = "revision-mismatch", 412, "it was changed in the meantime"
    FOREIGN_HEAD = "foreign-head", 412, "a head that this node does not belong to, or no longer"

    REFUSED = "refused", 500, "turned away before anybody looks at what is asked for"
    UNAUTHENTICATED = "unauthenticated", 401, "nobody knows who asks"
    TOO_MANY_TRIES = "too-many-tries", 429, "too many wrong tokens of this address lately"
    FORBIDDEN = "forbidden", 403, "who asks is known, and may not"
    TOO_MANY_ENGINES = "too-many-engines", 429, "of this token, or of all, as many as may be"
    BODY_TOO_SLOW = "body-too-slow", 408, "the request's body did not come in time"
    BODY_TOO_LARGE = "body-too-large", 413, "the request's body is larger than any that is taken"
    UNSUPPORTED_MEDIA_TYPE = "unsupported-media-type", 415, "the request's body is not JSON"
    MISDIRECTED = "misdirected", 421, "the request was sent to a name that is not ours"

    UNAVAILABLE = "unavailable", 503, "something this needs does not answer now; later it may"
    NODE_UNREACHABLE = "node-unreachable", 503, "a node agent did not answer"
    HOLDS_STILL = "holds-still", 503, "the head that is asked, or that asks, is not in command"
    TOKEN_REFUSED = "token-refused", 503, "the cluster token is not taken, or there is none"
    NOT_ADMITTED = "not-admitted", 503, "the head does not let this node agent or gateway in"
    NO_HEAD_ANSWERS = "no-head-answers", 503, "nobody speaks for a head at its address"
    STORE_UNAVAILABLE = "store-unavailable", 503, "the store could not write or read"
    SOURCE_UNAVAILABLE = "source-unavailable", 503, "where an adapter is to come from is silent"
    NO_READY_REPLICA = "no-ready-replica", 503, "the deployment has no replica to ask"

    REPLICA_FAILED = "replica-failed", 502, "a replica answered a request with an error"
    REPLICA_TOO_SLOW = "replica-too-slow", 504, "a replica did not answer a request in time"
    REPLICA_REFUSED = "replica-refused", 500, "a node agent will never start such a replica"
    IMPOSSIBLE_TRANSITION = "impossible-transition", 500, "a fault of ours: no table has this step"

    CANNOT_START = "cannot-start", 500, "a process cannot begin its work"
    ADDRESS_TAKEN = "address-taken", 500, "another process listens there"
    DATA_DIR_IN_USE = "data-dir-in-use", 500, "another process owns the data directory"
    STORE_CORRUPTED = "store-corrupted", 500, "the store's file is not what was written"
    LAUNCH_FAILED = "launch-failed", 500, "a child process could not be started"
    SECRET_UNUSABLE = "secret-unusable", 500, "a secret's file is not there, or open to others"


class PenstockError(Exception):
    """The root: something that Penstock itself can explain."""

    code = Code.ERROR

    def __init__(self, text: str, code: Code | None = None) -> None:
        """`code`: where it is another one than that of its class."""
        super().__init__(text)
        self.code = code or self.code


class InvalidInput(PenstockError):
    """The caller's value cannot be used; the same value never will be."""

    code = Code.INVALID


def invalid_setting(text: str) -> InvalidInput:
    """A flag or environment variable of a process cannot be used."""
    return InvalidInput(text, Code.INVALID_SETTING)


class InvalidSpec(InvalidInput):
    """A deployment's spec contradicts itself or names something impossible."""

    code = Code.INVALID_SPEC


class BadAdapter(InvalidInput):
    """The files of an adapter cannot be served as they are."""

    code = Code.BAD_ADAPTER


class Fault(NamedTuple):
    """What is wrong with one of several documents."""

    document: int  # counted from 0; -1: none of them
    path: tuple[str | int, ...]  # of what is wrong in it; empty: the whole
    text: str


class BadDocuments(InvalidInput):
    """Some of the documents of one request are refused, so nothing of it is done."""

    def __init__(self, faults: Sequence[Fault], code: Code = Code.INVALID) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(map(_told, self.faults)), code)


def _told(fault: Fault) -> str:
    place = ".".join(map(str, fault.path))
    where = f"document {fault.document + 1}: " if fault.document >= 0 else ""
    return f"{where}{place}: {fault.text}" if place else f"{where}{fault.text}"


class NotFound(PenstockError):
    """What was named does not exist."""

    code = Code.NOT_FOUND


class ForeignHead(PenstockError):
    """The order comes from a head that this node does not belong to, or no longer."""

    code = Code.FOREIGN_HEAD


class Refused(PenstockError):
    """A request is turned away before anybody looks at what it asks for."""

    code = Code.REFUSED


class Unauthenticated(Refused):
    """Nobody knows who asks."""

    code = Code.UNAUTHENTICATED


class UnknownToken(Unauthenticated):
    """A token that nobody has."""


class Unavailable(PenstockError):
    """Something this needs does not answer now; later it may."""

    code = Code.UNAVAILABLE


class NodeUnreachable(Unavailable):
    """A node agent did not answer."""

    code = Code.NODE_UNREACHABLE


class HoldsStill(Unavailable):
    """This head, or the head that asks, is not in command of the cluster."""

    code = Code.HOLDS_STILL


class TokenRefused(Unavailable):
    """Whom this process calls does not take its cluster token, or asks for one that it has not."""

    code = Code.TOKEN_REFUSED


class NotAdmitted(Unavailable):
    """The head does not let this node agent or gateway in; the text says why."""

    code = Code.NOT_ADMITTED


class NoHeadAnswers(Unavailable):
    """Nobody speaks for a head at its address, or it cannot be reached."""

    code = Code.NO_HEAD_ANSWERS


class StoreUnavailable(Unavailable):
    """The store could not write or read: disk full, file gone."""

    code = Code.STORE_UNAVAILABLE


class ReplicaRefused(PenstockError):
    """A node agent will not start a replica as it was described; asking again would not help."""

    code = Code.REPLICA_REFUSED


class CannotStart(PenstockError):
    """A process cannot begin its work: one line for the terminal, then exit code 1."""

    code = Code.CANNOT_START


class AddressTaken(CannotStart):
    """Another process listens there."""

    code = Code.ADDRESS_TAKEN


class LaunchFailed(CannotStart):
    """A child process could not be started."""

    code = Code.LAUNCH_FAILED


class SecretUnusable(CannotStart):
    """A file that should hold a secret is not there, or is open to others than its owner."""

    code = Code.SECRET_UNUSABLE


@contextmanager
def writing_below(directory: Path) -> Iterator[None]:
    """Says of what the disk refuses where it was. Raises `StoreUnavailable`."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(
            f"cannot write below {directory}: {error.strerror}; check its disk's space and its"
            " rights"
        ) from error
