"""Reviews answered from the caches of a manager cluster; on the loop's clock."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import attrs
import pytest
import structlog

from multikueue.adapters import AVAILABLE, AdapterRegistry, JobKind
from multikueue.core.model.kinds import ADMISSION_CHECK, CLUSTER_QUEUE, JOB, LOCAL_QUEUE
from multikueue.core.model.labels import (
    ADMISSION_GATE,
    CONTROLLER_NAME,
    HOLDING_GATE,
    ORIGIN_LABEL,
    ORIGIN_NAMESPACE_ANNOTATION,
    QUEUE_LABEL,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.sandbox.apiserver import ApiServer, DirectClient
from multikueue.sandbox.setting_up import (
    CHECK,
    CLUSTER_QUEUE_NAME,
    LOCAL_QUEUE_NAME,
    admission_check,
    cluster_queue,
    local_queue,
)
from multikueue.webhook.reviewer import ReviewAnswer, Reviewer
from tests.runtime.fleet import CRDS, now

pytestmark = pytest.mark.looptime

DELEGATION = [{"op": "add", "path": "/spec/managedBy", "value": CONTROLLER_NAME}]


@attrs.define
class Counts:
    """What was told to the hook."""

    outcomes: list[str] = attrs.field(factory=list)

    def reviewed(self, outcome: str) -> None:
        self.outcomes.append(outcome)


def question(queue: str | None = LOCAL_QUEUE_NAME, *, job: Json | None = None, **request: Any) -> bytes:
    labels = {} if queue is None else {QUEUE_LABEL: queue}
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "batch", "version": "v1", "kind": "Job"},
            "namespace": "default",
            "operation": "CREATE",
            "object": job or {"metadata": {"generateName": "j-", "labels": labels}, "spec": {"suspend": True}},
            **request,
        },
    }
    return json.dumps(review).encode()


def response(answer: ReviewAnswer) -> Json:
    assert answer.status == 200, answer
    answered: Json = json.loads(answer.body)["response"]
    assert (answered["uid"], answered["allowed"]) == ("u-1", True)
    return answered


def patch(answer: ReviewAnswer) -> list[Json] | None:
    answered = response(answer)
    return json.loads(base64.b64decode(answered["patch"])) if "patch" in answered else None


async def manager(*, checks: tuple[str, ...] = (CHECK,)) -> DirectClient:
    """A manager cluster with its queues; the sandbox itself asks no webhooks."""
    server = ApiServer("manager", clock=now)
    for definition in CRDS:
        server.registry.create_object(definition)
    admin = DirectClient(server)
    await admin.create(CLUSTER_QUEUE, cluster_queue({"cpu": "4"}, checks))
    await admin.create(LOCAL_QUEUE, local_queue())
    await admin.create(ADMISSION_CHECK, admission_check())
    return admin


@asynccontextmanager
async def running(admin: DirectClient, hook: Any = None, *, holds: bool = False) -> AsyncIterator[Reviewer]:
    reviewer = Reviewer.build(admin, AdapterRegistry(AVAILABLE), CONTROLLER_NAME, hook=hook, holds=holds)
    async with anyio.create_task_group() as tasks:
        await tasks.start(reviewer.run)
        await anyio.sleep(1)
        yield reviewer
        tasks.cancel_scope.cancel()


async def test_a_new_job_whose_queue_leads_to_workers_is_delegated() -> None:
    async with running(await manager()) as reviewer:
        assert reviewer.ready
        assert patch(reviewer.review(question())) == DELEGATION
        assert patch(reviewer.review(question(dryRun=True))) == DELEGATION  # what would be created is shown


@pytest.mark.parametrize(("origin", "came_from", "left"), [("us", "team-a", True), ("us", "", False), ("", "a", False)])
async def test_our_own_copies_are_left_alone_and_those_of_a_manager_above_are_delegated(
    origin: str, came_from: str, left: bool
) -> None:
    labels = {QUEUE_LABEL: LOCAL_QUEUE_NAME, ORIGIN_LABEL: origin or "a manager above"}
    metadata: Json = {"generateName": "j-", "labels": labels}
    metadata |= {"annotations": {ORIGIN_NAMESPACE_ANNOTATION: came_from}} if came_from else {}
    asked = question(job={"metadata": metadata, "spec": {"suspend": True}})
    async with running(await manager()) as reviewer:
        assert patch(attrs.evolve(reviewer, origin="us").review(asked)) == (None if left else DELEGATION)


@pytest.mark.parametrize("holds", [True, False])
async def test_a_new_pod_gets_our_gate_if_that_is_wanted(holds: bool) -> None:
    metadata = {"generateName": "p-", "labels": {QUEUE_LABEL: LOCAL_QUEUE_NAME}}
    pod = {"metadata": metadata, "spec": {"schedulingGates": [{"name": ADMISSION_GATE}]}}
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    async with running(await manager(), holds=holds) as reviewer:
        operations = patch(reviewer.review(question(job=pod, kind=kind)))
    gate = [{"op": "add", "path": "/spec/schedulingGates/-", "value": {"name": HOLDING_GATE}}]
    assert operations == (gate if holds else None)


@pytest.mark.parametrize(
    "request_",
    [
        {"operation": "UPDATE"},
        {"operation": "DELETE", "object": None},
        {"operation": "CONNECT"},
        {"subResource": "status"},
        {"kind": {"group": "batch", "version": "v1", "kind": "CronJob"}},
        {"kind": {"group": "batch", "version": "v2", "kind": "Job"}},
        {"namespace": "other"},
        {"namespace": None},
        {"object": None},
        {"object": "x"},
        {"object": {}},
    ],
    ids=str,
)
async def test_everything_else_is_let_pass_as_it_is(request_: dict[str, Any]) -> None:
    """A job that exists is never touched: its `managedBy` cannot change any more."""
    async with running(await manager()) as reviewer:
        assert response(reviewer.review(question(**request_))) == {"uid": "u-1", "allowed": True}


async def test_a_job_without_queue_is_not_ours_though_there_is_a_default_queue() -> None:
    """Kueue's own webhook gives a job the queue `default`, if it is to have it, and is asked before us."""
    admin = await manager()
    default = local_queue()
    default["metadata"]["name"] = "default"
    await admin.create(LOCAL_QUEUE, default)
    async with running(admin) as reviewer:
        assert patch(reviewer.review(question(queue=None))) is None
        assert patch(reviewer.review(question(queue="default"))) == DELEGATION


