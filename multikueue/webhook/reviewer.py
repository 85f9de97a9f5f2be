"""Answering API servers about jobs that are being created: `managedBy` is filled in where it leads to workers.

Nothing is asked while answering: three caches know the queues. Until they are complete the answer is that there is
none yet, and the API server does what the webhook's `failurePolicy` says. With `Ignore` a job is then created as it
is, and its check Rejected: it runs nowhere, and never twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import anyio
import anyio.abc
import attrs
import orjson

from multikueue.adapters import AdapterRegistry
from multikueue.adapters.admission import NOTHING, Admission, admit
from multikueue.core.admission.reviews import BadReviewError, Review, allowed, parse_review
from multikueue.core.model.kinds import ADMISSION_CHECK, CLUSTER_QUEUE, LOCAL_QUEUE
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import dig
from multikueue.kube.informer import Informer
from multikueue.protocols import ApiClient
from multikueue.runtime.copy_handlers import log_problems


class ReviewHook(Protocol):
    """Told of every review, for metrics."""

    def reviewed(self, outcome: str) -> None:
        """A review was answered: `delegated`, `warned`, `untouched`, `malformed` or `unavailable`."""
        ...


@attrs.frozen
class Answer:
    """What to say to the API server."""

    status: int
    """Of HTTP. The review's own answer is in the body of a 200."""
    body: bytes


@attrs.define(eq=False)
class Reviewer:
    """Answers reviews of the job kinds that are registered. Implements `core.admission.delegation.QueueView`."""

    adapters: AdapterRegistry
    controller_name: str
    """Which AdmissionChecks are ours."""
    local_queues: Informer
    cluster_queues: Informer
    checks: Informer
    hook: ReviewHook | None = None

    @classmethod
    def build(
        cls,
        client: ApiClient,
        adapters: AdapterRegistry,
        controller_name: str,
        *,
        hook: ReviewHook | None = None,
        fraction: Callable[[], float] = lambda: 0.0,
    ) -> Reviewer:
        """Build the caches; `run` fills them.

        Args:
            client: the manager's API server.
            adapters: the job kinds.
            controller_name: which AdmissionChecks are ours.
            hook: told of every review.
            fraction: where jitter comes from.
        """

        def cache(resource: Resource, *kept: str) -> Informer:
            return Informer(client, resource, transform=_only(*kept), fraction=fraction)

        return cls(
            adapters,
            controller_name,
            cache(LOCAL_QUEUE, "clusterQueue"),
            cache(CLUSTER_QUEUE, "admissionChecksStrategy"),
            cache(ADMISSION_CHECK, "controllerName"),
            hook,
        )

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep the caches until cancelled."""
        task_status.started()
        async with anyio.create_task_group() as watches:
            for cache in (self.local_queues, self.cluster_queues, self.checks):
                watches.start_soon(cache.run)

    @property
    def ready(self) -> bool:
        """Whether the queues are known."""
        return all(cache.status.synced for cache in (self.local_queues, self.cluster_queues, self.checks))

    def review(self, body: bytes) -> Answer:
        """Answer one request. Whatever the body is, nothing is raised."""
        try:
            review = parse_review(orjson.loads(body))
        except (orjson.JSONDecodeError, BadReviewError) as error:
            return self._answer("malformed", 400, f"not an AdmissionReview: {error}\n".encode())
        if not self.ready:
            return self._answer("unavailable", 503, b"the queues of the manager cluster are not all read yet\n")
        admission = self._admission(review)
        outcome = "delegated" if admission.patch else "warned" if admission.warning else "untouched"
        return self._answer(outcome, 200, orjson.dumps(allowed(review, admission.patch, admission.warning)))

    def local_queue(self, key: ObjectKey) -> Json | None:
        """See `QueueView`."""
        return self.local_queues.get(key)

    def cluster_queue(self, name: str) -> Json | None:
        """See `QueueView`."""
        return self.cluster_queues.get(ObjectKey("", name))

    def admission_check(self, name: str) -> Json | None:
        """See `QueueView`."""
        return self.checks.get(ObjectKey("", name))

    def _admission(self, review: Review) -> Admission:
        kind = self.adapters.get(review.gvk)
        if kind is None or review.operation != "CREATE" or review.subresource or review.object is None:
            return NOTHING
        found = admit(kind, review.object, review.namespace, self, self.controller_name)
        log_problems(self.adapters.problems)
        return found

    def _answer(self, outcome: str, status: int, body: bytes) -> Answer:
        if self.hook is not None:
            self.hook.reviewed(outcome)
        return Answer(status, body)


def _only(*fields: str) -> Callable[[Json], Json]:
    """Keep only these fields of the spec: a queue's status changes with every job."""

    def transform(obj: Json) -> Json:
        metadata = {field: obj["metadata"].get(field) for field in ("name", "namespace", "resourceVersion")}
        return {"metadata": metadata, "spec": {field: dig(obj, "spec", field) for field in fields}}

    return transform
