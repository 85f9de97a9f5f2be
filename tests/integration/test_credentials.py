"""A worker's credentials that are taken away, and given again."""

from __future__ import annotations

import pytest

from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER
from multikueue.core.model.objects import dig
from tests.controlplane.polling import poll_until
from tests.integration.fleet import fleet
from tests.integration.permissions import WORKER_RULES
from tests.integration.planes import WORKER_USER, Planes
from tests.integration.view import NAMESPACE

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]


async def test_a_revoked_token_disconnects_its_worker_and_a_new_secret_brings_it_back(planes: Planes) -> None:
    """The manager says what is wrong without the token; the Job that runs there is kept and ends as if nothing was."""
    async with fleet(planes) as real:
        worker = await real.run("trusted")
        cluster = planes.workers[worker]
        token = cluster.token(WORKER_USER)
        await cluster.revoke(WORKER_USER)
        # A new Job finds out first: an open watch is not authenticated again. It runs where that is possible.
        await real.submit("other")
        other = await real.running("other")
        await cluster.restart_apiserver()  # watches end by themselves within the hour; this ends them now
        active = await real.active(worker, status=False)
        await real.changes.until(
            lambda: (
                "Unauthorized"
                in dig(real.manager.get(MULTIKUEUE_CLUSTER, worker), "status", "conditions")[0]["message"]
            ),
            otherwise=lambda: f"it does not say that the token is refused: {active}",
        )
        assert token not in str(real.manager.get(MULTIKUEUE_CLUSTER, worker))
        assert await real.running("trusted") == worker

        await cluster.service_account(WORKER_USER, WORKER_RULES)  # of the same name, with a token of its own
        await real.rotate(worker, cluster.kubeconfig(WORKER_USER))
        await real.active(worker)
        for name in ("trusted", "other"):
            await real.finish(name)
        await real.cleaned()

        assert other != worker
        assert real.ran_on("trusted") == [worker]
        assert real.ran_on("other") == [other]


async def test_a_role_that_is_taken_away_is_named_and_a_grant_brings_the_worker_back(planes: Planes) -> None:
    """The message is the API server's: who may not do what."""
    async with fleet(planes) as real:
        user = "limited"
        await planes.workers["worker2"].service_account(user, WORKER_RULES)
        await real.rotate("worker2", planes.workers["worker2"].kubeconfig(user))
        await planes.workers["worker2"].grant(user, [])
        await planes.workers["worker2"].restart_apiserver()
        await real.changes.until(
            lambda: (
                'resource "workloads" in API group "kueue.x-k8s.io" at the cluster scope'
                in dig(real.manager.get(MULTIKUEUE_CLUSTER, "worker2"), "status", "conditions")[0]["message"]
            ),
            otherwise="it does not say what is missing",
        )
        await planes.workers["worker2"].grant(user, WORKER_RULES)
        await real.active("worker2")


async def test_permissions_are_enough_for_events_too(planes: Planes) -> None:
    """What the daemon did is told on the Workload, for `kubectl describe`."""
    async with fleet(planes) as real:
        worker = await real.run("told")
        workload = real.manager.workload_of("told") or {}
        selector = {"fieldSelector": f"regarding.name={workload['metadata']['name']},reason=MultiKueue"}

        async def notes() -> list[str]:
            listed = await planes.manager.admin.get(f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events", **selector)
            return [event["note"] for event in listed["items"]]

        async def announced() -> bool:
            return f'The workload was admitted on "{worker}"' in await notes()

        await poll_until(announced, seconds=20, otherwise="there is no event")
        await real.delete("told")
        await real.cleaned()
