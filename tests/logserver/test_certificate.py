"""The certificate that the server makes: kept in a Secret, renewed, and named in the APIService."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.errors import Conflict
from multikueue.webhook.rotation import SERVING_LIFETIME
from multikueued.api_answers import API_SERVICE, API_SERVICE_NAME
from multikueued.logserver.access import FrontTls
from multikueued.logserver.certificate import OwnCertificate

KEY = ObjectKey("multikueue", "multikueue-logs")
SERVICE_KEY = ObjectKey("", API_SERVICE_NAME)


@attrs.define
class Cluster:
    """The Secret and the APIService, as the chart makes them."""

    objects: dict[ObjectKey, Json] = attrs.field(
        factory=lambda: {KEY: {"metadata": {"resourceVersion": "1"}}, SERVICE_KEY: {"spec": {}}}
    )
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    patches: list[tuple[Resource, Json]] = attrs.field(factory=list)
    meanwhile: list[Callable[[], Awaitable[None]]] = attrs.field(factory=list)
    """What happens before the next write arrives."""

    async def get(self, resource: Resource, key: ObjectKey) -> Json:
        assert resource in (SECRET, API_SERVICE)
        return self.objects[key]

    async def merge_patch(self, resource: Resource, key: ObjectKey, patch: Json) -> Json:
        if self.meanwhile:
            await self.meanwhile.pop()()
        metadata = self.objects[key].get("metadata", {})
        wanted = patch.get("metadata", {}).get("resourceVersion")
        if wanted not in (None, metadata.get("resourceVersion")):
            raise Conflict("another replica was first")
        self.patches.append((resource, patch))
        written = {**metadata, "resourceVersion": f"{len(self.patches) + 1}"}
        self.objects[key] = {**self.objects[key], **patch, "metadata": written}
        return self.objects[key]

    def replica(self) -> tuple[OwnCertificate, FrontTls]:
        tls, client = FrontTls(), self
        made: Any = client
        return OwnCertificate(made, KEY, "multikueue-logs.multikueue.svc", tls, lambda: self.now), tls


def bundle(cluster: Cluster) -> str:
    return base64.b64decode(cluster.objects[SERVICE_KEY]["spec"]["caBundle"]).decode()


async def test_the_first_replica_makes_it_and_the_others_take_it() -> None:
    cluster = Cluster()
    (first, served), (second, too) = cluster.replica(), cluster.replica()
    await first.keep()
    await second.keep()
    assert [resource for resource, _ in cluster.patches] == [SECRET, API_SERVICE]
    assert set(cluster.patches[0][1]["data"]) == {"tls.crt", "tls.key", "ca.crt", "ca.key"}
    assert bundle(cluster).startswith("-----BEGIN CERTIFICATE-----")
    assert served._pair == too._pair
    assert served._pair is not None
    assert served._pair[1] not in repr(served)


async def test_it_is_renewed_before_it_expires() -> None:
    cluster = Cluster()
    replica, tls = cluster.replica()
    await replica.keep()
    before = tls._pair
    cluster.now += SERVING_LIFETIME * 0.5
    await replica.keep()
    assert tls._pair == before
    cluster.now += SERVING_LIFETIME * 0.25
    await replica.keep()
    assert tls._pair != before


async def test_a_new_authority_is_named_beside_the_old_one() -> None:
    cluster = Cluster()
    replica, _ = cluster.replica()
    await replica.keep()
    old = bundle(cluster)
    cluster.now += timedelta(days=300)
    await replica.keep()
    assert old in bundle(cluster)
    assert bundle(cluster).count("BEGIN CERTIFICATE") == 2


async def test_of_two_that_write_at_once_one_succeeds_and_the_other_takes_its_certificate() -> None:
    cluster = Cluster()
    (first, served), (second, too) = cluster.replica(), cluster.replica()
    cluster.meanwhile = [first.keep]
    with pytest.raises(Conflict):
        await second.keep()
    await second.keep()
    assert served._pair == too._pair
    assert served._pair is not None


async def test_a_bundle_that_somebody_removes_is_written_again() -> None:
    cluster = Cluster()
    replica, _ = cluster.replica()
    await replica.keep()
    before = bundle(cluster)
    cluster.objects[SERVICE_KEY] = {"spec": {"caBundle": "not base64"}}
    await replica.keep()
    assert bundle(cluster) == before
