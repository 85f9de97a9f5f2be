"""Replicas that share a certificate, and what API servers are told of it; on the loop's clock."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import anyio
import attrs
import pytest
import structlog

from multikueue.core.admission.registration import Registration
from multikueue.core.model.kinds import JOB, MUTATING_WEBHOOKS, NAMESPACE, SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.sandbox.apiserver import ApiServer, DirectClient
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE, namespace
from multikueue.testing.waiting import background
from multikueue.webhook.certificate_secret import CertificateSecret
from multikueue.webhook.errors import UnusableError
from multikueue.webhook.registrar import PERIOD, WebhookRegistrar
from multikueue.webhook.rotation import AUTHORITY_LIFETIME, SERVING_LIFETIME, WebhookCredentials, renewed
from tests.runtime.fleet import now

pytestmark = pytest.mark.looptime

KEY = ObjectKey(KUEUE_NAMESPACE, "multikueue-webhook")
REGISTRATION = Registration("multikueue-test", KEY)
CONFIGURATION = ObjectKey("", REGISTRATION.name)
DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": MUTATING_WEBHOOKS.qualified},
    "spec": {
        "group": MUTATING_WEBHOOKS.gvk.group,
        "scope": "Cluster",
        "names": {"plural": MUTATING_WEBHOOKS.plural, "kind": MUTATING_WEBHOOKS.gvk.kind},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "webhooks": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "properties": {"name": {"type": "string"}},
                                    "required": ["name"],
                                    "x-kubernetes-preserve-unknown-fields": True,
                                },
                                "x-kubernetes-list-type": "map",
                                "x-kubernetes-list-map-keys": ["name"],
                            }
                        },
                    }
                },
            }
        ],
    },
}
"""The sandbox has no webhooks, but it can keep the objects."""


@attrs.define(eq=False)
class Replica:
    """One process's part: it follows the Secret, and registers while it leads."""

    secret: CertificateSecret
    registrar: WebhookRegistrar
    served: list[WebhookCredentials]


@attrs.define(eq=False)
class Cluster:
    """The manager cluster."""

    server: ApiServer
    passed: timedelta = timedelta(0)
    """What the wall clock shows more than the loop's: years of watching would take a while."""

    def clock(self) -> datetime:
        """The wall clock of all replicas."""
        return now() + self.passed

    @property
    def admin(self) -> DirectClient:
        return DirectClient(self.server)

    @asynccontextmanager
    async def replica(self, *, leads: bool, registration: Registration = REGISTRATION) -> AsyncIterator[Replica]:
        served: list[WebhookCredentials] = []
        client = DirectClient(self.server, user="multikueue")
        secret = CertificateSecret(client, KEY, registration.host, self.clock, on_change=served.append)
        registrar = WebhookRegistrar(client, registration, [JOB], secret)
        async with background() as tasks:
            await tasks.start(secret.run)
            if leads:
                tasks.start_soon(registrar.run)
            yield Replica(secret, registrar, served)

    async def bundle(self) -> str:
        """What API servers trust."""
        webhooks = await self.admin.get(MUTATING_WEBHOOKS, CONFIGURATION)
        return base64.b64decode(webhooks["webhooks"][0]["clientConfig"]["caBundle"]).decode()


@asynccontextmanager
async def cluster(*, namespaces: bool = True, webhooks: bool = True) -> AsyncIterator[Cluster]:
    server = ApiServer("manager", clock=now)
    if webhooks:
        server.registry.create_object(DEFINITION)
    made = Cluster(server)
    if namespaces:
        await made.admin.create(NAMESPACE, namespace(KUEUE_NAMESPACE))
    yield made


async def test_the_leader_makes_a_certificate_and_every_replica_serves_it() -> None:
    async with cluster() as here, here.replica(leads=False) as standby:
        await anyio.sleep(60)
        assert standby.secret.why_not_usable() == (
            "there is no certificate in Secret kueue-system/multikueue-webhook yet: the replica that leads makes it"
        )
        async with here.replica(leads=True) as leader:
            await anyio.sleep(1)
            assert leader.secret.why_not_usable() is None
            assert standby.secret.why_not_usable() is None
            assert leader.served[-1].written() == standby.served[-1].written()
            assert await here.bundle() == leader.served[-1].bundle


