"""Every error the library raises::

    MultiKueueError
    ├── SettingsError            bad settings: what, where, what to do            (the user's to fix)
    ├── KubeconfigError          a kubeconfig that cannot or must not be used     (the user's to fix)
    │   └── ClusterProfileError  a ClusterProfile by which nothing can be reached (the user's to fix)
    ├── AdapterError             a job kind that cannot be registered             (the user's to fix)
    │   └── RuleError            a rule of a job kind that fails for one object   (the user's to fix)
    ├── SandboxError             the sandbox was asked for something it cannot do (the user's to fix)
    └── ApiError                 an API server said no, or nothing
        ├── Unreachable          no answer: refused, reset, TLS, DNS              (retry)
        │   ├── NotSent          no connection: the request has not left           (retry; the write has not happened)
        │   └── DeadlineExceeded no answer in time                                (retry; the write may have happened)
        ├── Unreadable           an answer that is too much to read, or no event  (retry; the write may have happened)
        ├── Unauthorized         401 after a fresh credential                     (the user's to fix)
        ├── Forbidden            403                                              (the user's to fix)
        ├── NotFound             404
        ├── AlreadyExists        409, reason AlreadyExists
        ├── Conflict             409: a precondition failed                       (read again, decide again)
        ├── Expired              410: the resourceVersion is too old              (list again)
        ├── Invalid              400, 415, 422: the request can never succeed
        ├── DependencyUnavailable           a worker cannot have what the job needs          (the user's to fix)
        ├── TooManyRequests      429                                              (retry after `retry_after`)
        └── ServerFault          5xx                                              (retry)

No message holds a credential.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import ClassVar, Final

MAX_RETRY_AFTER: Final = 300.0
"""Seconds a server may ask us to stay away; beyond that it is taken for a mistake."""


class MultiKueueError(Exception):
    """Base of all errors of this library."""


class SettingsError(MultiKueueError):
    """Settings that cannot be used; the message names the path of the setting and what to do."""


class Cause(enum.StrEnum):
    """What is wrong with a worker, or with a job there, or why a job is not offered there: for programs.

    Each says one thing, wherever it is said: in the check's message, in JSON, in labels of metrics, by its remedy.
    """

    # Why it may not be connected to.
    CONTENT = "KubeconfigRefused"
    """Something in the kubeconfig, or in what the ClusterProfile says."""
    SECRET_MISSING = "SecretMissing"
    KEY_MISSING = "KeyMissing"
    """The Secret has no kubeconfig."""
    PROFILES_OFF = "ClusterProfilesOff"
    PROFILES_UNREAD = "ClusterProfilesUnread"
    """The manager's API server does not give them."""
    PROFILE_MISSING = "ClusterProfileMissing"
    PROFILE_UNREADABLE = "ClusterProfileUnreadable"
    NO_PROVIDER = "AccessProviderMissing"
    """The settings name none that could be used."""
    OTHER_PROVIDER = "AccessProviderDiffers"
    """The ClusterProfile has none of those of the settings."""
    UNNAMED = "ClusterNameMissing"
    """The ClusterProfile does not say which cluster it is."""
    NO_TOKEN = "TokenMissing"
    ADDITIONS = "AdditionsUnreadable"
    """The arguments or variables that the ClusterProfile asks for."""
    WORKER_NAMES = "UnusableNames"
    """Nobody knows how it calls namespaces or queues."""
    WORKER_IS_MANAGER = "WorkerIsManager"
    """And its namespaces have no other names."""
    NEVER_TRIED = "NeverTried"

    # Why an attempt has failed.
    BAD_TOKEN = "Unauthorized"
    PLUGIN = "CredentialPlugin"
    """What gives its credentials gives none."""
    CERTIFICATE = "CertificateNotTrusted"
    HOST_NAME = "NameNotFound"
    """Its address has no meaning where the daemon runs."""
    OUT_OF_REACH = "OutOfReach"
    NO_ANSWER = "NoAnswer"
    ANSWERS_UNREADABLE = "AnswersUnreadable"

    # Why a kind cannot be used there.
    NOT_SERVED = "NotServed"
    FIELD_MISSING = "FieldMissing"
    """Its definition there lacks a field that copies need."""

    # Why it cannot have a job.
    NAME_TAKEN = "NameTaken"
    NEED_UNREAD = "DependencyUnread"
    """What the job needs cannot be read on the manager."""
    NEED_NOWHERE = "DependencyNowhere"
    NEED_NOT_COPIED = "DependencyNotCopied"
    """It is not there, and of a kind that is never copied."""
    NEED_IN_USE = "DependencyInUse"
    """It has another content there, for another job."""
    NEED_FOREIGN = "DependencyForeign"
    NEED_GOING = "DependencyGoing"
    """What an earlier job had is about to go."""
    NEED_TOO_MUCH = "DependencyTooMuch"
    COPIES_GO = "CopiesDoNotLast"
    """What is created there is changed, evicted or removed by something else."""
    SHARE_USED_UP = "ShareUsedUp"
    """Its namespace has as much on the worker as one may have."""

    # Why it is not offered a job.
    CORDONED = "Cordoned"
    SECOND_NAME = "SecondName"
    """Another MultiKueueCluster leads to the same cluster, and comes first."""
    BEING_MOVED = "BeingMoved"
    NO_LOCAL_QUEUE = "NoLocalQueue"
    NAMESPACE_UNNAMED = "NamespaceUnnamed"
    """Its MultiKueueCluster names none there for the job's."""
    QUEUE_INACTIVE = "QueueInactive"
    QUEUE_UNFIT = "QueueUnfit"
    NEVER_STARTS = "NeverStarts"
    NAME_TOO_LONG = "NameTooLong"
    NOT_NAMED = "NotNamed"
    NOT_SELECTED = "NotSelected"
    NOT_TOLERATED = "NotTolerated"
    NOT_TOGETHER = "NotTogether"
    OTHER_FLAVOR = "OtherFlavor"
    NEVER_FITS = "NeverFits"
    REFUSED = "Refused"
    FAILED_BEFORE = "FailedBefore"
    ASKED_BEFORE = "AskedBefore"
    NO_ROOM = "NoRoom"
    NO_NODES = "NoNodes"
    CLAIMED = "Claimed"
    OTHERS_WAIT = "OthersWait"
    ON_TRIAL = "OnTrial"
    FIGURES_AWAITED = "FiguresAwaited"
    UNREADABLE = "UnreadableAnnotation"
    """Of the job."""
    NOT_BEST = "NotBest"
    NOT_NOMINATED = "NotNominated"
    """Another controller chooses, or has not yet."""

    # What is said of a job that it was asked about, is to be asked about, or has.
    CONNECTING = "Connecting"
    JOBS_UNREAD = "JobsUnread"
    """It is connected, and what jobs are there is still being read."""
    OBJECT_UNREADABLE = "ObjectUnreadable"
    """What is there of this job."""
    TURN_AWAITED = "TurnAwaited"
    """To preempt."""
    LEFT_OVER = "LeftOver"
    """What an earlier attempt has left there is being removed."""
    NO_QUOTA = "NoQuota"
    """Its Kueue says why."""
    MAY_NOT_PREEMPT = "MayNotPreempt"
    """Its Kueue would, once our gate is open."""
    CHECKS_AWAITED = "ChecksAwaited"
    """Its own admission checks."""
    EVICTED = "Evicted"
    COPY_ENDED = "CopyEnded"
    """Its Kueue has ended the copy."""
    ON_HOLD = "OnHold"
    """Its Kueue holds the job without an eviction."""
    UNLISTED = "Unlisted"
    """It has the job, and no MultiKueueCluster any more."""


