"""What only `doctor` finds, with a real daemon between; what `explain` finds as well is in `test_breaks`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
import pytest

from multikueue.adapters import BUILTIN, JobKind
from multikueue.core.model.kinds import (
    JOB,
    MULTIKUEUE_CLUSTER,
    NAMESPACE,
    WORKLOAD,
)
from multikueue.core.model.names import ObjectKey
from multikueue.errors import Forbidden
from multikueue.sandbox.apiserver import DirectClient, Hang, Match
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from multikueue.testing import job
from multikueued.doctor.findings import Diagnosis, Severity
from multikueued.doctor.worker_reader import DEADLINE
from tests.commands.breaking import Change, Refusals, seen_after
from tests.commands.diagnosing import diagnosed, named
from tests.commands.test_breaks import delete_queue
from tests.runtime.fleet import Fleet
from tests.runtime.workers.test_cluster_profiles import DEFINITION, Inventory

pytestmark = pytest.mark.looptime

SECRET_KEY = ObjectKey(KUEUE_NAMESPACE, "worker1-secret")


async def diagnosed_after(
    workers: int = 1,
    *,
    refusals: Refusals | None = None,
    before: Change | None = None,
    submit: Change | None = None,
    after: Change | None = None,
    kinds: Sequence[JobKind] = BUILTIN,
    **seen: Any,
) -> Diagnosis:
    """Break something and ask the doctor; see `seen_after` and `diagnosed`."""
    look = partial(diagnosed, refusals=refusals, **seen)
    return await seen_after(look, workers, refusals=refusals, before=before, submit=submit, after=after, kinds=kinds)


async def test_nothing_is_wrong() -> None:
    found = await diagnosed_after(workers=2)

    assert found.findings == ()
    assert [one.worker for one in found.workers] == ["worker1", "worker2"]
    gaps = {one.what for one in found.not_checked}
    assert "whether Kueue's own MultiKueue is off" in gaps  # nothing in this fleet tells
    assert not found.has_errors


async def refer(fleet: Fleet, profile: str) -> None:
    source = {"clusterSource": {"clusterProfileRef": {"name": profile}, "kubeConfig": None}}
    await fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"), {"spec": source})


async def test_a_worker_by_cluster_profile_without_a_secret_is_not_examined() -> None:
    """The daemon alone may have its credentials. What it says of the connection is told."""

    async def change(fleet: Fleet) -> None:
        fleet.manager.registry.create_object(DEFINITION)
        await Inventory(fleet).write_profile("oslo")
        await refer(fleet, "oslo")

    found = await diagnosed_after(before=change)

    assert "clusterProfile.accessProviders" in named(found, "cluster-profile-off").remedy
    (gap,) = (one for one in found.not_checked if one.what.startswith("worker1 itself"))
    assert gap.why.endswith('ClusterProfile "kueue-system/oslo": only the daemon has its credentials')


async def test_a_missing_cluster_profile_is_told() -> None:
    found = await diagnosed_after(before=lambda fleet: refer(fleet, "oslo"))

    (gap,) = (one for one in found.not_checked if one.what.startswith("worker1 itself"))
    assert gap.why.endswith('ClusterProfile.multicluster.x-k8s.io "oslo" not found')


async def test_a_worker_by_cluster_profile_is_examined_with_the_secret_that_is_for_it() -> None:
    async def change(fleet: Fleet) -> None:
        fleet.manager.registry.create_object(DEFINITION)
        await Inventory(fleet).add("worker1")
        await refer(fleet, "worker1")
        await DirectClient(fleet.workers["worker1"]).delete(NAMESPACE, ObjectKey("", "default"))

    found = await diagnosed_after(before=change)

    assert named(found, "worker-namespace-missing").where == "worker1, Namespace default"
    assert [one.worker for one in found.workers] == ["worker1"]


async def test_missing_local_queue_on_the_worker() -> None:
    alone = await diagnosed_after(before=delete_queue)
    beside = await diagnosed_after(2, before=delete_queue)

    assert named(alone, "worker-local-queue-missing").severity is Severity.ERROR
    assert named(beside, "worker-local-queue-missing").severity is Severity.WARNING
    assert "queues mirror user-queue -n default" in named(beside, "worker-local-queue-missing").remedy


async def test_quota_too_small_everywhere() -> None:
    async def submit(fleet: Fleet) -> None:
        await fleet.admin.create(JOB, job("job", cpu="5"))

    found = await diagnosed_after(2, submit=submit)

    wrong = named(found, "never-fits")
    assert "worker1: insufficient quota for cpu (5 > 4); worker2: insufficient quota for cpu (5 > 4)" in wrong.what
    assert "raise nominalQuota" in wrong.remedy


async def test_hung_workers_cost_one_deadline_together() -> None:
    """Two of three hang, and the daemon has not noticed yet: the third is examined, and they are not checked."""

    async def look(fleet: Fleet) -> tuple[Diagnosis, float]:
        for name in ("worker1", "worker2"):
            fleet.workers[name].faults.partition("hang")
        began = anyio.current_time()
        return await diagnosed(fleet, tell=told.append), anyio.current_time() - began

    told: list[str] = []
    found, took = await seen_after(look, 3)

    assert took == DEADLINE
    assert told == ["still asking worker1, worker2, for up to 17 s more"]
    assert [one.worker for one in found.workers] == ["worker3"]
    gaps = {one.what: one for one in found.not_checked}
    assert {"worker1 itself", "worker2 itself"} < set(gaps)
    assert "cannot be reached from here, and the daemon can" in gaps["worker1 itself"].why
    assert found.findings == ()  # nothing is known to be wrong


async def test_what_a_slow_worker_has_answered_counts() -> None:
    async def look(fleet: Fleet) -> Diagnosis:
        fleet.workers["worker1"].faults.add(Hang(), on=Match(verbs=("list",), resource="localqueues"))
        await DirectClient(fleet.workers["worker1"]).delete(NAMESPACE, ObjectKey("", "default"))
        return await diagnosed(fleet)

    found = await seen_after(look)

    assert named(found, "worker-namespace-missing").where == "worker1, Namespace default"
    assert "the rest of worker1" in {one.what for one in found.not_checked}


async def test_clock_skew() -> None:
    wrong = named(await diagnosed_after(skew=-90.0), "worker-clock")

    assert wrong.what == "its clock is at least 89 s behind the manager's"
    assert "NTP" in wrong.remedy


async def test_what_may_not_be_read_is_not_checked_and_never_fine() -> None:
    """Somebody without Secrets and Workloads: nothing of workers is known, and that is said."""
    refused = Forbidden("no", status=403)
    found = await diagnosed_after(2, manager={("get", "secrets"): refused, ("list", "workloads"): refused})

    gaps = {one.what: one for one in found.not_checked}
    assert "worker1 itself, and when its credentials expire" in gaps
    assert gaps["why jobs wait"].why == f"you may not list {WORKLOAD} there"
    assert found.workers == ()
    assert all(one.who for one in found.not_checked)


@pytest.mark.parametrize(
    "plural",
    ["admissionchecks", "multikueueconfigs", "multikueueclusters", "clusterqueues", "localqueues"],
)
async def test_of_a_list_that_cannot_be_read_nothing_is_said_to_be_missing(plural: str) -> None:
    found = await diagnosed_after(2, manager={("list", plural): Forbidden("no", status=403)})

    assert {one.id for one in found.findings} <= {"permission-missing"}  # who looks and the daemon are one here
    assert any(f"you may not list {plural}" in one.why for one in found.not_checked)


async def test_the_daemons_permissions_on_the_manager() -> None:
    refused = Forbidden("no", status=403)
    wrong = named(await diagnosed_after(manager={("patch", "workloads/status"): refused}), "permission-missing")

    assert wrong.what == "system:serviceaccount:kueue-system:multikueue may not patch workloads/status.kueue.x-k8s.io"
    assert "multikueue rbac manager" in wrong.remedy