async def test_a_new_leader_goes_on_with_what_there_is() -> None:
    """A restart changes nothing: not the certificate, nor what API servers trust."""
    async with cluster() as here:
        async with here.replica(leads=True):
            await anyio.sleep(1)
        first = await here.admin.get(SECRET, KEY)
        async with here.replica(leads=True):
            await anyio.sleep(5 * PERIOD)
        assert (await here.admin.get(SECRET, KEY)) == first


async def test_a_secret_and_a_configuration_that_the_chart_left_empty_are_filled_in() -> None:
    """So the daemon needs no permission to create either."""
    async with cluster() as here:
        metadata = {"name": KEY.name, "namespace": KEY.namespace, "labels": {"helm": "x"}}
        await here.admin.create(SECRET, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
        gvk = MUTATING_WEBHOOKS.gvk
        skeleton = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {"name": CONFIGURATION.name}}
        await here.admin.create(MUTATING_WEBHOOKS, skeleton)
        async with here.replica(leads=True) as leader:
            await anyio.sleep(1)
            assert leader.secret.why_not_usable() is None
            assert await here.bundle() == leader.served[-1].bundle
        assert (await here.admin.get(SECRET, KEY))["metadata"]["labels"] == {"helm": "x"}


async def test_over_two_years_replicas_serve_what_api_servers_trust() -> None:
    """Nobody restarts anything, and nobody is told to."""
    serials: set[int] = set()
    async with cluster() as here, here.replica(leads=True) as leader, here.replica(leads=False) as standby:
        await anyio.sleep(1)
        while here.clock().year < 2028:
            here.passed += timedelta(days=3)
            await anyio.sleep(PERIOD + 1)
            assert standby.secret.why_not_usable() is None
            assert standby.served[-1].written() == leader.served[-1].written()
            assert await here.bundle() == standby.served[-1].bundle
            serials.add(standby.served[-1].serving.certificate.serial_number)
    assert 2 * AUTHORITY_LIFETIME / SERVING_LIFETIME <= len(serials) <= 20


async def test_a_secret_that_is_removed_comes_back_as_it_was() -> None:
    """Replicas serve on meanwhile, and API servers need not learn anything new."""
    async with cluster() as here, here.replica(leads=True) as leader:
        await anyio.sleep(1)
        before, bundle = leader.served[-1].written(), await here.bundle()
        await here.admin.delete(SECRET, KEY)
        await anyio.sleep(5)
        assert leader.secret.why_not_usable() is None
        secrets = (await here.admin.get(SECRET, KEY))["data"]
        assert {field: base64.b64decode(text).decode() for field, text in secrets.items()} == before
        assert await here.bundle() == bundle


async def test_a_secret_with_something_else_in_it_is_mended_and_the_log_does_not_show_it() -> None:
    async with cluster() as here, here.replica(leads=True) as leader:
        await anyio.sleep(1)
        with structlog.testing.capture_logs() as lines:
            garbage = base64.b64encode(b"hunter2").decode()
            await here.admin.merge_patch(SECRET, KEY, {"data": {"tls.key": garbage, "ca.crt": "////"}})
            await anyio.sleep(5)
        assert leader.secret.why_not_usable() is None
        assert WebhookCredentials.read(leader.served[-1].written()).bundle == await here.bundle()
        assert "certificate unusable" in [line["event"] for line in lines]
        assert "hunter2" not in str(lines)
        assert "BEGIN" not in str(lines)


