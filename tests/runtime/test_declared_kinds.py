"""Declared kinds between clusters: what follows a running job, what comes home, and one whose rules fail."""

from __future__ import annotations

from typing import Any

import pytest

from multikueue.adapters.declaration import Declaration
from multikueue.adapters.declared import declared_kind
from multikueue.adapters.profiles import PROFILES
from multikueue.core.model.kinds import EVENT, WORKLOAD
from multikueue.core.model.labels import PREBUILT_WORKLOAD
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, dig, labels_of
from multikueue.core.model.workloads import cluster_name
from multikueue.sandbox.kinds import SandboxKind
from tests.kinds.cases import Case, cases
from tests.kinds.ground import Ground
from tests.kinds.sandbox_ground import sandbox_ground

pytestmark = pytest.mark.looptime

WIDGET = SandboxKind(resource=Resource(GVK("example.com", "v1", "Widget"), "widgets"))


def case(**said: Any) -> Case:
    return Case(
        declared_kind(Declaration(**{"name": "Widget.v1.example.com", **said}), "externalFrameworks[0]"), WIDGET
    )


def workload_of(ground: Ground, name: str) -> Json:
    """The manager's Workload of a job; empty while there is none."""
    return next(iter(ground.workloads_of(WIDGET, name)), {})


def on(ground: Ground, worker: str, name: str) -> Json:
    """The copy on a worker."""
    return ground.workers[worker].get(WIDGET.resource, name) or {}


async def change(ground: Ground, name: str, patch: Json) -> None:
    await ground.manager.client.merge_patch(WIDGET.resource, ObjectKey("default", name), patch)


async def test_labels_and_a_patch_reach_a_running_copy() -> None:
    """Somebody raises a priority while the job runs; what the worker noted on it stays."""
    followed = case(
        forwarded_paths=(".metadata.labels", ".spec.priority"),
        sync_patches=({"op": "add", "path": "/spec/size", "valueExpression": "object.spec.size * 2"},),
    )
    async with sandbox_ground(followed) as ground:
        await ground.submit(WIDGET, "big", duration="1h")
        await change(ground, "big", {"spec": {"size": 1}})
        worker = await ground.running(WIDGET, "big")
        key = ObjectKey("default", "big")
        await ground.workers[worker].client.merge_patch(WIDGET.resource, key, {"metadata": {"labels": {"there": "x"}}})
        await change(ground, "big", {"metadata": {"labels": {"team": "red"}}, "spec": {"priority": 9, "size": 4}})

        def followed_there() -> bool:
            copy = on(ground, worker, "big")
            wanted = {"team": "red", "there": "x"}
            return wanted.items() <= labels_of(copy).items() and dig(copy, "spec", "size") == 8

        await ground.until(followed_there, lambda: on(ground, worker, "big"))
        assert on(ground, worker, "big")["spec"]["priority"] == 9
        assert labels_of(on(ground, worker, "big"))[PREBUILT_WORKLOAD]


async def test_a_rule_that_fails_for_one_job_is_told_on_it_and_the_others_go_on() -> None:
    """The worker's Kueue knows the end all the same, so even this one ends."""
    async with sandbox_ground(case(finished="object.spec.size + 1 > 1")) as ground:
        job = WIDGET.example("odd", {"spec": {"containers": []}}, queue="user-queue")
        job["spec"]["size"] = "many"
        await ground.manager.client.create(WIDGET.resource, job)
        await ground.submit(WIDGET, "even")
        await ground.ended(WIDGET, "even", "Succeeded")
        await ground.ended(WIDGET, "odd", "Succeeded")

        events = (await ground.manager.client.list(EVENT)).items
        warnings = {(event["type"], "odd" in event["regarding"]["name"], event["note"]) for event in events}
        assert (
            "Warning",
            True,
            "externalFrameworks[0].finished: object.spec.size + 1 > 1: Unsupported operation: string + int",
        ) in warnings
        assert not any(kind == "Warning" and not odd for kind, odd, _ in warnings)


async def test_a_job_that_cannot_be_copied_is_rejected_with_the_setting() -> None:
    """It holds no quota for something that cannot be."""
    patched = case(creation_patches=({"op": "replace", "path": "/spec/image", "value": "cache"},))
    async with sandbox_ground(patched) as ground:
        await ground.submit(WIDGET, "plain")

        def said() -> str | None:
            workload = workload_of(ground, "plain")
            message = next(iter(dig(workload, "status", "admissionChecks") or [{}])).get("message", "")
            return message if dig(workload, "spec", "active") is False else None

        seen = [str(await ground.until(said, lambda: ground.story(WIDGET, "plain")))]
        notes = [event["note"] for event in (await ground.manager.client.list(EVENT)).items]
        why = "externalFrameworks[0].creationPatches[0]: replace /spec/image does not apply"
        assert any(why in text for text in (*seen, *notes)), (seen, notes)
        await ground.cleaned(WIDGET, "plain")


async def test_somebody_elses_controller_may_move_the_jobs() -> None:
    """We choose the worker and bring the end home; the job there is theirs."""
    async with sandbox_ground(case(workload_only=True)) as ground:
        (job,) = await ground.submit(WIDGET, "theirs")
        name = await ground.until(
            lambda: cluster_name(workload_of(ground, "theirs")), lambda: ground.story(WIDGET, "theirs")
        )
        workload = workload_of(ground, "theirs")["metadata"]["name"]
        assert not on(ground, name, "theirs")

        marks = {**annotations_of(job), PREBUILT_WORKLOAD: workload}
        labels = {**labels_of(job), PREBUILT_WORKLOAD: workload}
        metadata = {"name": "theirs", "namespace": "default", "labels": labels, "annotations": marks}
        spec = {field: value for field, value in job["spec"].items() if field != "managedBy"}
        theirs = {**{field: job[field] for field in ("apiVersion", "kind")}, "metadata": metadata, "spec": spec}
        await ground.workers[name].client.create(WIDGET.resource, theirs)

        def finished() -> bool:
            conditions = dig(workload_of(ground, "theirs"), "status", "conditions") or []
            return any(entry["type"] == "Finished" and entry["status"] == "True" for entry in conditions)

        await ground.until(finished, lambda: ground.story(WIDGET, "theirs"))
        await ground.until(
            lambda: not ground.workers[name].get(WORKLOAD, workload), lambda: ground.story(WIDGET, "theirs")
        )
        assert on(ground, name, "theirs"), "the job on the worker is not ours to delete"


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
async def test_a_job_whose_copy_is_lost_runs_again(profile: Declaration) -> None:
    """Its status says that it runs, and the manager's Kueue keeps its quota for that, until it is taken back."""
    case = next(known for known in cases() if known.adapter.resource.gvk.dotted == profile.name)
    async with sandbox_ground(case) as ground:
        await ground.submit(case.kind, "lost", duration="1h")
        worker = await ground.running(case.kind, "lost")
        client, key = ground.workers[worker].client, ObjectKey("default", "lost")
        before = (ground.workers[worker].get(case.kind.resource, "lost") or {})["metadata"]["uid"]
        await client.delete(case.kind.resource, key, propagation="Background")  # with it goes its Workload

        def runs_again() -> bool:
            shown = ground.manager.get(case.kind.resource, "lost") or {}
            copies = [there.get(case.kind.resource, "lost") for there in ground.workers.values()]
            fresh = [copy for copy in copies if copy is not None and copy["metadata"]["uid"] != before]
            return bool(fresh) and case.kind.course.pods_ready(shown)

        await ground.until(runs_again, lambda: ground.story(case.kind, "lost"))
