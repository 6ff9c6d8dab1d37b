"""Every error that crosses a module of the control plane.

PenstockError (500)
 > InvalidInput (422)      > InvalidSpec, InvalidSetting, BadAdapter
 > NotFound (404)          > UnknownDeployment, UnknownNode, UnknownReplica, UnknownGateway,
                           UnknownTenant, UnknownKey, UnknownAdapter, UnknownAlias,
                           UnknownShadow, UnknownRecording
 > Conflict (409)          > DeploymentExists, GatewayNotReplaced, TenantExists, AdapterTaken,
                           AdapterInUse, NotPromoted, NotTestable, ShadowExists, RecordingExists
 > PreconditionFailed (412) > RevisionMismatch
 > Refused                 > Unauthenticated (401), Forbidden (403), BodyTooSlow (408),
                           BodyTooLarge (413), UnsupportedMediaType (415), Misdirected (421)
 > Unavailable (503)       > NodeUnreachable, NoHeadAnswers, StoreUnavailable, HoldsStill,
                           TokenRefused, SourceUnavailable, NoReadyReplica
 > ReplicaFailed (502), ReplicaTooSlow (504)
 > ReplicaRefused (500)
 > ImpossibleTransition (500)
 > CannotStart (500)       > AddressTaken, DataDirInUse, StoreCorrupted, LaunchFailed,
                           SecretUnusable

`status_hint` is the HTTP status that the admin API answers with; nothing else maps errors to HTTP.
The message says what was wrong, with the value, and what to do.
"""

from __future__ import annotations


class PenstockError(Exception):
    """The root: something that Penstock itself can explain."""

    status_hint = 500
    kind = "error"  # short, stable name for problem bodies and logs


class InvalidInput(PenstockError):
    """The caller's value cannot be used; the same value never will be."""

    status_hint = 422
    kind = "invalid"


class InvalidSpec(InvalidInput):
    """A deployment's spec contradicts itself or names something impossible."""

    kind = "invalid-spec"


class InvalidSetting(InvalidInput):
    """A flag or environment variable of a process."""

    kind = "invalid-setting"


class BadAdapter(InvalidInput):
    """The files of an adapter cannot be served as they are."""

    kind = "bad-adapter"


class NotFound(PenstockError):
    """What was named does not exist."""

    status_hint = 404
    kind = "not-found"


class UnknownDeployment(NotFound):
    """No deployment has this name."""

    kind = "unknown-deployment"


class UnknownNode(NotFound):
    """No node agent of this id has registered."""

    kind = "unknown-node"


class UnknownReplica(NotFound):
    """No replica has this id."""

    kind = "unknown-replica"


class UnknownGateway(NotFound):
    """This head runs no gateway of this id."""

    kind = "unknown-gateway"


class UnknownTenant(NotFound):
    """No tenant has this id."""

    kind = "unknown-tenant"


class UnknownKey(NotFound):
    """The tenant has no key of this id."""

    kind = "unknown-key"


class UnknownAdapter(NotFound):
    """No adapter version of this name is registered."""

    kind = "unknown-adapter"


class UnknownAlias(NotFound):
    """The deployment has no alias of this name."""

    kind = "unknown-alias"


class UnknownShadow(NotFound):
    """No shadow has this name."""

    kind = "unknown-shadow"


class UnknownRecording(NotFound):
    """No recording has this name."""

    kind = "unknown-recording"


class Conflict(PenstockError):
    """What exists already stands in the way."""

    status_hint = 409
    kind = "conflict"


class DeploymentExists(Conflict):
    """A deployment of this name exists."""

    kind = "deployment-exists"


class TenantExists(Conflict):
    """A tenant of this id exists."""

    kind = "tenant-exists"


class ShadowExists(Conflict):
    """A shadow of this name exists."""

    kind = "shadow-exists"


class RecordingExists(Conflict):
    """A recording of this name exists."""

    kind = "recording-exists"


class AdapterTaken(Conflict):
    """The `name@version` means other bytes, or did once."""

    kind = "adapter-taken"


class AdapterInUse(Conflict):
    """An alias names the adapter version."""

    kind = "adapter-in-use"


class NotPromoted(Conflict):
    """The adapter version cannot come to that state, or not yet."""

    kind = "not-promoted"


