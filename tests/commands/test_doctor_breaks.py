"""What only `doctor` finds, with a real daemon between; what `explain` finds as well is in `test_breaks`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest

from multikueue.core.model.dependencies import MAX_LOOKED_FOR
from multikueue.core.model.kinds import (
    MULTIKUEUE_CLUSTER,
    NAMESPACE,
    SECRET,
    WORKLOAD,
)
from multikueue.core.model.names import Json, ObjectKey
from multikueue.errors import Cause, Forbidden, Unreachable
from multikueue.kube import ClusterConfig
from multikueue.sandbox.apiserver import ApiServer, DirectClient, Hang, Match
from multikueued.diagnosis.findings import Diagnosis
from multikueued.doctor.cluster_reader import Sight
from multikueued.doctor.needs import missing
from multikueued.doctor.worker_reader import DEADLINE
from multikueued.reports.worker_facts import Need, NotChecked
from tests.commands.breaking import Change, Person, Refusals, seen_after
from tests.commands.diagnosing import diagnosed, named
from tests.examples import shared
from tests.runtime.fleet import Fleet
from tests.runtime.workers.test_cluster_profiles import DEFINITION, Inventory

pytestmark = pytest.mark.looptime


async def diagnosed_after(
    workers: int = 1, *, before: Change | None = None, manager: Refusals | None = None
) -> Diagnosis:
    """Break something and ask the doctor; see `seen_after` and `diagnosed`."""
    return await seen_after(partial(diagnosed, manager=manager), workers, before=before)


async def refer(fleet: Fleet, profile: str) -> None:
    source = {"clusterSource": {"clusterProfileRef": {"name": profile}, "kubeConfig": None}}
    await fleet.admin.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"), {"spec": source})


async def test_a_worker_by_cluster_profile_without_a_secret_is_not_examined() -> None:
    """The daemon alone may have its credentials. What it says of the connection is told."""

    async def change(fleet: Fleet) -> None:
        fleet.manager.registry.create_object(DEFINITION)
        await Inventory(fleet).write_profile("oslo")
        await refer(fleet, "oslo")

    diagnosis = await diagnosed_after(before=change)

    assert "clusterProfile.accessProviders" in named(diagnosis, "cluster-profile-off").remedy
    (gap,) = (gap for gap in diagnosis.not_checked if gap.what.startswith("worker1 itself"))
    assert gap.why.endswith('ClusterProfile "kueue-system/oslo": only the daemon has its credentials')


async def test_a_missing_cluster_profile_is_told() -> None:
    diagnosis = await diagnosed_after(before=lambda fleet: refer(fleet, "oslo"))

    (gap,) = (gap for gap in diagnosis.not_checked if gap.what.startswith("worker1 itself"))
    assert gap.why.endswith('ClusterProfile.multicluster.x-k8s.io "oslo" not found')


async def test_a_worker_by_cluster_profile_is_examined_with_the_secret_that_is_for_it() -> None:
    async def change(fleet: Fleet) -> None:
        fleet.manager.registry.create_object(DEFINITION)
        await Inventory(fleet).add("worker1")
        await refer(fleet, "worker1")
        await DirectClient(fleet.workers["worker1"]).delete(NAMESPACE, ObjectKey("", "default"))

    diagnosis = await diagnosed_after(before=change)

    assert named(diagnosis, "worker-namespace-missing").where == "worker1, Namespace default"
    assert [worker.worker for worker in diagnosis.workers] == ["worker1"]


async def test_hung_workers_cost_one_deadline_together() -> None:
    """Two of three hang, and the daemon has not noticed yet: the third is examined, and they are not checked."""

    async def look(fleet: Fleet) -> tuple[Diagnosis, float]:
        for name in ("worker1", "worker2"):
            fleet.workers[name].faults.partition("hang")
        began = anyio.current_time()
        return await diagnosed(fleet, tell=notes.append), anyio.current_time() - began

    notes: list[str] = []
    diagnosis, took = await seen_after(look, 3)

    assert took == DEADLINE
    assert notes == ["still asking worker1, worker2, for up to 17 s more"]
    assert [worker.worker for worker in diagnosis.workers] == ["worker3"]
    gaps = {gap.what: gap for gap in diagnosis.not_checked}
    assert {"worker1 itself", "worker2 itself"} < set(gaps)
    assert "cannot be reached from here, and the daemon can" in gaps["worker1 itself"].why
    assert diagnosis.findings == ()  # nothing is known to be wrong


async def test_what_a_slow_worker_has_answered_counts() -> None:
    async def look(fleet: Fleet) -> Diagnosis:
        fleet.workers["worker1"].faults.add(Hang(), on=Match(verbs=("list",), resource="localqueues"))
        await DirectClient(fleet.workers["worker1"]).delete(NAMESPACE, ObjectKey("", "default"))
        return await diagnosed(fleet)

    diagnosis = await seen_after(look)

    assert named(diagnosis, "worker-namespace-missing").where == "worker1, Namespace default"
    assert "the rest of worker1" in {gap.what for gap in diagnosis.not_checked}


async def test_what_may_not_be_read_is_not_checked_and_never_fine() -> None:
    """Somebody without Secrets and Workloads: nothing of workers is known, and that is said."""
    refused = Forbidden("no", status=403)
    diagnosis = await diagnosed_after(2, manager={("get", "secrets"): refused, ("list", "workloads"): refused})

    gaps = {gap.what: gap for gap in diagnosis.not_checked}
    assert "worker1 itself, and when its credentials expire" in gaps
    assert gaps["why jobs wait"].why == f"you may not list {WORKLOAD} there"
    assert diagnosis.workers == ()
    assert all(gap.who for gap in diagnosis.not_checked)


@pytest.mark.parametrize(
    "plural",
    shared(["multikueueclusters", "clusterqueues", "localqueues", "admissionchecks", "multikueueconfigs"], first=2),
)
async def test_of_a_list_that_cannot_be_read_nothing_is_said_to_be_missing(plural: str) -> None:
    diagnosis = await diagnosed_after(2, manager={("list", plural): Forbidden("no", status=403)})

    assert {finding.id for finding in diagnosis.findings} <= {
        "permission-missing"
    }  # who looks and the daemon are one here
    assert any(f"you may not list {plural}" in gap.why for gap in diagnosis.not_checked)


SECRET_DB: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "default"}}


async def submit_needing(fleet: Fleet) -> None:
    """A job that mounts a Secret, which its worker has until it runs there."""
    for server in (fleet.manager, fleet.workers["worker1"]):
        await DirectClient(server).create(SECRET, SECRET_DB)
    mounts = {"volumes": [{"name": "db", "secret": {"secretName": "db"}}]}
    await fleet.submit(template=mounts)


async def lose(fleet: Fleet) -> None:
    await DirectClient(fleet.workers["worker1"]).delete(SECRET, ObjectKey("default", "db"))


async def test_a_secret_that_a_running_job_names_and_its_worker_lacks() -> None:
    diagnosis = await seen_after(diagnosed, submit=submit_needing, after=lose)

    finding = named(diagnosis, "dependency-missing")
    assert (finding.where, finding.side) == ("worker1, Secret default/db", "worker")
    assert finding.why.startswith("it is not there, and pods of ")


async def test_one_that_is_there_is_no_finding() -> None:
    diagnosis = await seen_after(diagnosed, submit=submit_needing)

    assert [finding for finding in diagnosis.findings if finding.id == "dependency-missing"] == []


async def test_of_very_many_the_first_are_looked_for_and_the_others_are_not_checked() -> None:
    gaps = list[NotChecked]()
    needs = [Need("Secret", ObjectKey("default", f"s{number}"), "job/train") for number in range(MAX_LOOKED_FOR + 2)]

    looked_for = await missing(Sight(Person(ApiServer("worker1")), "worker1", "", gaps), needs)

    assert looked_for == tuple(needs[:MAX_LOOKED_FOR])
    assert [(gap.what, gap.why) for gap in gaps] == [
        ("whether 2 more of what jobs name is on worker1", "only 64 are looked for")
    ]


async def test_one_that_may_not_be_looked_for_is_not_checked() -> None:
    refused = {("get", "secrets"): Forbidden("no", status=403)}
    diagnosis = await seen_after(partial(diagnosed, refusals=refused), submit=submit_needing, after=lose)

    assert [finding for finding in diagnosis.findings if finding.id == "dependency-missing"] == []
    (gap,) = (gap for gap in diagnosis.not_checked if gap.what == "whether each Secret that jobs name is on worker1")
    assert gap.why == "the user of its kubeconfig may not get secrets there"


async def test_new_credentials_that_do_not_work_are_one_finding_while_the_daemon_goes_on_with_the_old() -> None:
    diagnosis = await seen_after(
        diagnosed, after=lambda fleet: fleet.rotate("worker1", "void", valid=False), seconds=10.0
    )

    (only,) = diagnosis.findings
    assert (only.id, only.where) == ("bad-token", "worker1")
    assert "Secret worker1-secret has new ones, and the daemon is connected with the former" in only.why
    assert "create secret generic worker1-secret --from-file=kubeconfig=FILE" in only.remedy


async def test_a_new_kubeconfig_with_the_ca_of_another_cluster_is_told_as_that() -> None:
    """The daemon is connected, but not with it: that says nothing of the way from here."""

    @asynccontextmanager
    async def untrusted(name: str, config: ClusterConfig) -> AsyncIterator[Any]:
        raise Unreachable("the server's certificate is not trusted", cause=Cause.CERTIFICATE)
        yield

    async def change(fleet: Fleet) -> None:
        await fleet.rotate("worker1", "new")
        fleet.revoke("worker1", "new")

    diagnosis = await seen_after(partial(diagnosed, connect=untrusted), after=change, seconds=10.0)

    assert [finding.id for finding in diagnosis.findings] == ["untrusted-certificate"]
    assert "has new ones" in diagnosis.findings[0].why
