"""Marks: by them a copy of ours is told from what somebody else has put under its name on a worker.

Whoever may create objects on a worker can write our origin label. A mark they cannot write: it is a keyed digest of the
Workload's UID, the attempt and the worker's name. So one worker's mark is worth nothing on another, nor in another
attempt. It begins with a fingerprint of the key: a mark of a key that is lost is told from one that is wrong. A job has
two more. One is without the attempt: it was ours, whenever that was. The other is of the job's UID: Kueue makes a
Workload again under the same name, and then that one's UID proves nothing of what was made before. So a Workload's copy
has one of its name where it is in a namespace of another name: nothing else may lead there.
"""

from __future__ import annotations

import functools
import hmac
import re
from enum import Enum
from typing import Final

import attrs

from multikueue.core.model.labels import ATTEMPT_ANNOTATION, COPY_OF_ANNOTATION, JOB_MARK_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, uid
from multikueue.core.model.workload_facts import WORKLOADS

_PLAIN: Final = re.compile("[0-9a-f]{16}")
"""What former versions have written: the attempt itself."""
_KEYED: Final = re.compile(r"[0-9a-f]{8}\.[0-9a-f]{32}")
"""What `Marks.of` makes."""


class Proof(Enum):
    """What a copy's mark says of the attempt that goes on, or is being evicted, and of one worker."""

    EXACT = "exact"
    """We have made it for this attempt, on this worker."""
    NONE = "none"
    """It may be of this attempt: unmarked, as copies of Kueue's own controller are; of a former version; or the key of
    its mark is lost. Anybody on the worker could have made it."""
    OTHER = "other"
    """It is of an earlier attempt, or its mark was made for another worker."""


class Whose(Enum):
    """Whose a copy on a worker is, as its mark tells: nobody else can make one."""

    THIS = "this attempt's"
    """We have made it there for the attempt that goes on, or is being evicted. What has no proof counts as that, too,
    on the recorded worker; while it is evicted, which erases the record, on the one that was recorded last."""
    SIBLINGS = "a sibling's"
    """A job that another slice of it, or another part of its group, has there: it runs for this Workload as well."""
    EARLIER = "an earlier attempt's"
    """We have made it, and for no worker in this attempt."""
    ELSEWHERE = "another worker's"
    """It bears this attempt's mark, for another worker: somebody has carried it here. Or this attempt ran on another
    worker than this one, where it was offered: users there can read the mark of the offer."""
    UNPROVEN = "unproven"
    """Anybody may have made it; see `Proof.NONE`."""

    @property
    def runs_for_it(self) -> bool:
        """Whether such a job is this Workload's, as it is now."""
        return self in (Whose.THIS, Whose.SIBLINGS)


@attrs.frozen
class Marks:
    """Makes marks, and reads them."""

    key: bytes = attrs.field(repr=False)
    """A secret; an empty one for tests, where nobody guesses."""

    def of(self, workload: Json, of_attempt: str, cluster: str) -> str:
        """The mark of a Workload's copies on a worker.

        Args:
            workload: the manager's.
            of_attempt: one of its attempts, see `workloads.attempt`.
            cluster: the worker.
        """
        return _mark(self.key, uid(workload), of_attempt, cluster)

    def proof(self, copy: Json, workload: Json, cluster: str) -> Proof:
        """Whether the mark of a copy is of a Workload's attempt that goes on or is being evicted, and of this worker.

        The one place that says of which attempt a copy is.
        """
        mark, attempts = mark_of(copy), WORKLOADS.of(workload).attempts
        if mark in ("", *attempts):
            return Proof.NONE
        if any(mark == self.of(workload, attempt, cluster) for attempt in attempts):
            return Proof.EXACT
        ours = mark.startswith(_fingerprint(self.key)) or _PLAIN.fullmatch(mark)
        return Proof.OTHER if ours else Proof.NONE

    def of_job(self, workload: Json, cluster: str) -> str:
        """The other mark of a Workload's jobs on a worker: the same in each attempt.

        Only the recorded worker gets it, so whoever was just offered the Workload cannot read it.
        """
        return _mark(self.key, uid(workload), "job", cluster)

    def made_job(self, job: Json, workload: Json, cluster: str) -> bool:
        """Whether we have made a job for this Workload on this worker, in any attempt. Former versions marked none so.

        The manager forgets when an earlier attempt got its quota, and with that its mark.
        """
        return annotations_of(job).get(JOB_MARK_ANNOTATION) == self.of_job(workload, cluster)

    def of_copy(self, job: Json, cluster: str) -> str:
        """The third mark of a job's copies on a worker: the same whichever Workload the manager's job has."""
        return _mark(self.key, uid(job), "copy", cluster)

    def made_copy(self, copied: Json, job: Json | None, cluster: str) -> bool:
        """Whether we have made a copy of this very job on this worker. Versions up to 267d433b marked none so."""
        noted = annotations_of(copied).get(COPY_OF_ANNOTATION)
        return job is not None and noted == self.of_copy(job, cluster)

    def of_name(self, name: ObjectKey, cluster: str) -> str:
        """The other mark of a Workload's copies in a namespace of another name: the same for whichever Workload has it.

        Args:
            name: the manager's.
            cluster: the worker.
        """
        return _mark(self.key, str(name), "name", cluster)

    def made_under(self, copied: Json, name: ObjectKey, cluster: str) -> bool:
        """Whether we have made a Workload copy for whichever has that name. Versions up to 8a40b177 marked none so."""
        return annotations_of(copied).get(COPY_OF_ANNOTATION) == self.of_name(name, cluster)

    def are_on(self, obj: Json) -> bool:
        """Whether an object carries a mark of this key, of any attempt at any Workload."""
        return mark_of(obj).startswith(_fingerprint(self.key))

    def are_anothers(self, obj: Json) -> bool:
        """Whether an object carries a mark of another key: another manager's, or one that is lost."""
        return _KEYED.fullmatch(mark_of(obj)) is not None and not self.are_on(obj)


def mark_of(copy: Json) -> str:
    """The mark of a copy; empty if it has none."""
    return str(annotations_of(copy).get(ATTEMPT_ANNOTATION) or "")


@functools.lru_cache(maxsize=2_048)  # plans of one Workload ask for the same few marks again and again
def _mark(key: bytes, of: str, of_attempt: str, cluster: str) -> str:
    signed = "\0".join(("mark", of, of_attempt, cluster)).encode()
    return _fingerprint(key) + hmac.digest(key, signed, "sha256").hex()[:32]


@functools.lru_cache(maxsize=64)
def _fingerprint(key: bytes) -> str:
    return hmac.digest(key, b"fingerprint", "sha256").hex()[:8] + "."
