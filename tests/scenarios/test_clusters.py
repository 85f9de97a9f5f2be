"""Appendix D, Cluster: connecting to workers, and what a MultiKueueCluster says about it."""

from __future__ import annotations

import json
from collections.abc import Callable

import anyio
import pytest

from multikueue.core.machinery.connection_facts import connection_facts
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.errors import Cause
from multikueue.sandbox.setting_up import KUEUE_NAMESPACE
from tests.scenarios.fleet import Fleet, Scenario
from tests.simulation.weather import DEADLINE

FAILED = "load client config failed: "
SECRET_KEY = ObjectKey(KUEUE_NAMESPACE, "worker1-secret")

Damage = Callable[[Json], object]


async def _write(fleet: Fleet, damage: Damage) -> None:
    document = fleet.kubeconfig(1)
    damage(document)
    await fleet.write_kubeconfig(1, json.dumps(document))


def _user(**fields: object) -> Damage:
    return lambda document: document["users"][0]["user"].update(fields)


def _cluster(**fields: object) -> Damage:
    return lambda document: document["clusters"][0]["cluster"].update(fields)


@pytest.mark.decisive
async def test_valid_secret(scenario: Scenario) -> None:
    """A cluster with a kubeconfig that works is Active."""
    async with scenario() as fleet:
        assert fleet.active(1) == ("True", "Active", "Connected")


@pytest.mark.decisive
async def test_wrong_key(scenario: Scenario) -> None:
    """A Secret without the key `kubeconfig` is refused by name, and repaired by adding it."""
    async with scenario() as fleet:
        data = dig(fleet.manager.find(SECRET, SECRET_KEY) or {}, "data", "kubeconfig")
        renamed = {"data": {"kubeconfig": None, "config": data}}
        await fleet.manager.api.merge_patch(SECRET, SECRET_KEY, renamed)
        expected = ("False", "BadKubeConfig", FAILED + 'key "kubeconfig" not found in secret "worker1-secret"')
        await fleet.until(lambda: fleet.active(1) == expected)
        assert _cause(fleet) == Cause.KEY_MISSING

        await fleet.manager.api.merge_patch(SECRET, SECRET_KEY, {"data": {"kubeconfig": data}})
        await fleet.until(lambda: fleet.active(1)[0] == "True")


@pytest.mark.decisive
async def test_missing_secret_then_created(scenario: Scenario) -> None:
    """A cluster whose Secret comes later connects then."""
    async with scenario() as fleet:
        secret = fleet.manager.find(SECRET, SECRET_KEY) or {}
        await fleet.manager.api.delete(SECRET, SECRET_KEY)
        expected = ("False", "BadKubeConfig", FAILED + 'Secret "worker1-secret" not found')
        await fleet.until(lambda: fleet.active(1) == expected)
        assert _cause(fleet) == Cause.SECRET_MISSING

        kept = {"name": SECRET_KEY.name, "namespace": SECRET_KEY.namespace}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": kept, "data": secret["data"]}
        await fleet.manager.api.create(SECRET, body)
        await fleet.until(lambda: fleet.active(1)[0] == "True")
        assert _cause(fleet) == ""


@pytest.mark.decisive
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_user(tokenFile="/etc/token"), "tokenFile is not allowed"),
        (
            _cluster(**{"insecure-skip-tls-verify": True}),
            "insecure TLS verification is not allowed for cluster worker1",
        ),
        (
            _cluster(**{"certificate-authority": "/etc/ca"}),
            "certificate-authority file paths are not allowed, use certificate-authority-data for cluster worker1",
        ),
        (_cluster(server=""), "server URL is required for cluster worker1"),
        (_cluster(server="https://no_host:6443"), "untrusted server endpoint"),
        (_user(username="me", password="secret"), "basic auth is not allowed"),
        (_user(exec={"command": "sh", "apiVersion": "v1"}), "exec plugins are not allowed"),
        (_user(**{"auth-provider": {"name": "gcp"}}), "auth providers are not allowed"),
    ],
    ids=lambda value: value.partition(" ")[0] if isinstance(value, str) else "",
)
async def test_each_rejected_kubeconfig_field(scenario: Scenario, damage: Damage, message: str) -> None:
    """A kubeconfig that would be insecure is not used, the field is named, and mending it connects again."""
    async with scenario() as fleet:
        await _write(fleet, damage)
        await fleet.until(lambda: fleet.active(1) == ("False", "InsecureKubeConfig", FAILED + message))

        await _write(fleet, lambda document: None)
        await fleet.until(lambda: fleet.active(1)[0] == "True")


@pytest.mark.decisive
async def test_unparsable_kubeconfig(scenario: Scenario) -> None:
    """A kubeconfig that is no YAML is refused without showing any of it."""
    async with scenario() as fleet:
        await fleet.write_kubeconfig(1, "{token: my-secret")
        await fleet.until(lambda: fleet.active(1)[0] == "False")

        _, reason, message = fleet.active(1)
        assert reason in ("BadKubeConfig", "InsecureKubeConfig")
        assert message.startswith(FAILED)
        assert "my-secret" not in message


async def test_config_change_resets_attempts(scenario: Scenario) -> None:
    """A new kubeconfig is tried at once, however long the next attempt with the old one would be away."""
    async with scenario() as fleet:
        link = fleet.worker(1).link
        link.token = "canary-another"
        link.cut()
        await fleet.until(lambda: fleet.active(1)[0] == "False")
        await fleet.rest(300)
        before = anyio.current_time()
        await fleet.write_kubeconfig(1)
        await fleet.until(lambda: fleet.active(1)[0] == "True")

        assert anyio.current_time() - before < 1


async def test_watch_ends_without_status_flap(scenario: Scenario) -> None:
    """A watch that ends, as they do every half hour, is opened again without anybody being told."""
    async with scenario() as fleet:
        await fleet.rest(60)
        version = _version(fleet, 1)
        for _ in range(5):
            fleet.worker(1).link.cut()
            await fleet.rest(120)

        assert fleet.active(1) == ("True", "Active", "Connected")
        assert _version(fleet, 1) == version


async def test_two_clusters_one_hung(scenario: Scenario) -> None:
    """A worker that hangs costs a Workload offered to it one request's deadline, and those of the other nothing."""
    async with scenario() as fleet:
        fleet.worker(1).link.change(silent=True)
        await fleet.submit()
        await fleet.admit(2)
        await fleet.until(lambda: fleet.assigned == "worker2", seconds=DEADLINE + 5)
        await fleet.change_config(2)
        before = anyio.current_time()
        await fleet.submit("another")
        await fleet.assign(2)

        assert anyio.current_time() - before < 1


async def test_delete_cluster(scenario: Scenario) -> None:
    """A deleted cluster is asked nothing more, and offered nothing."""
    async with scenario() as fleet:
        await fleet.manager.api.delete(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1"))
        await fleet.rest(5)
        before = fleet.worker(1).link.requests.total()
        await fleet.submit(to=2)
        await fleet.rest(300)

        assert fleet.worker(1).link.requests.total() == before
        assert fleet.copy(1) is None


def _cause(fleet: Fleet) -> str:
    """What is wrong with the first worker's configuration, for programs."""
    facts = connection_facts(fleet.manager.find(MULTIKUEUE_CLUSTER, ObjectKey("", "worker1")) or {})
    return facts.cause if facts is not None else "nothing is known"


def _version(fleet: Fleet, number: int) -> str:
    cluster = fleet.manager.find(MULTIKUEUE_CLUSTER, ObjectKey("", f"worker{number}")) or {}
    return str(dig(cluster, "metadata", "resourceVersion"))
