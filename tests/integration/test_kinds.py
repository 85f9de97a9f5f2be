"""Journeys of every kind on real servers, with the kinds' own definitions where they are beside the checkout.

There is nobody who runs most of these kinds here: the sandbox's job runner plays their controllers, as an ordinary
client. All kinds go at the same time, so that one fleet serves them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import chain

import anyio
import pytest

from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.names import Json
from multikueue.core.model.objects import labels_of
from multikueue.kube import KubeClient
from multikueue.sandbox.jobs import JobRunner
from multikueue.sandbox.kinds import completed
from multikueue.sandbox.kueue import SmallKueue
from multikueued.demo.jobs import with_kinds
from multikueued.settings.config import Settings
from tests.controlplane.crds import establish
from tests.integration.daemon import SETTINGS, Daemon
from tests.integration.permissions import WORKER_RULES, grant_daemon
from tests.integration.planes import WORKER_USER, Planes, connection
from tests.kinds.cases import Case, cases, definitions
from tests.kinds.ground import NAMESPACE, NAMESPACE_THERE, Cluster, Ground
from tests.kinds.journeys import Journey
from tests.kinds.ways import WAYS

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]

_QUOTA = {"cpu": "64", "memory": "64Gi"}
_PACE = 0.2
"""Seconds between two looks of one journey: they are a hundred."""
_LATE = 0.5
"""Seconds by which one watch may be behind another."""
_RUN_THERE = ("Job", "Deployment", "StatefulSet")
"""Kinds that kube-controller-manager runs. Nodes and kubelets there are none: the sandbox's runner plays those, too."""


def _rules(rows: Sequence[Case], verbs: Sequence[str], status_verbs: Sequence[str] = ()) -> list[Json]:
    """RBAC rules for these kinds."""
    rules: list[Json] = []
    for case in rows:
        resource = case.adapter.resource
        group, own = resource.gvk.group, case.kind.status_subresource
        rules.append({"apiGroups": [group], "resources": [resource.plural], "verbs": [*verbs]})
        if status_verbs:
            where = f"{resource.plural}/status" if own else resource.plural
            rules.append({"apiGroups": [group], "resources": [where], "verbs": [*status_verbs]})
    return rules


@asynccontextmanager
async def real_ground(
    planes: Planes,
    rows: Sequence[Case],
    settings: Settings = SETTINGS,
    of_manager: Sequence[Json] | None = None,
    *,
    renamed: Collection[str] = (),
) -> AsyncIterator[Ground]:
    """The control planes with a small Kueue, a job runner and our daemon for these kinds.

    Args:
        planes: the servers.
        rows: the kinds.
        settings: of the daemon.
        of_manager: the manager's definitions of the kinds, instead of those the workers have.
        renamed: the workers that have other names for the namespace and the queue.
    """
    crds = definitions(list(rows))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(establish, planes.manager.admin, crds if of_manager is None else of_manager)
        for worker in planes.workers.values():
            tasks.start_soon(establish, worker.admin, crds)
    await grant_daemon(planes.manager, _rules(rows, ("list", "watch"), ("patch",)))
    for worker in planes.workers.values():
        verbs = ("create", "delete", "list", "watch", "patch")
        await worker.grant(WORKER_USER, [*WORKER_RULES, *_rules(rows, verbs)])
    async with AsyncExitStack() as stack:
        clusters = [
            Cluster(plane.name, await stack.enter_async_context(_client(plane.name, plane.kubeconfig())))
            for plane in planes.all
        ]
        ground = Ground(
            clusters[0], {cluster.name: cluster for cluster in clusters[1:]}, pace=_PACE, late=_LATE, renamed=renamed
        )
        await ground.set_up(_QUOTA, _QUOTA, planes.worker_kubeconfigs())
        running = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(running.cancel_scope.cancel)
        kinds = [case.kind for case in rows]
        for cluster in clusters:
            await running.start(SmallKueue(cluster.client, kinds=kinds, events=False).run)
            ours = [kind for kind in kinds if kind.resource.gvk.kind not in _RUN_THERE]
            runner = JobRunner(cluster.client, kinds=ours, events=False)
            await running.start(runner.run)
            if cluster is not ground.manager:
                ground.runners[cluster.name] = runner
        await running.start(ground.follow, [kind.resource for kind in completed(kinds)])
        daemon = Daemon(connection(planes.daemon_kubeconfig), running, settings=with_kinds(settings, kinds))
        daemon.start()
        await daemon.connected()
        yield ground


def _client(name: str, kubeconfig: Json) -> KubeClient:
    return KubeClient(connection(kubeconfig), name=name)


async def all_go(ground: Ground, gone: Iterable[tuple[Journey, Case]]) -> dict[str, str]:
    """Have kinds go their ways at the same time; what went wrong, by kind and way."""
    wrong: dict[str, str] = {}

    async def go(way: Journey, case: Case) -> None:
        try:
            await way(ground, case)
        except Exception as error:  # the other kinds go on: all that is wrong is told
            told = (f"{type(each).__name__}: {each}" for each in _single(error))
            wrong[f"{case.name} {way.__name__}"] = "; ".join(told)

    async with anyio.create_task_group() as tasks:
        for way, case in gone:
            tasks.start_soon(go, way, case)
    return wrong


def _single(error: Exception) -> Iterator[Exception]:
    """What task groups have made one exception of."""
    if isinstance(error, ExceptionGroup):
        for each in error.exceptions:
            yield from _single(each)
    else:
        yield error


@pytest.mark.parametrize("which", ["Job", "others"])
async def test_every_kind_goes_all_ways_on_real_servers(planes: Planes, which: str) -> None:
    """Copied as it is and finished, failed, beside somebody else's and deleted, changed and resized while it runs.

    And made from what was shown of one that had been started. One of the workers calls the namespace and the LocalQueue
    otherwise, and nothing is made there under the old name. Jobs go alone: kube-controller-manager makes their pods,
    which are no copies of pods.
    """
    rows = [case for case in cases() if (case.name == "job") == (which == "Job")]
    first, *others = (
        [(way.journey, case) for case in rows if way.concerns(case) and way.on_servers(case)] for way in WAYS
    )
    async with real_ground(planes, rows, renamed=["worker1"]) as ground:
        wrong = await all_go(ground, first) | await all_go(ground, chain.from_iterable(others))
        places = {
            (worker.name, obj["metadata"]["namespace"])
            for worker in ground.workers.values()
            for obj in worker.last.values()
            if ORIGIN_LABEL in labels_of(obj)
        }

    assert wrong == {}
    assert places == {("worker1", NAMESPACE_THERE), ("worker2", NAMESPACE)}
