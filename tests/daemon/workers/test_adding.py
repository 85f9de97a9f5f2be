"""`worker add` with odd contexts, on virtual time: what reaches the manager, and what is refused before a write."""

from __future__ import annotations

import base64
import contextlib
import copy
import functools
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
import yaml
from cryptography.hazmat.primitives.serialization import Encoding

from multikueue.core.machinery.connection_facts import ConnectionFacts, facts_status
from multikueue.core.model.conditions import condition
from multikueue.core.model.kinds import MULTIKUEUE_CLUSTER, MULTIKUEUE_CONFIG, NAMESPACE, SECRET
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.second_names import SecondName, second_name_status
from multikueue.errors import MultiKueueError, SettingsError
from multikueue.kube import ClusterConfig
from multikueue.kube.credentials.exec_plugin import ExecPlugin
from multikueue.testing import NOW, InMemoryCluster
from multikueue.webhook.certificates import ServerKeyPair, make_authority, pem
from multikueue.webhook.rotation import AUTHORITY_LIFETIME
from multikueued.exits import CommandError
from multikueued.rbac.objects import CLUSTER_ROLE
from multikueued.settings.config import Settings
from multikueued.workers.add import Joining, add
from multikueued.workers.addresses import authority_in
from multikueued.workers.logs_account import grant_logs
from multikueued.workers.objects import WorkerSide, multikueue_cluster, namespace_object
from multikueued.workers.places import ManagerAccess, decoded
from multikueued.workers.remove import remove_worker

pytestmark = pytest.mark.looptime
SIDE = WorkerSide()
OURS = make_authority("ours", NOW, AUTHORITY_LIFETIME)
NAMESPACE_OF_BOTH = namespace_object(SIDE.namespace)
NOW_TEXT = NOW.strftime("%Y-%m-%dT%H:%M:%SZ")
THEIRS = make_authority("theirs", NOW, AUTHORITY_LIFETIME)


@attrs.define(eq=False)
class Scene:
    """A manager on which the daemon is connected to all it is told of, and a worker that fills in tokens."""

    manager: InMemoryCluster
    worker: InMemoryCluster
    said: list[str] = attrs.field(factory=list)

    @classmethod
    async def make(cls) -> Scene:
        here = cls(InMemoryCluster("manager"), InMemoryCluster("oslo"))
        active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": NOW_TEXT}
        status: Json = {"status": {"conditions": [active]}}
        await here.manager.put(
            NAMESPACE_OF_BOTH, *({**multikueue_cluster(name), **status} for name in ("oslo", "rome"))
        )
        return here

    async def fill(self) -> None:
        """The token that a worker makes, before it is asked for."""
        await self.worker.put(NAMESPACE_OF_BOTH)
        fields = {"token": "its-token", "ca.crt": pem(THEIRS.certificate)}
        data = {field: base64.b64encode(text.encode()).decode() for field, text in fields.items()}
        await self.worker.put({**SIDE.token_secret(SIDE.token), "data": data})

    async def identify(self, is_manager: bool | None, *, second_of: str = "") -> None:
        """The daemon says which cluster the worker is, as far as it knows."""
        cluster = await self.manager.get(MULTIKUEUE_CLUSTER, "oslo")
        assert cluster is not None
        active = condition(cluster, "Active")
        facts_condition = facts_status(cluster, active, ConnectionFacts(is_manager=is_manager), NOW)
        second = second_name_status(cluster, SecondName(second_of, "uid"), NOW) if second_of else None
        status: Json = {"status": {"conditions": [*filter(None, (active, facts_condition, second))]}}
        client = self.manager.client()
        await client.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "oslo"), status, subresource="status")

    async def add(self, joining: Joining, worker: Any = None) -> None:
        access = ManagerAccess(self.manager.client(), Settings(namespace="kueue-system"), self.said.append)
        there: Any = worker or self.worker.client()
        await add(access, there, joining)

    async def kubeconfig(self) -> Json:
        """What the manager has of it."""
        stored = await self.manager.get(SECRET, "oslo-kubeconfig", "kueue-system")
        assert stored is not None
        document: Json = yaml.safe_load(decoded(stored, "kubeconfig"))
        return document


@attrs.frozen
class Oddly:
    """A client of a worker that answers with something else at one place of one kind."""

    client: Any
    resource: Resource
    path: tuple[Any, ...]
    odd: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    async def get(self, resource: Resource, key: ObjectKey) -> Any:
        return self._changed(resource, await self.client.get(resource, key))

    async def list(self, resource: Resource, **options: Any) -> Any:
        listed = await self.client.list(resource, **options)
        return attrs.evolve(listed, items=[self._changed(resource, obj) for obj in listed.items])

    def _changed(self, resource: Resource, obj: Json) -> Any:
        changed: Any = copy.deepcopy(obj)
        if resource == self.resource:
            *before, last = self.path
            functools.reduce(lambda value, step: value[step], before, changed)[last] = self.odd
        return changed


