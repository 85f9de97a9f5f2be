"""The migration page, walked on real servers: to us from the built-in controller, and back."""

from __future__ import annotations

import pytest

from multikueue.core.model.kinds import JOB, WORKLOAD
from multikueue.core.model.labels import ATTEMPT_ANNOTATION, ORIGIN_LABEL, PREBUILT_WORKLOAD, SPEC_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import uid
from multikueue.core.model.workloads import cluster_name
from tests.integration.fleet import Fleet, fleet
from tests.integration.planes import Planes
from tests.integration.view import NAMESPACE

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]


async def unmark(real: Fleet, worker: str, name: str, *, form: str) -> None:
    """Leave the copies as the built-in controller makes them: no attempt, no digest, one form of the link."""
    client, workload = real.workers[worker].client, real.manager.workload_of(name)
    assert workload is not None
    bare: Json = {"metadata": {"annotations": {ATTEMPT_ANNOTATION: None, SPEC_ANNOTATION: None}}}
    await client.merge_patch(WORKLOAD, ObjectKey.of(workload), bare)
    other = "annotations" if form == "labels" else "labels"
    bare["metadata"].setdefault(other, {})[PREBUILT_WORKLOAD] = None
    await client.merge_patch(JOB, ObjectKey(NAMESPACE, name), bare)


async def end(real: Fleet, *names: str) -> None:
    """Let the jobs end, and see that each ran once."""
    for name in names:
        await real.finish(name)
    await real.cleaned()
    assert [len(real.ran_on(name)) for name in names] == [1] * len(names)


@pytest.mark.parametrize("form", ["labels", "annotations"])
async def test_a_job_of_the_built_in_controller_is_taken_over_without_a_restart(planes: Planes, form: str) -> None:
    name = f"taken-over-{form}"
    async with fleet(planes) as real:
        await real.submit(name)
        worker = await real.running(name)
        await real.daemon.stop()
        await unmark(real, worker, name, form=form)
        (pod,) = real.pods(worker, name)
        real.daemon.start()
        await real.daemon.connected()
        await real.submit(f"{name}-later")  # goes all its way meanwhile
        await real.running(f"{name}-later")
        assert [uid(pod) for pod in real.pods(worker, name)] == [uid(pod)]
        await end(real, f"{name}-later", name)


async def test_what_we_leave_has_what_the_built_in_controller_looks_for(planes: Planes) -> None:
    async with fleet(planes) as real:
        worker = await real.run("left")
        await real.daemon.stop()
        workload = real.manager.workload_of("left") or {}
        copy = await real.workers[worker].client.get(WORKLOAD, ObjectKey.of(workload))
        job = await real.workers[worker].client.get(JOB, ObjectKey(NAMESPACE, "left"))
        assert cluster_name(workload) == worker
        assert {obj["metadata"]["labels"][ORIGIN_LABEL] for obj in (copy, job)} == {"multikueue"}
        named = {job["metadata"][form][PREBUILT_WORKLOAD] for form in ("labels", "annotations")}
        assert named == {workload["metadata"]["name"]}
        real.daemon.start()
        await real.daemon.connected()
        await end(real, "left")