class NotTestable(Conflict):
    """The deployment serves nothing that a test could ask, or is to have no replica."""

    kind = "not-testable"


class GatewayNotReplaced(Conflict):
    """The gateway that was to take over does not work, or another one is on its way."""

    kind = "gateway-not-replaced"


class PreconditionFailed(PenstockError):
    """What the caller saw is no longer so."""

    status_hint = 412
    kind = "precondition-failed"


class RevisionMismatch(PreconditionFailed):
    """The deployment, or a stored document, was changed in the meantime."""

    kind = "revision-mismatch"


class ForeignHead(PreconditionFailed):
    """The order comes from a head that this node does not belong to, or no longer."""

    kind = "foreign-head"


class Refused(PenstockError):
    """A request is turned away before anybody looks at what it asks for."""

    kind = "refused"


class Unauthenticated(Refused):
    """Nobody knows who asks."""

    status_hint = 401
    kind = "unauthenticated"


class UnknownToken(Unauthenticated):
    """A token that nobody has."""


class TooManyTries(Refused):
    """Too many wrong tokens came from this address lately."""

    status_hint = 429
    kind = "too-many-tries"


class Forbidden(Refused):
    """Who asks is known, and may not."""

    status_hint = 403
    kind = "forbidden"


class BodyTooSlow(Refused):
    """The request's body did not come in time."""

    status_hint = 408
    kind = "body-too-slow"


class BodyTooLarge(Refused):
    """The request's body is larger than any that is taken."""

    status_hint = 413
    kind = "body-too-large"


class UnsupportedMediaType(Refused):
    """The request's body is not JSON."""

    status_hint = 415
    kind = "unsupported-media-type"


class Misdirected(Refused):
    """The request was sent to a name that is not ours."""

    status_hint = 421
    kind = "misdirected"


class Unavailable(PenstockError):
    """Something this needs does not answer now; later it may."""

    status_hint = 503
    kind = "unavailable"


class NodeUnreachable(Unavailable):
    """A node agent did not answer."""

    kind = "node-unreachable"


class HoldsStill(Unavailable):
    """This head, or the head that asks, is not in command of the cluster."""

    kind = "holds-still"


class TokenRefused(Unavailable):
    """Whom this process calls does not take its cluster token, or asks for one that it has not."""

    kind = "token-refused"


class NotAdmitted(Unavailable):
    """The head does not let this node agent or gateway in; the text says why."""

    kind = "not-admitted"


class NoHeadAnswers(Unavailable):
    """Nobody speaks for a head at its address, or it cannot be reached."""

    kind = "no-head-answers"


class StoreUnavailable(Unavailable):
    """The store could not write or read: disk full, file gone."""

    kind = "store-unavailable"


class SourceUnavailable(Unavailable):
    """Where an adapter is to come from does not answer, or not to this process."""

    kind = "source-unavailable"


class NoReadyReplica(Unavailable):
    """The deployment has no replica that could be asked."""

    kind = "no-ready-replica"


class ReplicaFailed(PenstockError):
    """A replica answered a request with an error."""

    status_hint = 502
    kind = "replica-failed"


class ReplicaTooSlow(PenstockError):
    """A replica did not answer a request in time."""

    status_hint = 504
    kind = "replica-too-slow"


class ReplicaRefused(PenstockError):
    """A node agent will not start a replica as it was described; asking again would not help."""

    kind = "replica-refused"


class ImpossibleTransition(PenstockError):
    """A lifecycle table has no such step: a fault of ours."""

    kind = "impossible-transition"


class CannotStart(PenstockError):
    """A process cannot begin its work: one line for the terminal, then exit code 1."""

    kind = "cannot-start"


class AddressTaken(CannotStart):
    """Another process listens there."""

    kind = "address-taken"


class DataDirInUse(CannotStart):
    """Another process of the same kind owns the data directory."""

    kind = "data-dir-in-use"


class StoreCorrupted(CannotStart):
    """The store's file is not what was written."""

    kind = "store-corrupted"


class LaunchFailed(CannotStart):
    """A child process could not be started."""

    kind = "launch-failed"


class SecretUnusable(CannotStart):
    """A file that should hold a secret is not there, or is open to others than its owner."""

    kind = "secret-unusable"
