"""The webhook as a real API server asks it: over TLS, with the certificate it was told to trust."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import anyio
import attrs
import pytest

from multikueue.core.model.kinds import JOB, MUTATING_WEBHOOKS, SECRET
from multikueue.core.model.labels import CONTROLLER_NAME, QUEUE_LABEL
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.workloads import check
from multikueue.sandbox.setting_up import CHECK, KUEUE_NAMESPACE
from multikueue.webhook.certificates import is_signed_by, make_authority, make_certificate
from multikueue.webhook.rotation import FIELDS, WebhookCredentials
from multikueued.settings.config import Settings, WebhookSettings
from tests.controlplane.polling import poll_until
from tests.controlplane.ports import free_port
from tests.integration.daemon import SETTINGS
from tests.integration.fleet import Fleet, fleet, job
from tests.integration.permissions import WEBHOOK, WEBHOOK_CONFIGURATION, chart_objects
from tests.integration.planes import Planes
from tests.integration.view import NAMESPACE

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]

_JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
_SECRET = f"/api/v1/namespaces/{KUEUE_NAMESPACE}/secrets/{WEBHOOK}"


def settings(*, failure_policy: str = "Ignore") -> Settings:
    """What the chart sets; but the API server reaches the daemon by its address, as one outside of the cluster."""
    port = free_port()
    webhook = WebhookSettings(
        enabled=True,
        bind_address="127.0.0.1",
        port=port,
        url=f"https://127.0.0.1:{port}",
        service_name=WEBHOOK,
        configuration_name=WEBHOOK_CONFIGURATION,
        failure_policy="Fail" if failure_policy == "Fail" else "Ignore",
    )
    return attrs.evolve(SETTINGS, webhook=webhook)


@asynccontextmanager
async def installed(
    planes: Planes, chosen: Settings, earlier: WebhookCredentials | None = None
) -> AsyncIterator[Fleet]:
    """A fleet with the chart's objects, and a daemon that serves the webhook, with an earlier one's certificate."""
    for template in ("rbac-webhook.yaml", "webhook.yaml"):
        for obj in chart_objects(template):
            await planes.manager.admin.apply(obj)
    if earlier is not None:
        data = {field: base64.b64encode(text.encode()).decode() for field, text in earlier.written().items()}
        await planes.manager.admin.merge_patch(_SECRET, {"data": data})
    async with fleet(planes, settings=chosen) as real:
        await asked(planes)
        yield real


async def created(planes: Planes, obj: Json, *, dry: bool = True) -> Json:
    """Create a Job, or only see what would be created."""
    return await planes.manager.admin.call("POST", _JOBS, obj, query={"dryRun": "All"} if dry else {})


async def asked(planes: Planes) -> None:
    """Wait until the API server asks the webhook, and believes it."""

    async def delegated() -> bool:
        seen = await created(planes, job("probe", managed_by=None))
        return bool(seen["spec"].get("managedBy") == CONTROLLER_NAME)

    await poll_until(delegated, seconds=40, otherwise="the API server does not ask the webhook after 40 s")


async def test_a_job_without_managed_by_is_delegated_and_runs_on_a_worker(planes: Planes) -> None:
    """What Kueue's own webhook does when its MultiKueue is on: the user writes a queue's name and nothing else."""
    async with installed(planes, settings()) as real:
        await real.submit("defaulted", managed_by=None)
        worker = await real.running("defaulted")
        done = await real.finish("defaulted")
        await real.cleaned()

        assert done["spec"]["managedBy"] == CONTROLLER_NAME
        assert real.ran_on("defaulted") == [worker]


async def test_only_jobs_whose_queue_leads_to_workers_are_changed(planes: Planes) -> None:
    async with installed(planes, settings()) as real:
        plain = job("plain", managed_by=None, queue=None)
        own = job("own", managed_by="kubernetes.io/job-controller")
        foreign = job("foreign", managed_by="example.com/mine")
        unknown = job("unknown", managed_by=None, queue="no-such-queue")

        assert "managedBy" not in (await created(planes, plain))["spec"]
        assert "managedBy" not in (await created(planes, unknown))["spec"]
        assert (await created(planes, own))["spec"]["managedBy"] == CONTROLLER_NAME
        assert (await created(planes, foreign))["spec"]["managedBy"] == "example.com/mine"

        # A Job that exists is not asked about again: it could not be changed any more.
        made = await created(planes, job("later", managed_by=None, queue=None), dry=False)
        patch = {"metadata": {"labels": {QUEUE_LABEL: "user-queue"}}}
        changed = await real.manager.client.merge_patch(JOB, ObjectKey(NAMESPACE, "later"), patch)
        assert "managedBy" not in made["spec"]
        assert "managedBy" not in changed["spec"]
        await real.delete("later")


async def test_while_no_replica_runs_jobs_are_created_and_later_rejected_with_what_to_set(planes: Planes) -> None:
    """Nobody's work depends on the daemon being there, and nothing ever runs on the manager by accident."""
    async with installed(planes, settings()) as real:
        await real.daemon.stop()
        await real.submit("unasked", managed_by=None)
        real.daemon.start()

        def message() -> str | None:
            entry = check(real.manager.workload_of("unasked") or {}, CHECK) or {}
            return entry.get("message") if entry.get("state") == "Rejected" else None

        rejection = await real.changes.until(message, otherwise=lambda: f"not rejected: {real.story('unasked')}")
        assert 'Expecting spec.managedBy to be "kueue.x-k8s.io/multikueue" not ""' in rejection
        assert real.ran_on("unasked") == []
        await real.delete("unasked")