async def test_changes_of_the_queues_count_from_the_next_job_on() -> None:
    admin = await manager(checks=())
    async with running(admin) as reviewer:
        assert patch(reviewer.review(question())) is None

        queue = ObjectKey("", CLUSTER_QUEUE_NAME)
        strategy = {"admissionChecks": [{"name": CHECK}]}
        await admin.merge_patch(CLUSTER_QUEUE, queue, {"spec": {"admissionChecksStrategy": strategy}})
        await anyio.sleep(0.1)
        assert patch(reviewer.review(question())) == DELEGATION

        await admin.delete(LOCAL_QUEUE, ObjectKey("default", LOCAL_QUEUE_NAME))
        await anyio.sleep(0.1)
        assert patch(reviewer.review(question())) is None


async def test_somebody_elses_name_is_left_and_warned_about() -> None:
    job = {"metadata": {"labels": {QUEUE_LABEL: LOCAL_QUEUE_NAME}}, "spec": {"managedBy": "example.com/mine"}}
    async with running(await manager()) as reviewer:
        answered = response(reviewer.review(question(job=job)))
        assert "patch" not in answered
        assert "the job will be rejected" in answered["warnings"][0]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "not an AdmissionReview"),
        (b"\xff\xfe", "not an AdmissionReview"),
        (b"[" * 100_000, "not an AdmissionReview"),
        (b"{}", "expected admission.k8s.io/v1 AdmissionReview"),
        (question().replace(b"k8s.io/v1", b"k8s.io/v1beta1"), "got admission.k8s.io/v1beta1"),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}', "no request with a uid"),
    ],
)
async def test_what_is_no_review_is_refused_with_the_reason(body: bytes, why: str) -> None:
    counts = Counts()
    async with running(await manager(), counts) as reviewer:
        answer = reviewer.review(body)
        assert answer.status == 400
        assert why in answer.body.decode()
        assert counts.outcomes == ["malformed"]


async def test_until_the_queues_are_known_there_is_no_answer() -> None:
    """The API server then does as its `failurePolicy` says: a silent "yes" would undo `Fail`."""
    counts = Counts()
    reviewer = Reviewer.build(await manager(), AdapterRegistry(AVAILABLE), CONTROLLER_NAME, hook=counts)

    assert not reviewer.ready
    assert reviewer.review(question()).status == 503
    assert counts.outcomes == ["unavailable"]


async def test_a_hook_that_fails_holds_up_no_answer() -> None:
    async with running(await manager(), object()) as reviewer:
        assert reviewer.review(question()).status == 200


async def test_every_answer_is_counted_by_what_it_was() -> None:
    counts = Counts()
    job = {"metadata": {"labels": {QUEUE_LABEL: LOCAL_QUEUE_NAME}}, "spec": {"managedBy": "example.com/mine"}}
    async with running(await manager(), counts) as reviewer:
        for body in (question(), question(queue=None), question(job=job)):
            reviewer.review(body)
    assert counts.outcomes == ["delegated", "untouched", "warned"]


@pytest.mark.parametrize("kind", AVAILABLE, ids=lambda kind: kind.resource.gvk.kind)
async def test_every_registered_kind_is_answered(kind: Any) -> None:
    gvk = kind.resource.gvk
    asked = question(kind={"group": gvk.group, "version": gvk.version, "kind": gvk.kind})
    async with running(await manager()) as reviewer:
        operations = patch(reviewer.review(asked))
        assert bool(operations) == (kind.delegation.path is not None)


class Undecided(JobKind):
    """A row that cannot tell who runs a job."""

    def not_delegated(self, job: Json, controller_name: str) -> str | None:
        raise KeyError("s3cret")


async def test_a_job_of_which_nobody_can_tell_who_runs_it_is_created_as_it_is() -> None:
    """An error would forbid it, and the controller waits with it anyhow."""
    row = next(kind for kind in AVAILABLE if kind.resource == JOB)
    broken = Undecided(**{field.name: getattr(row, field.name) for field in attrs.fields(JobKind)})
    async with running(await manager()) as reviewer:
        odd = attrs.evolve(reviewer, adapters=AdapterRegistry([broken]))
        with structlog.testing.capture_logs() as lines:
            assert patch(odd.review(question())) is None
    assert [line["error"] for line in lines] == ['the row for jobs.batch: delegation raises KeyError for ""']
