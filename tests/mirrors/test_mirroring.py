"""Mirrors of the pods of runs, on virtual time: made, kept like what they show, and taken away."""

from __future__ import annotations

from multikueue.core.model.kinds import JOB, LEASE, POD
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import annotations_of, dig, labels_of, name_of, uid
from multikueue.testing import until
from multikueued.mirrors.names import WORKER, WORKER_POD, WORKER_POD_UID
from tests.mirrors.showing import showing


async def test_the_pods_of_a_run_are_shown() -> None:
    async with showing() as shown:
        await shown.fleet.submit(pods=2)
        mirrors = await shown.count(2)
        pods = {name_of(pod): pod for pod in await shown.pods()}
        job = await shown.fleet.admin.get(JOB, ObjectKey("default", "job"))

        for mirror in mirrors:
            pod = pods[name_of(mirror)]
            assert dig(mirror, "spec", "nodeName") == "multikueue-worker1"
            assert dig(mirror, "status", "phase") == dig(pod, "status", "phase") == "Running"
            assert (
                mirror["metadata"]["ownerReferences"][0] | {"uid": uid(job), "controller": True}
                == (mirror["metadata"]["ownerReferences"][0])
            )
            assert annotations_of(mirror)[WORKER_POD] == f"default/{name_of(pod)}"
            assert (annotations_of(mirror)[WORKER], annotations_of(mirror)[WORKER_POD_UID]) == ("worker1", uid(pod))
            assert labels_of(mirror)["batch.kubernetes.io/job-name"] == "job"
        assert await shown.nodes() == ["multikueue-worker1"]
        assert await shown.fleet.admin.get(LEASE, ObjectKey("kube-node-lease", "multikueue-worker1"))
        assert shown.refused == []
