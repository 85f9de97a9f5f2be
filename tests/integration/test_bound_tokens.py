"""Bound tokens and published findings on real servers, with the chart's permissions and no more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import attrs
import pytest
import yaml

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import CONFIG_MAP, MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, SECRET
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import annotations_of
from multikueue.errors import Forbidden, NotFound, Unauthorized
from multikueue.kube import ClusterConfig, KubeClient, parse_worker_kubeconfig
from multikueue.sandbox.setting_up import CHECK, KUEUE_NAMESPACE
from multikueued.doctor import publisher
from multikueued.reports.published import published_in
from multikueued.reports.workers import digest_in_use
from multikueued.settings.sections import BoundTokenSettings
from multikueued.tokens.bound import EXPIRES, ISSUED, bound_in, claims_of
from multikueued.workers import renewal
from multikueued.workers.connection_wait import digest_of
from multikueued.workers.places import decoded
from multikueued.workers.tokens import token_in
from tests.controlplane.polling import poll_until
from tests.integration.daemon import SETTINGS
from tests.integration.fleet import fleet
from tests.integration.permissions import chart_objects
from tests.integration.planes import Planes
from tests.integration.test_workers import cli
from tests.integration.walking import kubeconfig

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]
RENEWS = attrs.evolve(SETTINGS, bound_tokens=BoundTokenSettings(enabled=True))
KEY = ObjectKey(KUEUE_NAMESPACE, "worker1-kubeconfig")


async def is_void(config: ClusterConfig) -> bool:
    """Whether the server knows a token no more."""
    async with KubeClient(config, name="old") as client:
        try:
            await client.list(SECRET, namespace=KUEUE_NAMESPACE)
        except Unauthorized:
            return True
        except Forbidden:
            return False
    return False


async def is_published(manager: KubeClient) -> bool:
    """Whether the findings have quotas of worker1."""
    try:
        published = published_in(await manager.get(CONFIG_MAP, ObjectKey(KUEUE_NAMESPACE, "multikueue-findings")))
    except NotFound:
        return False
    return "worker1" in published and published["worker1"].quota_at is not None


async def test_a_bound_token_is_renewed_rotated_and_void(
    planes: Planes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account asks for its own tokens alone, the daemon writes the one Secret that its role names."""
    monkeypatch.setattr(renewal, "INTERVAL", 1.0)
    monkeypatch.setattr(publisher, "EVERY", 1.0)
    file, settings = tmp_path / "kubeconfig", tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump(kubeconfig(planes, "{}")))
    settings.write_text(yaml.safe_dump({"namespace": KUEUE_NAMESPACE, "boundTokens": {"enabled": True}}))
    for obj in chart_objects("rbac-bound.yaml"):
        await planes.manager.admin.apply(obj)
    async with fleet(planes, settings=RENEWS) as real:
        manager, there = real.manager.client, real.workers["worker1"].client
        await manager.merge_patch(MULTIKUEUE_CONFIG, ObjectKey("", CHECK), {"spec": {"clusters": ["worker2"]}})
        await manager.delete(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"))
        options = ("--bound", "--life", "20m", "--config-file", str(settings))
        into = ("--worker-context", "worker1", "--outside", "--multikueue-config", CHECK)
        await cli(file, "add", "worker1", *into, "--diagnose", *options)
        first = await manager.get(SECRET, KEY)
        claims = claims_of(token_in(first))
        assert claims["exp"] - claims["iat"] == 1200
        assert claims["kubernetes.io"]["secret"]["name"] == "multikueue-bound"

        aged = {
            name: timestamp(datetime.fromisoformat(annotations_of(first)[name]).astimezone(UTC) - timedelta(minutes=17))
            for name in (ISSUED, EXPIRES)
        }
        await manager.merge_patch(SECRET, KEY, {"metadata": {"annotations": aged}})

        async def renewed() -> bool:
            return token_in(await manager.get(SECRET, KEY)) != token_in(first)

        async def in_use() -> bool:
            wanted = digest_of(decoded(await manager.get(SECRET, KEY), "kubeconfig").encode())
            return digest_in_use(await manager.get(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"))) == wanted

        await poll_until(renewed, seconds=60, otherwise="the token is not renewed")
        await poll_until(in_use, seconds=60, otherwise="the new token is not in use")
        second = await manager.get(SECRET, KEY)
        bound = bound_in(second)
        assert bound is not None
        assert bound.life == timedelta(minutes=20)

        said = await cli(file, "rotate", "worker1", "--worker-context", "worker1", "--config-file", str(settings))
        assert "Secret kueue-system/multikueue-bound is deleted, its token void" in said
        old = parse_worker_kubeconfig(decoded(second, "kubeconfig").encode())

        await poll_until(partial(is_void, old), seconds=60, otherwise="the old token still works")

        await poll_until(partial(is_published, manager), seconds=60, otherwise="nothing is published of worker1")
        await cli(file, "remove", "worker1", "--worker-context", "worker1")
        left = (await there.list(SECRET, namespace=KUEUE_NAMESPACE)).items
        assert [obj["metadata"]["name"] for obj in left if "bound" in obj["metadata"]["name"]] == []
