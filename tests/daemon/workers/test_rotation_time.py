"""`--timeout` of `worker rotate` bounds all that it waits for, on virtual time."""

from __future__ import annotations

from typing import cast

import anyio
import orjson
import pytest

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver import Hang, Match
from multikueue.testing import InMemoryCluster
from multikueued.clusters import ClusterClient
from multikueued.exits import CommandError
from multikueued.settings.config import Settings
from multikueued.workers.connection_wait import until_connected
from multikueued.workers.objects import WorkerSide, kubeconfig, manager_secret, multikueue_cluster
from multikueued.workers.places import ManagerAccess
from multikueued.workers.rotate import rotate

pytestmark = pytest.mark.looptime
NAMESPACE = "kueue-system"
KUBECONFIG = orjson.dumps(kubeconfig("worker1", "https://worker1.example.com", "", "secret"))


def namespace() -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


async def clusters() -> tuple[InMemoryCluster, InMemoryCluster]:
    """A manager that knows a worker, and the worker, on which nobody fills in tokens."""
    manager, worker = InMemoryCluster("manager"), InMemoryCluster("worker1")
    await manager.put(namespace(), multikueue_cluster("worker1"), manager_secret("worker1", NAMESPACE, KUBECONFIG))
    account = {"name": WorkerSide(NAMESPACE).account, "namespace": NAMESPACE}
    await worker.put(namespace(), {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    return manager, worker


def known(manager: InMemoryCluster) -> tuple[ManagerAccess, list[str]]:
    said: list[str] = []
    return ManagerAccess(manager.client(), Settings(namespace=NAMESPACE), said.append), said


@pytest.mark.parametrize(
    ("where", "match"),
    [
        ("manager", Match(resource="multikueueclusters")),
        ("worker", Match(verbs=("list",), resource="secrets")),
        ("worker", Match(verbs=("get",), resource="secrets")),
        ("", Match()),
    ],
    ids=["the manager hangs", "the worker hangs", "the worker hangs with the new token", "nobody fills in the token"],
)
async def test_it_gives_up_in_time_and_says_what_has_changed(where: str, match: Match) -> None:
    """A request has 30 s of its own here, and so has the token."""
    manager, worker = await clusters()
    if where:
        (manager if where == "manager" else worker).faults.add(Hang(), on=match)
    target, said = known(manager)
    begun = anyio.current_time()

    with pytest.raises(CommandError, match='not done after 5 s: worker "worker1" or the manager takes longer'):
        await rotate(target, cast(ClusterClient, worker.client()), "worker1", WorkerSide(NAMESPACE), 5.0)

    assert anyio.current_time() - begun == pytest.approx(5.0)
    reached = not where or match.verbs == ("get",)
    assert [text.partition(" On ")[0] for text in said] == (
        ["Not done: nothing has changed for the daemon."] if reached else []
    )


@pytest.mark.parametrize(
    ("hangs", "complaint"),
    [(True, "the manager does not answer"), (False, "nobody has looked at it: does the daemon run")],
)
async def test_the_wait_for_the_daemon_ends_in_time_and_says_why(hangs: bool, complaint: str) -> None:
    manager, _ = await clusters()
    if hangs:
        manager.faults.add(Hang(), on=Match(resource=MULTIKUEUE_CLUSTER.plural))
    target, _ = known(manager)
    begun = anyio.current_time()

    with pytest.raises(CommandError, match=f'worker "worker1" is not connected after 5 s: {complaint}'):
        await until_connected(target, "worker1", KUBECONFIG, 5.0, must_tell=True)

    assert anyio.current_time() - begun == pytest.approx(5.0)