async def test_a_certificate_that_cannot_be_served_is_replaced() -> None:
    """Such as one with a key too short for this machine's TLS. Who only follows serves what it has meanwhile."""
    refused: list[WebhookCredentials] = []

    def serve(credentials: WebhookCredentials) -> None:
        if credentials.written() in [credentials.written() for credentials in refused]:
            raise UnusableError("the key is too short")

    weak = renewed(None, REGISTRATION.host, now())
    assert weak is not None
    async with cluster() as here:
        client = DirectClient(here.server, user="standby")
        standby = CertificateSecret(client, KEY, REGISTRATION.host, here.clock, on_change=serve)
        async with background() as tasks, here.replica(leads=True) as leader:
            await tasks.start(standby.run)
            await anyio.sleep(1)
            before = standby.credentials
            refused.append(weak)
            leader.secret.on_change = serve
            data = {field: base64.b64encode(text.encode()).decode() for field, text in weak.written().items()}
            await here.admin.merge_patch(SECRET, KEY, {"data": data})
            await anyio.sleep(1)
            assert standby.credentials is before
            await anyio.sleep(4)
            assert before is not None
            assert (await here.admin.get(SECRET, KEY))["data"] != data
            assert await here.bundle() == before.bundle


async def test_what_somebody_changed_in_the_configuration_is_mended() -> None:
    async with cluster() as here, here.replica(leads=True) as leader:
        await anyio.sleep(1)
        await here.admin.merge_patch(MUTATING_WEBHOOKS, CONFIGURATION, {"webhooks": []})
        await anyio.sleep(PERIOD + 1)
        assert await here.bundle() == leader.served[-1].bundle


async def test_a_standby_writes_nothing() -> None:
    async with cluster() as here, here.replica(leads=False):
        await anyio.sleep(10 * PERIOD)
        assert (await here.admin.list(SECRET)).items == []
        assert (await here.admin.list(MUTATING_WEBHOOKS)).items == []


async def test_what_cannot_be_written_is_told_once_and_tried_again() -> None:
    async with cluster(webhooks=False) as here:
        with structlog.testing.capture_logs() as lines:
            async with here.replica(leads=True) as leader:
                await anyio.sleep(600)
                complaints = [line for line in lines if line["event"] == "cannot register the webhook"]
                assert len(complaints) == 1
                assert complaints[0]["configuration"] == "multikueue-test"
                assert leader.secret.why_not_usable() is None  # the certificate does not wait for it

                here.server.registry.create_object(DEFINITION)
                await anyio.sleep(30)
                assert await here.bundle() == leader.served[-1].bundle


async def test_a_certificate_that_could_not_be_renewed_is_told_by_readiness() -> None:
    async with cluster() as here:
        async with here.replica(leads=True):
            await anyio.sleep(1)
        async with here.replica(leads=False) as standby:
            await anyio.sleep(1)
            here.passed = SERVING_LIFETIME + timedelta(days=1)
            assert standby.secret.why_not_usable() == (
                "the certificate in Secret kueue-system/multikueue-webhook has expired on 2026-04-01"
            )


async def test_what_else_is_in_the_secret_stays_and_troubles_nobody() -> None:
    async with cluster() as here, here.replica(leads=True):
        await anyio.sleep(1)
        await here.admin.merge_patch(SECRET, KEY, {"data": {"keystore": "/////w=="}})
        await anyio.sleep(5)
        changed = await here.admin.get(SECRET, KEY)
        await anyio.sleep(3 * PERIOD)
        assert await here.admin.get(SECRET, KEY) == changed
        assert changed["data"]["keystore"] == "/////w=="


async def test_two_daemons_on_one_secret_are_told_and_do_not_race() -> None:
    """Each needs a certificate for its own Service: they would replace each other's as fast as they can."""
    other = Registration("other", ObjectKey(KUEUE_NAMESPACE, "other-webhook"))
    async with cluster() as here, here.replica(leads=True):
        await anyio.sleep(1)
        with structlog.testing.capture_logs() as lines:
            async with here.replica(leads=True, registration=other):
                await anyio.sleep(60)
        assert any("set webhook.serviceName" in line["event"] for line in lines)
        assert sum(line["event"] == "certificate renewed" for line in lines) <= 61