class KubeconfigError(MultiKueueError):
    """A kubeconfig that cannot or must not be used.

    `reason` is Kueue's condition reason: `BadKubeConfig`, `InsecureKubeConfig`, ... `cause` is ours.
    """

    def __init__(self, reason: str, message: str, cause: Cause = Cause.CONTENT) -> None:
        super().__init__(message)
        self.reason = reason
        self.cause = cause


class ClusterProfileError(KubeconfigError):
    """A ClusterProfile by which a worker cannot be reached, or must not be; with Kueue's condition reason."""


class AdapterError(MultiKueueError):
    """A job kind that cannot be registered."""


class RuleError(AdapterError):
    """A rule of a job kind that fails for one object; the message names the rule and says why.

    A row's functions may raise it: the user is told on the Workload, and everything else goes on.
    """


class SandboxError(MultiKueueError):
    """The sandbox was asked for something it cannot do."""


class ApiError(MultiKueueError):
    """An API server refused a request, or did not answer.

    Attributes:
        status: HTTP status; 0 when there was no answer.
        reason: the machine-readable reason of the Status body, as `Conflict`; empty when there was none.
        retry_after: seconds the server asked to wait, if it did; at most `MAX_RETRY_AFTER`.
        reported: whether the log has it already, with when it is tried again.
        cluster: the name of the client that asked; empty: it is not known.
        said: the server's own words, without who was asked what; empty: it said none.
        cause: what is wrong, for programs; None: the server's words alone tell.
    """

    retryable: ClassVar[bool] = False
    cause: Cause | None = None

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        retry_after: float | None = None,
        cause: Cause | None = None,
    ) -> None:
        super().__init__(message)
        self.cause = cause or self.cause
        self.status = status
        self.reason = reason
        self.reported = False
        self.cluster = ""
        self.said = ""
        self.retry_after = None if retry_after is None else min(retry_after, MAX_RETRY_AFTER)

    @property
    def did_nothing(self) -> bool:
        """Whether a write that failed so did not happen, unless an earlier try of the same one has: it was refused, or
        has not left."""
        return 0 < self.status < HTTPStatus.INTERNAL_SERVER_ERROR


