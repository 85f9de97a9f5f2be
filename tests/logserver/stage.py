"""A manager with roles, two workers, the logs server, and a front proxy that calls it with a client certificate."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import attrs
import orjson
import trustme

from multikueue.core.model.kinds import CONFIG_MAP, JOB, SECRET, WORKLOAD
from multikueue.core.model.names import GVK, Json, ObjectKey, Resource
from multikueue.kube import parse_worker_kubeconfig
from multikueue.sandbox.apiserver import ApiServer, DirectClient, Refuse
from multikueue.testing.waiting import until
from multikueued.api_answers import GROUP, VERSION
from multikueued.api_server.running import Options, running
from multikueued.rbac.objects import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, Account, logs_worker_objects
from multikueued.serving.caller_tls import CONFIG_KEY
from multikueued.settings.config import Settings
from tests.integration.permissions import NotGranted, granted
from tests.remote.test_on_servers import Fleet, fleet

HOST: Final = "127.0.0.1"
NAMESPACE: Final = "multikueue"
KEY: Final = b"k" * 32
PROXY: Final = "front-proxy-client"
TENANT: Final = "system:serviceaccount:default:tenant"
BASE: Final = f"/apis/{GROUP}/{VERSION}"
FINDINGS: Final = ObjectKey("kueue-system", "findings-of-this-daemon")
LEASE_OF_DAEMON: Final = ObjectKey("kueue-system", "lease-of-this-daemon")
LOGS: Final = "multikueue-logs"
"""The server's user on workers."""
LOG: Final = f"{BASE}/namespaces/default/remotejobs/job.train/log"
_NAMESPACES: Final = Resource(GVK("", "v1", "Namespace"), "namespaces", namespaced=False)


def pem(authority: trustme.CA) -> str:
    return authority.cert_pem.bytes().decode()


def config_map(authority: trustme.CA, **changed: str) -> Json:
    """What kube-apiserver writes of its front proxy."""
    data = {
        "requestheader-client-ca-file": pem(authority),
        "requestheader-allowed-names": json.dumps([PROXY]),
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        **changed,
    }
    metadata = {"namespace": CONFIG_KEY.namespace, "name": CONFIG_KEY.name}
    return {"apiVersion": CONFIG_MAP.gvk.api_version, "kind": "ConfigMap", "metadata": metadata, "data": data}