def joining(source: ClusterConfig | None = None, **options: object) -> Joining:
    plain = ClusterConfig("https://oslo.example.com", ca_pem=pem(OURS.certificate))
    return Joining("oslo", "admin@oslo", source or plain, **options)  # type: ignore[arg-type]


def with_key(authority: ServerKeyPair) -> str:
    """A file as some tools write it: the key stands behind the certificate."""
    return f"# made by hand\n{pem(authority.certificate)}{authority.key_pem}"


async def test_that_it_is_no_other_workers_cluster_is_known_once_it_is_connected(looptime: float) -> None:
    here = await Scene.make()
    await here.fill()
    await here.add(joining())
    assert looptime < 0.1
    assert not [line for line in here.said if "gets no jobs" in line]


async def test_nothing_of_the_callers_own_credentials_reaches_the_manager() -> None:
    here = await Scene.make()
    await here.fill()
    source = ClusterConfig(
        "https://oslo.example.com",
        ca_pem=with_key(OURS),
        token="the-callers",
        token_file="/var/the-callers",
        exec_plugin=ExecPlugin("the-callers", [], [], "client.authentication.k8s.io/v1", ""),
        client_cert_pem=pem(THEIRS.certificate),
        client_key_pem=THEIRS.key_pem,
        tls_server_name="inside.example.com",
        proxy="http://the-callers:secret@proxy.example.com:3128",
        headers=(("X-Remote-User", "the-callers"),),
    )
    await here.add(joining(source))
    document = await here.kubeconfig()
    assert document["users"] == [{"name": "multikueue", "user": {"token": "its-token"}}]
    cluster = document["clusters"][0]["cluster"]
    assert cluster.keys() == {"server", "tls-server-name", "certificate-authority-data"}
    assert base64.b64decode(cluster["certificate-authority-data"]).decode() == pem(OURS.certificate)
    assert [line for line in here.said if "leads through a proxy" in line]
    assert not [line for line in here.said if "secret" in line]


async def test_where_tls_was_not_verified_the_daemon_verifies_what_the_worker_says() -> None:
    here = await Scene.make()
    await here.fill()
    await here.add(joining(ClusterConfig("https://oslo.example.com", verify_tls=False)))
    cluster = (await here.kubeconfig())["clusters"][0]["cluster"]
    assert cluster.keys() == {"server", "certificate-authority-data"}
    assert base64.b64decode(cluster["certificate-authority-data"]).decode() == pem(THEIRS.certificate)
    warning = "context admin@oslo does not verify who answers"
    assert [line for line in here.said if line.startswith(warning)]
    named = joining(ClusterConfig("https://oslo.example.com", verify_tls=False), authority=pem(THEIRS.certificate))
    here.said.clear()
    await here.add(named)
    assert not [line for line in here.said if line.startswith(warning)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"server": "https://admin:hunter2@oslo.example.com"}, "has a user in it"),
        ({"server": "https://oslo.example.com/?token=hunter2"}, "must not have a query"),
        ({"server": "https://oslo.example.com#hunter2"}, "must not have a query"),
        ({"server": "https://exa mple"}, "untrusted server endpoint"),
        ({"source": ClusterConfig("https://oslo.example.com", ca_pem="hunter2")}, "its authority is no PEM"),
        ({"source": ClusterConfig("https://oslo.example.com", tls_server_name="hunter2\n")}, "tls-server-name"),
    ],
)
async def test_what_the_daemon_could_not_use_is_refused_before_anything_is_written(
    options: dict[str, object], words: str
) -> None:
    here = await Scene.make()
    with pytest.raises(CommandError, match=words) as caught:
        await here.add(joining(**options))  # type: ignore[arg-type]
    assert "hunter2" not in str(caught.value)
    assert here.said == []
    assert await here.worker.get(NAMESPACE, SIDE.namespace) is None
    assert await here.manager.get(SECRET, "oslo-kubeconfig", "kueue-system") is None
    assert await here.manager.get(MULTIKUEUE_CONFIG, "multikueue") is None


async def test_the_command_that_undoes_it_can_be_pasted_whatever_the_context_is_called() -> None:
    odd = attrs.evolve(joining(), context="oslo (old); $(reboot)")
    assert odd.undo == "multikueue worker remove oslo --worker-context 'oslo (old); $(reboot)'"


