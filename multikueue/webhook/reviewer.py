"""Answering API servers about jobs that are being created: `managedBy` is filled in where it leads to workers.

Where that is wanted, pods whose queue leads there get our scheduling gate.

An answer needs no request: three informers know the queues. Until they have synced the answer is 503, and the API
server follows the webhook's `failurePolicy`. With `Ignore` a job is then created unchanged, and its check Rejected: it
does not run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import anyio
import anyio.abc
import attrs
import orjson

from multikueue.adapters import AdapterRegistry
from multikueue.adapters.admission import NOTHING, Admission, admit
from multikueue.core.admission.reviews import BadReviewError, Review, allowed, parse_review
from multikueue.core.model.kinds import ADMISSION_CHECK, CLUSTER_QUEUE, LOCAL_QUEUE
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.hooks import unfailing
from multikueue.kube.informers.informer import Informer
from multikueue.protocols import ApiClient, ReviewHook
from multikueue.runtime.caches.queue_informers import only_spec
from multikueue.runtime.job_event_handlers import log_problems


@attrs.frozen
class ReviewAnswer:
    """What to say to the API server."""

    status: int
    """Of HTTP. The review's own answer is in the body of a 200."""
    body: bytes


_FIELDS: Final = {
    LOCAL_QUEUE: "clusterQueue",
    CLUSTER_QUEUE: "admissionChecksStrategy",
    ADMISSION_CHECK: "controllerName",
}
"""What leads from a queue to its checks: the kinds, and the only field of the spec that is kept of each."""


@attrs.define(eq=False)
class Reviewer:
    """Answers reviews of the job kinds that are registered."""

    adapters: AdapterRegistry
    controller_name: str
    """Which AdmissionChecks are ours."""
    informers: Mapping[Resource, Informer]
    """Of the manager's queues and checks; `run` fills them."""
    hook: ReviewHook | None = None
    holds: bool = False
    """Whether pods get our scheduling gate."""
    origin: str = ""
    """Of our own copies, which are left alone."""

    @classmethod
    def build(
        cls,
        client: ApiClient,
        adapters: AdapterRegistry,
        controller_name: str,
        *,
        hook: ReviewHook | None = None,
        holds: bool = False,
        origin: str = "",
        fraction: Callable[[], float] = lambda: 0.0,
    ) -> Reviewer:
        """With informers of its own.

        Args:
            client: the manager's API server.
            adapters: the job kinds.
            controller_name: which AdmissionChecks are ours.
            hook: told of every review.
            holds: whether pods get our scheduling gate.
            origin: of our own copies.
            fraction: the source of jitter.
        """
        informers = {
            resource: Informer(client, resource, transform=only_spec(field), fraction=fraction)
            for resource, field in _FIELDS.items()
        }
        return cls(adapters, controller_name, informers, unfailing(hook), holds, origin)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follow the queues until cancelled."""
        task_status.started()
        async with anyio.create_task_group() as tasks:
            for informer in self.informers.values():
                tasks.start_soon(informer.run)

    @property
    def ready(self) -> bool:
        """Whether the queues are known."""
        return all(informer.status.synced for informer in self.informers.values())

    def review(self, body: bytes) -> ReviewAnswer:
        """Answer one request. No body makes it raise."""
        try:
            review = parse_review(orjson.loads(body))
        except (orjson.JSONDecodeError, BadReviewError) as error:
            return self._answer("malformed", 400, f"not an AdmissionReview: {error}\n".encode())
        if not self.ready:
            return self._answer("unavailable", 503, b"the queues of the manager cluster are not all read yet\n")
        admission = self._admission(review)
        outcome = "delegated" if admission.patch else "warned" if admission.warning else "untouched"
        return self._answer(outcome, 200, orjson.dumps(allowed(review, admission.patch, admission.warning)))

    def _lookup(self, resource: Resource, key: ObjectKey) -> Json | None:
        return self.informers[resource].get(key)

    def _admission(self, review: Review) -> Admission:
        kind = self.adapters.get(review.gvk)
        if kind is None or review.operation != "CREATE" or review.subresource or review.object is None:
            return NOTHING
        admission = admit(
            kind,
            review.object,
            review.namespace,
            self._lookup,
            self.controller_name,
            origin=self.origin,
            holds=self.holds,
        )
        log_problems(self.adapters.problems)
        return admission

    def _answer(self, outcome: str, status: int, body: bytes) -> ReviewAnswer:
        if self.hook is not None:
            self.hook.reviewed(outcome)
        return ReviewAnswer(status, body)