def secret(name: str, namespace: str, **data: bytes) -> Json:
    encoded = {field: base64.b64encode(value).decode() for field, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": encoded}


@attrs.define(eq=False)
class Stage:
    fleet: Fleet
    port: int
    serving: trustme.CA
    proxies: trustme.CA
    options: Options

    @property
    def admin(self) -> DirectClient:
        return self.fleet.person.admin

    def tls(self, name: str | None = PROXY, authority: trustme.CA | None = None) -> ssl.SSLContext:
        """A client's side, with a certificate of that name; None: without one."""
        context = ssl.create_default_context(cadata=pem(self.serving))
        if name is not None:
            (authority or self.proxies).issue_cert(common_name=name).configure_cert(context)
        return context

    @asynccontextmanager
    async def asking(
        self, path: str = LOG, *, user: str = TENANT, tls: ssl.SSLContext | None = None, accept: str = "", **query: str
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A request as the front proxy sends it."""
        headers = {"X-Remote-User": user, "X-Remote-Group": "system:authenticated"} if user else {}
        headers |= {"Accept": accept} if accept else {}
        url = f"https://{HOST}:{self.port}{path}"
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, headers=headers, params=query, ssl=tls or self.tls()) as response,
        ):
            yield response

    @asynccontextmanager
    async def another(self) -> AsyncIterator[Stage]:
        """A second replica."""
        async with running(self.options) as port:
            yield attrs.evolve(self, port=port)

    async def is_believed(self) -> bool:
        """Whether the server knows the authority of the front proxy."""
        try:
            return (await self.ask(BASE))[0] == 200
        except aiohttp.ClientError:
            return False

    async def ask(self, path: str = LOG, **options: Any) -> tuple[int, str]:
        """The status and the whole body."""
        async with self.asking(path, **options) as response:
            return response.status, await response.text()

    async def refused(self, path: str = LOG, **options: Any) -> tuple[int, str]:
        """The code and the message of an error, as API servers have them."""
        status, text = await self.ask(path, **options)
        answer = json.loads(text)
        assert (answer["kind"], answer["code"]) == ("Status", status)
        return status, answer["message"]

    async def again(self, local: Json) -> Json:
        """Delete a job with its Workload and make both again, as in a namespace that is made again."""
        job = await self.admin.get(JOB, ObjectKey("default", "train"))
        for resource, obj in ((WORKLOAD, local), (JOB, job)):
            await self.admin.merge_patch(resource, ObjectKey.of(obj), {"metadata": {"finalizers": None}})
            await self.admin.delete(resource, ObjectKey.of(obj))
        return await self.fleet.person.submit(offered=False, cluster="worker1")

    async def grant(self, user: str = TENANT, *names: str, resources: tuple[str, ...] = ("remotejobs/log",)) -> None:
        """Let a service account read logs, perhaps of these jobs alone, or other resources."""
        name = user.rpartition(":")[2]
        rule = {"apiGroups": [GROUP], "resources": [*resources], "verbs": ["get"], "resourceNames": [*names]}
        if resources != ("remotejobs/log",):
            rule["verbs"] = ["get", "list", "watch"]
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
        subject = {"kind": "ServiceAccount", "namespace": "default", "name": name}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        await self.admin.create(CLUSTER_ROLE, {**role, "kind": "ClusterRole", "rules": [rule]})
        bound = {**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]}
        await self.admin.create(CLUSTER_ROLE_BINDING, bound)

    async def revoke(self, user: str) -> None:
        """Take what `grant` gave."""
        await self.admin.delete(CLUSTER_ROLE_BINDING, ObjectKey("", user.rpartition(":")[2]))


@asynccontextmanager
async def stage(folder: Path, **options: Any) -> AsyncIterator[Stage]:
    """Everything, with a tenant who may read the logs of all jobs."""
    serving, proxies = trustme.CA(), trustme.CA()
    certificate = serving.issue_cert(HOST)
    (folder / "tls.crt").write_bytes(b"".join(part.bytes() for part in certificate.cert_chain_pems))
    (folder / "tls.key").write_bytes(certificate.private_key_pem.bytes())
    async with fleet(folder) as here:
        here.mark_key = KEY
        manager = here.person.server
        manager.access.enforce_roles()
        await here.person.admin.create(_NAMESPACES, {"metadata": {"name": NAMESPACE}, **_kind(_NAMESPACES)})
        mirrors = options.get("mirrors")
        callers = {"client-ca-file": pem(proxies)} if mirrors is not None else {}
        said = config_map(proxies, **callers)["data"]
        await here.person.admin.merge_patch(CONFIG_MAP, CONFIG_KEY, {"data": said})
        if mirrors is not None:
            for obj in (
                secret(mirrors.mirrors_secret, str(mirrors.namespace), key=KEY),
                secret(mirrors.mirrors_certificate_secret, str(mirrors.namespace)),
            ):
                await here.person.admin.create(SECRET, obj)
        await here.person.admin.create(SECRET, secret("multikueue-marks", "kueue-system", key=KEY))
        for name, worker in here.workers.items():
            kubeconfig = orjson.dumps(as_granted(worker, mirrors))
            await here.person.admin.create(SECRET, secret(f"logs-{name}", NAMESPACE, kubeconfig=kubeconfig))
        chosen = Options(
            manager=parse_worker_kubeconfig(orjson.dumps(manager.kubeconfig("admin"))),
            namespace=NAMESPACE,
            workers={name: f"logs-{name}" for name in here.workers},
            findings=FINDINGS,
            lease=LEASE_OF_DAEMON,
            marks=ObjectKey("kueue-system", "multikueue-marks"),
            origin="multikueue",
            service="multikueue-logs",
            cert_dir=str(folder),
            address=HOST,
            port=0,
        )
        chosen = attrs.evolve(chosen, **options)
        async with running(chosen) as port:
            made = Stage(here, port, serving, proxies, chosen)
            await until(lambda: _is_ready(made))
            await made.grant()
            yield made


def as_granted(worker: ApiServer, mirrors: Settings | None = None) -> Json:
    """The server's kubeconfig for a worker, where it may do what `multikueue rbac logs-worker` prints and no more."""
    assert worker.access.tokens is not None
    worker.access.tokens["logs-token"] = LOGS
    objects = logs_worker_objects(mirrors or Settings(), "logs", Account("logs", "logs"))
    rules = granted(rule for obj in objects for rule in obj.get("rules", ()))
    worker.faults.add(Refuse(403), on=NotGranted(user=LOGS, granted=rules))
    return worker.kubeconfig(LOGS)


def _kind(resource: Resource) -> Json:
    return {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind}


async def _is_ready(made: Stage) -> bool:
    status, _ = await made.ask("/readyz", tls=made.tls(None))
    return status == 200