def test_of_a_file_with_authorities_the_certificates_count(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    broken = pem(THEIRS.certificate).rpartition("-----END")[0]  # without its end, and a key behind it
    file.write_text(with_key(OURS) + broken + with_key(THEIRS))
    assert authority_in(file) == pem(OURS.certificate) + pem(THEIRS.certificate)
    assert authority_in(None) == ""


def test_a_file_that_holds_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    for content in ("", OURS.key_pem, begin, f"{begin}\nhunter2\n{end}\n", f"{begin}\nAAAA\n{end}\n"):
        file.write_text(content)
        with pytest.raises(CommandError, match=r"--ca: .* is no PEM file with certificates") as caught:
            authority_in(file)
        assert "hunter2" not in str(caught.value)
    file.write_bytes(OURS.certificate.public_bytes(Encoding.DER))
    with pytest.raises(SettingsError, match="it is not UTF-8 text"):
        authority_in(file)


ODD: tuple[Any, ...] = (None, 1, [[]], {"a": 1})
"""What no API server puts there."""


@pytest.mark.parametrize(
    ("of", "path"),
    [
        ("role", ("rules",)),
        ("role", ("rules", 0)),
        ("role", ("rules", 0, "apiGroups")),
        ("role", ("rules", 0, "verbs", 0)),
        ("secret", ("metadata", "labels")),
        ("secret", ("metadata", "annotations")),
        ("secret", ("data", "ca.crt")),
        ("secret", ("data", "token")),
    ],
)
async def test_a_worker_that_answers_oddly_ends_no_command_by_a_failure_of_ours(of: str, path: tuple[Any, ...]) -> None:
    role = {"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": SIDE.role}}
    for odd in ODD:
        here = await Scene.make()
        await here.fill()
        await here.worker.put({**role, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]})
        resource = CLUSTER_ROLE if of == "role" else SECRET
        worker: Any = Oddly(here.worker.client(), resource, path, odd)
        with contextlib.suppress(MultiKueueError):
            await here.add(attrs.evolve(joining(), timeout=1.0), worker)


async def test_that_it_is_another_workers_cluster_is_told_once_the_daemon_knows_it() -> None:
    """The daemon's first question for the cluster's UID had failed: it was told to nobody."""
    here = await Scene.make()
    await here.fill()
    await here.identify(None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(here.add, joining())
        await anyio.sleep(10)
        await here.identify(is_manager=False, second_of="rome")
    assert [line for line in here.said if "oslo gets no jobs: it leads to the same cluster as rome" in line]


@pytest.mark.parametrize("rules", ["none", [3], [{"verbs": 5}], [{"verbs": [None, {}]}], [{"verbs": ["get"]}]])
async def test_a_role_of_any_form_is_no_traceback_for_who_is_given_logs(rules: Any) -> None:
    here = await Scene.make()
    await here.fill()
    side = attrs.evolve(SIDE, account="multikueue-logs")
    authority = base64.b64encode(pem(THEIRS.certificate).encode()).decode()
    token = {**side.token_secret(side.token), "data": {"token": "dA==", "ca.crt": authority}}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": side.role}}
    await here.worker.put(token, {**role, "rules": []})
    client: Any = here.worker.client()
    access = ManagerAccess(here.manager.client(), Settings(namespace="kueue-system"), here.said.append)
    given = attrs.evolve(joining(), side=side)
    await grant_logs(access, Oddly(client, CLUSTER_ROLE, ("rules",), rules), given, "multikueue")
    assert any("which reads pods and logs" in line for line in here.said)


async def test_a_secret_that_another_name_of_the_cluster_needs_is_not_to_be_deleted() -> None:
    """What removes a second name said of the Secret of both: delete it yourself."""
    here = await Scene.make()
    await here.fill()
    await here.add(joining())
    client = here.manager.client()
    again = {"clusterSource": {"kubeConfig": {"locationType": "Secret", "location": "oslo-kubeconfig"}}}
    await client.merge_patch(MULTIKUEUE_CLUSTER, ObjectKey("", "rome"), {"spec": again})
    access = ManagerAccess(client, Settings(namespace="kueue-system"), here.said.append)
    await remove_worker(access, "rome", timeout=0.0, force=True, worker=None, side=SIDE)
    assert "manager: Secret kueue-system/oslo-kubeconfig is that of oslo, too, and stays" in here.said
    assert await here.kubeconfig()


@attrs.frozen
class MadeAnew:
    """A client of a manager on which somebody makes each MultiKueueCluster anew, just before it is deleted."""

    client: Any
    manager: InMemoryCluster

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    async def delete(self, resource: Resource, key: ObjectKey, **options: Any) -> Any:
        if resource == MULTIKUEUE_CLUSTER:
            await self.client.delete(resource, key)
            await self.manager.put(multikueue_cluster(key.name))
        return await self.client.delete(resource, key, **options)


async def test_a_worker_that_is_made_anew_while_it_is_removed_stays() -> None:
    """Its jobs may take long to end: what has its name by then was never asked about."""
    here = await Scene.make()
    client: Any = MadeAnew(here.manager.client(), here.manager)
    access = ManagerAccess(client, Settings(namespace="kueue-system"), here.said.append)

    with pytest.raises(CommandError, match="MultiKueueCluster rome: it was made anew meanwhile, and stays"):
        await remove_worker(access, "rome", timeout=0.0, force=True, worker=None, side=SIDE)

    assert await here.manager.get(MULTIKUEUE_CLUSTER, "rome") is not None
