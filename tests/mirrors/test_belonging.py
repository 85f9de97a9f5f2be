"""Whose a pod is: by what controls it, also where something is in between, and where namespaces have other names."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from multikueue.adapters import AVAILABLE, JobKind
from multikueue.adapters.declaration import Declaration
from multikueue.adapters.declared import declared_kind
from multikueue.core.model.kinds import JOB, LOCAL_QUEUE, MULTIKUEUE_CLUSTER, NAMESPACE, POD
from multikueue.core.model.labels import NAMESPACES_ANNOTATION, ORIGIN_NAMESPACE_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of, dig, labels_of, name_of, uid, with_value
from multikueue.sandbox.apiserver import DirectClient
from multikueue.sandbox.kinds import AVAILABLE as SANDBOX_KINDS
from multikueue.sandbox.kinds import BATCH_JOB, definition
from multikueue.sandbox.kinds.declared import kind_of_row
from multikueue.sandbox.objects import built, owned_by
from multikueue.sandbox.setting_up import local_queue, namespace
from multikueue.testing import until
from multikueued.mirror_names import MIRROR, WORKER, WORKER_POD
from multikueued.mirrors.mirror import NOT_KUEUES, RUNS_POD
from tests.adapters.kinds import TEMPLATE, row
from tests.examples import shared
from tests.mirrors.objects import a_pod
from tests.mirrors.showing import LONG, Shown, prepared, showing
from tests.runtime.fleet import Fleet

pytestmark = pytest.mark.looptime


OWN_PODS = ("Pod", "StatefulSet", "LeaderWorkerSet")
"""Kinds whose pods the manager has already."""
DECLARED = [
    declared_kind(Declaration(**said), "externalFrameworks[0]")
    for said in (
        {"name": "Render.v1.studio.example.com"},
        {"name": "Batch.v1.studio.example.com", "template_paths": (".spec.groups[*].template",)},
        {"name": "PipelineRun.v1.tekton.dev"},
        {"name": "TaskRun.v1.tekton.dev"},
        {"name": "Workflow.v1alpha1.argoproj.io"},
    )
]
"""By their names alone, with templates, and by a profile."""
SHOWN = [*DECLARED, *(kind for kind in AVAILABLE if kind.resource.gvk.kind not in OWN_PODS)]
SORTS = ("Job", "JobSet", "RayJob")
"""Pods below the job itself, below Jobs of it, and below another kind of copy."""


@pytest.mark.parametrize(
    "kind",
    shared(
        sorted(SHOWN, key=lambda kind: kind.resource.gvk.kind not in SORTS),
        lambda kind: kind.resource.gvk.kind,
        first=len(SORTS) + len(DECLARED),
    ),
)
async def test_the_pods_of_a_kind_are_owned_by_the_managers_job(kind: JobKind) -> None:
    """What stands in between on the worker, as a JobSet's Jobs, is not on the manager."""
    shown = await prepared(await Fleet.connected("worker1", cpu=50))
    rows = [row for row in SANDBOX_KINDS if row.resource in (JOB, kind.resource)]
    rows += [kind_of_row(kind)] if kind.resource not in {row.resource for row in rows} else []
    for server in (shown.fleet.manager, *shown.fleet.workers.values()):
        for row_of in rows:
            if row_of.resource != JOB:
                server.registry.create_object(definition(row_of))
    row_of_kind = next(row for row in rows if row.resource == kind.resource)
    (made,) = row_of_kind.examples("mine", TEMPLATE, queue="user-queue")
    async with (
        shown.fleet.kueues(LONG, rows),
        shown.fleet.dispatching(
            shown.manager(kinds=list({row("Job").resource: row("Job"), kind.resource: kind}.values()))
        ),
    ):
        stored = await shown.fleet.admin.create(kind.resource, made)
        await until(shown.pods)
        await anyio.sleep(10)  # the others of the same job
        there = DirectClient(shown.fleet.workers["worker1"])
        for pod in await shown.pods():  # the sandbox does not put what Kueue says there of pods of one kind into these
            labelled = {"metadata": {"labels": {RUNS_POD: "true"}}}
            await there.merge_patch(POD, ObjectKey.of(pod), labelled)
        pods = {name_of(pod): pod for pod in await shown.pods()}
        mirrors = await shown.count(len(pods))
        copy = await there.get(kind.resource, ObjectKey("default", "mine"))
    for mirror in mirrors:
        (owner,) = mirror["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == (kind.resource.gvk.kind, uid(stored), True)
        shown_labels = {name: value for name, value in labels_of(mirror).items() if name != MIRROR}
        theirs = {name: value for name, value in labels_of(pods[name_of(mirror)]).items() if "kueue" not in name}
        assert {name: value for name, value in shown_labels.items() if "kueue" not in name} == {
            name: uid(stored) if value == uid(copy) else value for name, value in theirs.items()
        }
        assert not shown_labels.keys() & {*NOT_KUEUES}
        assert dig(mirror, "spec", "nodeName") == "multikueue-worker1"


@pytest.mark.parametrize("name", [name for name in OWN_PODS if name != "Pod"])
async def test_kinds_whose_pods_the_manager_has_already_have_no_mirrors(name: str) -> None:
    """Theirs have the names that mirrors would have: each was refused, and the job was told so."""
    kind, shown = row(name), await prepared(await Fleet.connected("worker1", cpu=50))
    row_of_kind = next(known for known in SANDBOX_KINDS if known.resource == kind.resource)
    for server in (shown.fleet.manager, *shown.fleet.workers.values()):
        server.registry.create_object(definition(row_of_kind))
    async with (
        shown.fleet.kueues(LONG, [BATCH_JOB, row_of_kind]),
        shown.fleet.dispatching(shown.manager(kinds=[row("Job"), kind])),
    ):
        (made,) = row_of_kind.examples("mine", TEMPLATE, queue="user-queue")
        await shown.fleet.admin.create(kind.resource, made)
        await until(shown.pods)
        await anyio.sleep(10)
    assert shown.writes("create") == 0
    assert await shown.mirrors() == []


@pytest.mark.parametrize("names", [("PipelineRun",), ("PipelineRun", "TaskRun")], ids="+".join)
async def test_what_stands_between_a_declared_job_and_its_pods_is_read(names: tuple[str, ...]) -> None:
    """Tekton gives a TaskRun the labels of its PipelineRun, ours as well; settings may declare both, or one."""
    kinds = [kind for kind in DECLARED if kind.resource.gvk.kind in names]
    rows = [row for row in SANDBOX_KINDS if row.resource.gvk.group == "tekton.dev"]
    run, task = rows
    shown = await prepared(await Fleet.connected("worker1", cpu=50))
    for server in (shown.fleet.manager, *shown.fleet.workers.values()):
        for row_of in rows:
            server.registry.create_object(definition(row_of))
    there = DirectClient(shown.fleet.workers["worker1"])
    async with (
        shown.fleet.kueues(LONG, [BATCH_JOB, run]),
        shown.fleet.dispatching(shown.manager(kinds=[row("Job"), *kinds])),
    ):
        stored = await shown.fleet.admin.create(
            run.resource, run.example("mine", with_value(TEMPLATE, ("metadata",), {}), queue="user-queue")
        )
        await until(shown.pods)
        copy = await there.get(run.resource, ObjectKey("default", "mine"))
        made = built(task.resource, "mine-build", "default", labels=dict(labels_of(copy)), spec={})
        made["metadata"]["ownerReferences"] = [owned_by(run.resource, copy)]
        between = await there.create(task.resource, made)
        pod = a_pod("mine-build-pod", None)
        pod["metadata"]["ownerReferences"] = [owned_by(task.resource, between)]
        await there.create(POD, pod)
        await until(lambda: _shows(shown, "mine-build-pod", "worker1"))
    (mirror,) = [mirror for mirror in await shown.mirrors() if name_of(mirror) == "mine-build-pod"]
    assert [owner["uid"] for owner in mirror["metadata"]["ownerReferences"]] == [uid(stored)]


async def test_a_mirror_is_in_the_managers_namespace() -> None:
    shown = await prepared(await Fleet.connected("worker1"))
    worker = DirectClient(shown.fleet.workers["worker1"])
    await worker.create(NAMESPACE, namespace("mk-default"))
    await worker.create(LOCAL_QUEUE, local_queue("mk-default"))
    said = {"metadata": {"annotations": {NAMESPACES_ANNOTATION: json.dumps({"default": "mk-default"})}}}
    await shown.fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"), said)
    async with shown.fleet.kueues(LONG), shown.fleet.dispatching(shown.manager()):
        await shown.fleet.submit()
        (mirror,) = await shown.count(1)
    assert mirror["metadata"]["namespace"] == "default"
    assert annotations_of(mirror)[WORKER_POD] == f"mk-default/{name_of(mirror)}"


@pytest.mark.parametrize("said", ["nothing", "another's UID", "a job of the worker's own"])
async def test_pods_that_others_make_on_a_worker_are_not_shown(said: str) -> None:
    async with showing() as shown:
        await shown.fleet.submit()
        await shown.count(1)
        worker = DirectClient(shown.fleet.workers["worker1"])
        copy = await worker.get(JOB, ObjectKey("default", "job"))
        owner: Json | None = None
        if said == "another's UID":
            owner = {"metadata": {**copy["metadata"], "uid": "11111111-1111-4111-8111-111111111111"}}
        elif said == "a job of the worker's own":
            await shown.fleet.submit("own", worker="worker1")
            owner = await worker.get(JOB, ObjectKey("default", "own"))
        await worker.create(POD, a_pod("theirs", owner, **{"batch.kubernetes.io/job-name": "job"}))
        await anyio.sleep(90)
        assert "theirs" not in {name_of(mirror) for mirror in await shown.mirrors()}


async def test_a_copy_that_somebody_else_makes_elsewhere_of_ours_has_no_pods_among_ours() -> None:
    """Who may read our copy on a worker can write all that it says on a job in a namespace of theirs."""
    async with showing() as shown:
        await shown.fleet.submit()
        await shown.count(1)
        worker = DirectClient(shown.fleet.workers["worker1"])
        await worker.create(NAMESPACE, namespace("theirs"))
        copy = await worker.get(JOB, ObjectKey("default", "job"))
        noted = {**annotations_of(copy), ORIGIN_NAMESPACE_ANNOTATION: "default"}
        template = {"spec": dig(copy, "spec", "template", "spec")}
        spec = {"suspend": True, "template": template}
        job = built(JOB, "job", "theirs", labels=dict(labels_of(copy)), spec=spec)
        job["metadata"]["annotations"] = noted
        pod = a_pod("theirs", await worker.create(JOB, job))
        pod["metadata"]["namespace"] = "theirs"
        await worker.create(POD, pod)
        await anyio.sleep(90)
        assert len(await shown.mirrors()) == 1


async def test_an_attempt_that_counts_takes_the_name_of_one_that_is_over() -> None:
    """As the pods of Kubeflow's jobs, whose names are the same on each worker."""
    async with showing("worker1", "worker2") as shown:
        await shown.fleet.submit()
        (mirror,) = await shown.count(1)
        first = annotations_of(mirror)[WORKER]
        await _fixed(shown, first)
        await until(lambda: _shows(shown, "fixed", first))
        shown.fleet.workers[first].faults.partition("reset")
        await until(lambda: _moved(shown, first), 2_000)
        second = ({"worker1", "worker2"} - {first}).pop()
        await _fixed(shown, second)
        await until(lambda: _shows(shown, "fixed", second))
        names = [name_of(mirror) for mirror in await shown.mirrors()]
        assert len(set(names)) == len(names)


async def _fixed(shown: Shown, worker: str) -> None:
    """A pod of the run on a worker whose name is always the same."""
    there = DirectClient(shown.fleet.workers[worker])
    await there.create(POD, a_pod("fixed", await there.get(JOB, ObjectKey("default", "job"))))


async def _shows(shown: Shown, name: str, worker: str) -> bool:
    mirrors = [mirror for mirror in await shown.mirrors() if name_of(mirror) == name]
    return [annotations_of(mirror)[WORKER] for mirror in mirrors] == [worker]


async def _moved(shown: Shown, first: str) -> bool:
    on: Any = dig(await shown.fleet.workload(), "status", "clusterName")
    return bool(on) and on != first and bool((await DirectClient(shown.fleet.workers[on]).list(JOB)).items)