class Unreachable(ApiError):
    """No answer: connection refused or reset, TLS or DNS failure. A write may or may not have happened."""

    retryable = True
    cause = Cause.OUT_OF_REACH


class NotSent(Unreachable):
    """No connection: the request has not left. A write did not happen."""

    did_nothing = True


class DeadlineExceeded(Unreachable):
    """No answer within the deadline. A write may or may not have happened."""

    cause = Cause.NO_ANSWER


class Unreadable(ApiError):
    """The server answers, but with more than may be read of it, or with an event of a watch that is not JSON.

    It is no loss of the server: what it runs goes on. A write may or may not have happened.
    """

    retryable = True
    cause = Cause.ANSWERS_UNREADABLE


class Unauthorized(ApiError):
    """The credential is refused, a refreshed one too; or there is none to begin with.

    Attributes:
        wrote: the beginning of what a credential plugin that fails wrote to standard error, in one line. It may be a
            secret: it is for a log, or for the terminal of who runs the plugin, and for no object.
    """

    cause = Cause.BAD_TOKEN
    wrote: str = ""


class Forbidden(ApiError):
    """The identity lacks the permission."""


class NotFound(ApiError):
    """No such object, or no such resource.

    Attributes:
        name: the object that is not there; empty: the server does not serve its kind, or names none.
    """

    name = ""


class AlreadyExists(ApiError):
    """An object of that name exists.

    Attributes:
        foreign: whether it was read, and is not ours. Else it may be what an earlier try of the request has made.
    """

    foreign = False
    cause = Cause.NAME_TAKEN


class Conflict(ApiError):
    """A uid or resourceVersion precondition failed: the object is not the one that was read."""

    retryable = True


class Expired(ApiError):
    """The resourceVersion is too old for the server's history."""

    retryable = True


class Invalid(ApiError):
    """The server will never accept this request."""


class DependencyUnavailable(ApiError):
    """What a job needs beside itself is not on a worker, or cannot be made there.

    Attributes:
        cause: why; None: the server's words alone tell.
        about: what it is about, as `kind` and `name`, and the Workload that is in the way as `user`.
        passing: whether that is over soon, as long as something is being removed.
    """

    def __init__(
        self,
        message: str,
        cause: Cause | None,
        about: Mapping[str, str] = MappingProxyType({}),
        *,
        passing: bool = False,
    ) -> None:
        super().__init__(message, reason="Dependency", cause=cause)
        self.about = about
        self.passing = passing


class TooManyRequests(ApiError):
    """The server asks to slow down."""

    retryable = True


class ServerFault(ApiError):
    """The server failed."""

    retryable = True
