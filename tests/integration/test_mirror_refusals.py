"""What a real kube-apiserver refuses of mirrors, and what then becomes of them: quotas, and statuses that are odd."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import attrs
import pytest

from multikueue.core.model.kinds import JOB, POD
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, clone, dig
from multikueue.errors import ApiError
from multikueue.kube import KubeClient
from multikueue.kube.informers.informer import Informer
from multikueue.runtime.caches.mutation_cache import MutationCache
from multikueue.sandbox.objects import built
from multikueue.testing import job, until
from multikueued.mirror_names import PROOF
from multikueued.mirrors.mirror import Run, pod_key
from multikueued.mirrors.reconciler import MirrorReconciler, entries
from multikueued.mirrors.tally import Held, Places
from multikueued.mirrors.worker_pods import Sight
from multikueued.reports.worker_facts import ShownPods
from tests.controlplane.interface import ClusterFactory
from tests.integration.planes import connection
from tests.mirrors.objects import run, shown, worker_pod
from tests.mirrors.test_hostile_workers import ODD_STATUSES

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

QUOTA = Resource(GVK("", "v1", "ResourceQuota"), "resourcequotas")
LIMITS = Resource(GVK("", "v1", "LimitRange"), "limitranges")


@attrs.define(eq=False)
class One:
    """A worker's pods as we are to see them, and who mirrors them on a real server."""

    admin: KubeClient
    reconciler: MirrorReconciler
    job: Json
    refused: list[str]
    pods: dict[ObjectKey, Json] = attrs.field(factory=dict)

    def pod(self, name: str, **status: Any) -> ObjectKey:
        """There is a pod that says so."""
        made = worker_pod(**status)
        made["metadata"] |= {"name": name, "uid": f"uid-of-{name}"}
        key = ObjectKey.of(made)
        self.pods[key] = shown(made)
        return pod_key("worker1", key)

    async def mirror(self, name: str) -> Json:
        """What the manager has of it."""
        return await self.admin.get(POD, ObjectKey("default", name))


@asynccontextmanager
async def mirroring(clusters: ClusterFactory) -> AsyncIterator[One]:
    """A reconciler on a real server; the worker and what it runs are played."""
    async with (
        clusters("manager") as plane,
        KubeClient(connection(plane.kubeconfig("admin")), name="manager") as admin,
        anyio.create_task_group() as tasks,
    ):
        account = {"namespace": "default", "name": "default"}
        await plane.admin.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
        submitted = job("train")
        submitted["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"
        owner, refused = await admin.create(JOB, submitted), list[str]()
        cache = MutationCache(Informer(admin, POD, indexes={"workload": entries}), entries)

        @attrs.define
        class Played:
            """Says whose all pods are."""

            jobs: dict[GVK, Any] = attrs.field(factory=dict)

            async def run_of(self, *_: object) -> tuple[Run, bool]:
                return attrs.evolve(run(owner), namespace="default"), True

        played = cast(Any, Played())
        reconciler = MirrorReconciler(
            admin,
            played,
            cache,
            lambda _: Sight(cast(Any, here.pods), cast(Any, played)),
            played,
            Places(100, 100),
            Held(),
            b"k" * 32,
            "multikueue",
            lambda _job, reason, _why: refused.append(reason),
            lambda: False,
        )
        here = One(admin, reconciler, owner, refused)
        tasks.start_soon(cache.informer.run)
        await cache.informer.wait_synced()
        yield here
        tasks.cancel_scope.cancel()


async def test_a_quota_on_pods_keeps_a_mirror_out_until_it_has_room(clusters: ClusterFactory) -> None:
    """One request while nothing changes, the reason is told, and the next status is tried again."""
    async with mirroring(clusters) as here:
        quota = await here.admin.create(
            QUOTA,
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"namespace": "default", "name": "few"},
                "spec": {"hard": {"pods": "1"}},
            },
        )
        full = {"status": {"hard": {"pods": "1"}, "used": {"pods": "1"}}}  # as its controller, which does not run here
        await here.admin.merge_patch(QUOTA, ObjectKey.of(quota), full, subresource="status")
        key = here.pod("one")

        async def is_refused() -> bool:
            await here.reconciler.reconcile(key)
            return bool(here.refused)

        await until(is_refused, 30)
        for _ in range(3):
            assert await here.reconciler.reconcile(key) is None
        assert here.refused == ["Forbidden"]
        assert here.reconciler.counted() == {"worker1": ShownPods(0, 1)}
        assert await here.admin.get(JOB, ObjectKey.of(here.job)) == here.job
        room = {"status": {"hard": {"pods": "1"}, "used": {"pods": "0"}}}
        await here.admin.merge_patch(QUOTA, ObjectKey.of(quota), room, subresource="status")
        here.pod("one", message="on")

        async def is_shown() -> bool:
            await here.reconciler.reconcile(key)
            return any(pod["metadata"]["name"] == "one" for pod in (await here.admin.list(POD)).items)

        await until(is_shown, 30)
        mirror = await here.mirror("one")
        assert (dig(mirror, "status", "message"), PROOF in annotations_of(mirror)) == ("on", True)


async def test_odd_statuses_are_taken_or_refused_and_their_logs_can_be_read(clusters: ClusterFactory) -> None:
    """None is an error of the server that would be tried again for ever, and each mirror gets its proof."""
    async with mirroring(clusters) as here:
        taken = dict[str, bool]()
        for number, (what, status) in enumerate(ODD_STATUSES.items()):
            name = f"odd-{number}"
            key = here.pod(name, **clone(status))
            before = len(here.refused)
            try:
                await here.reconciler.reconcile(key)
            except ApiError as error:
                raise AssertionError(f"{what}: {error}") from error
            mirror = await here.mirror(name)
            assert PROOF in annotations_of(mirror), what
            taken[what] = len(here.refused) == before
        assert taken["a condition that nobody knows"]
        assert taken["a map of container statuses"], "what has another form is left out"
        assert set(here.refused) <= {"Invalid", "BadRequest"}


async def test_a_limit_range_fills_nothing_into_a_mirror_and_a_quota_of_what_is_asked_for_does_not_count_it(
    clusters: ClusterFactory,
) -> None:
    """Defaults of a namespace would be counted by its quotas, on a node where nothing runs. Of quotas on pods only one
    of its scope `NotBestEffort` leaves room for others than mirrors."""
    async with mirroring(clusters) as here:
        defaults = {"cpu": "2", "memory": "1Gi", "ephemeral-storage": "10Gi"}
        limits = {"limits": [{"type": "Container", "default": defaults, "defaultRequest": defaults}]}
        await here.admin.create(LIMITS, built(LIMITS, "usual", "default", spec=limits))
        hard = {"pods": "1"}
        quota = {"hard": hard, "scopes": ["NotBestEffort"]}
        made = await here.admin.create(QUOTA, built(QUOTA, "few", "default", spec=quota))
        full = {"status": {"hard": hard, "used": hard}}  # as its controller, which does not run here
        await here.admin.merge_patch(QUOTA, ObjectKey.of(made), full, subresource="status")
        key = here.pod("one")

        async def is_shown() -> bool:
            await here.reconciler.reconcile(key)
            return any(pod["metadata"]["name"] == "one" for pod in (await here.admin.list(POD)).items)

        await until(is_shown, 30)
        mirror = await here.mirror("one")
        asked = [dig(mirror["spec"]["containers"][0], "resources", kind) for kind in ("requests", "limits")]
        assert asked == [dict.fromkeys(defaults, "0")] * 2
        assert (dig(mirror, "status", "qosClass"), here.refused) == ("BestEffort", [])