async def test_with_fail_a_job_that_cannot_be_asked_about_is_refused_at_once(planes: Planes) -> None:
    async with installed(planes, settings(failure_policy="Fail")) as real:
        await real.daemon.stop()
        answer = await planes.manager.admin.send("POST", _JOBS, job("refused", managed_by=None))
        assert answer.status == 500
        assert "managed-by.multikueue.dev" in answer.body["message"]
        plain = await created(planes, job("plain", managed_by=None, queue=None))  # others are not asked about
        assert plain["metadata"]["name"] == "plain"


async def test_a_restart_with_another_certificate_is_believed_again(planes: Planes) -> None:
    """The Secret was lost while nothing ran: the new leader makes a new authority, and tells the API server."""
    async with installed(planes, settings()) as real:
        before = await _authority(real)
        await real.daemon.stop()
        await real.manager.client.merge_patch(SECRET, ObjectKey(KUEUE_NAMESPACE, WEBHOOK), {"data": None})
        real.daemon.start()
        await real.daemon.connected()
        await asked(planes)
        assert await _authority(real) != before


async def test_while_the_authority_changes_every_job_is_asked_about(planes: Planes) -> None:
    """A year is over: a new authority has been announced for two hours, and signs from now on."""
    now = datetime.now(UTC)
    old = make_authority("old", now - timedelta(days=300), timedelta(days=365))
    new = make_authority("new", now - timedelta(hours=2), timedelta(days=365))
    serving = make_certificate(old, "127.0.0.1", now - timedelta(days=10), timedelta(days=90))
    earlier = WebhookCredentials(serving, (new.certificate, old.certificate), new)
    asked_about = 0

    async def create_without_end() -> None:
        nonlocal asked_about
        while True:  # with `Fail` any of them would be refused that cannot be asked about
            made = await created(planes, job("meanwhile", managed_by=None))
            assert made["spec"]["managedBy"] == CONTROLLER_NAME
            asked_about += 1

    async with installed(planes, settings(failure_policy="Fail"), earlier) as real, anyio.create_task_group() as tasks:
        tasks.start_soon(create_without_end)
        note = {"metadata": {"annotations": {"tests": "have the daemon look again"}}}
        await planes.manager.admin.merge_patch(_SECRET, note)

        async def signed_by_the_new_one() -> bool:
            data = (await planes.manager.admin.get(_SECRET))["data"]
            credentials = WebhookCredentials.read({field: base64.b64decode(data[field]).decode() for field in FIELDS})
            return is_signed_by(credentials.serving.certificate, new.certificate)

        await poll_until(signed_by_the_new_one, seconds=20, otherwise="the new authority signs nothing")
        before = asked_about

        async def twenty_more() -> bool:
            return asked_about >= before + 20

        await poll_until(twenty_more, seconds=20, otherwise="no more jobs are asked about")
        tasks.cancel_scope.cancel()

        await real.daemon.stop()  # and with new connections
        real.daemon.start()
        await asked(planes)


async def _authority(real: Fleet) -> str:
    configuration = await real.manager.client.get(MUTATING_WEBHOOKS, ObjectKey("", WEBHOOK_CONFIGURATION))
    return str(configuration["webhooks"][0]["clientConfig"]["caBundle"])
