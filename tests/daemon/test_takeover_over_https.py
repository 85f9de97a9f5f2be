"""From OCM's addon to the daemon, over HTTPS: both finalizers, servers trusted by their own certificate, a plugin."""

from __future__ import annotations

import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import attrs
import pytest
import trustme

from multikueue.core.inventory.names import ADDON_FINALIZER, FINALIZER, MANAGED_SERVICE_ACCOUNT
from multikueue.core.model.conditions import is_true
from multikueue.core.model.kinds import ADMISSION_CHECK, JOB, MULTIKUEUE_CLUSTER
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.kube import ClusterConfig
from multikueue.sandbox import Sandbox, SandboxOptions
from multikueue.sandbox.apiserver.serving.server import ServerTls
from multikueue.testing import job
from multikueue.testing.waiting import background
from multikueued.rbac.objects import manager_objects
from multikueued.rbac.rules import RBAC_GROUP
from multikueued.run.daemon import work
from multikueued.settings.config import Settings
from multikueued.settings.file import parse_settings
from tests.daemon.test_spokes_over_https import ACCOUNT, ROLE, ROLE_BINDING, prepare, when

pytestmark = pytest.mark.timeout(120)

PLACED = ObjectKey("", "placed")
PLUGIN = """#!{python}
import base64, json, os, ssl, sys, urllib.request

asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])["spec"]["cluster"]["config"]["clusterName"]
if "SECRET_OF_THE_DAEMON" in os.environ:
    sys.exit("variables of the daemon reach the plugin")
trusting = ssl.create_default_context(cafile=os.environ["HUB_CA"])
trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
host, port = (os.environ[f"KUBERNETES_SERVICE_{{part}}"] for part in ("HOST", "PORT"))
url = f"https://{{host}}:{{port}}/api/v1/namespaces/kueue-system/secrets/{{asked}}-multikueue"
request = urllib.request.Request(url, headers={{"Authorization": "Bearer " + open(os.environ["HUB_TOKEN"]).read()}})
found = json.load(urllib.request.urlopen(request, context=trusting))
print(json.dumps({{
    "apiVersion": "client.authentication.k8s.io/v1",
    "kind": "ExecCredential",
    "status": {{"token": base64.b64decode(found["data"]["token"]).decode()}},
}}))
"""
"""What OCM's `cp-creds` does: it asks the hub that it finds by the variables which every pod has."""
SETTINGS = """
namespace: kueue-system
serving: {{bindAddress: 127.0.0.1, port: 0}}
multiKueue:
  clusterProfile:
    accessProviders:
    - name: open-cluster-management
      execConfig:
        apiVersion: client.authentication.k8s.io/v1
        command: {folder}/plugin
        env: [{{name: HUB_CA, value: {folder}/ca.crt}}, {{name: HUB_TOKEN, value: {folder}/token}}]
        provideClusterInfo: true
ocm:
  enabled: true
  adopt: {adopt}
  clusters: {{source: clusterProfile}}
  clusterPermissions: {{enabled: true}}
"""


def issue_a_leaf(host: str) -> ServerTls:
    """A server whose certificate is all that its clients are given, as a ManagedCluster's `caBundle` may be."""
    certificate = trustme.CA().issue_cert(host, "localhost")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    return ServerTls(context, certificate.cert_chain_pems[0].bytes().decode())


@attrs.define(eq=False)
class Hub:
    """A hub on which OCM's addon has run, and what a daemon there needs."""

    sandbox: Sandbox
    folder: Path

    def settings(self, adopt: str) -> Settings:
        return parse_settings(SETTINGS.format(folder=self.folder, adopt=adopt))

    @asynccontextmanager
    async def daemon(self, adopt: str) -> AsyncIterator[None]:
        server = self.sandbox.manager.server
        config = ClusterConfig(server.url, ca_pem=server.ca_pem or "", token=(self.folder / "token").read_text())
        async with background() as tasks:
            tasks.start_soon(work, self.settings(adopt), config)
            yield

    async def until(self, finalizers: list[str], *, conflict: bool) -> None:
        """Wait until the check has these finalizers, and says that the addon still runs, or does not."""
        admin = self.sandbox.manager.client("admin")
        with anyio.fail_after(60):
            while True:
                check = await admin.get(ADMISSION_CHECK, PLACED)
                if (
                    dig(check, "metadata", "finalizers") == finalizers
                    and is_true(check, "PlacementConflict") is conflict
                ):
                    return
                await anyio.sleep(0.05)


async def leave_as_the_addon_does(hub: Hub) -> None:
    """Its mark on the check, and an account that lives for a year on each cluster."""
    admin = hub.sandbox.manager.client("admin")
    await admin.merge_patch(ADMISSION_CHECK, PLACED, {"metadata": {"finalizers": [ADDON_FINALIZER]}})
    for name in hub.sandbox.workers:
        account: Json = {
            "apiVersion": MANAGED_SERVICE_ACCOUNT.gvk.api_version,
            "kind": MANAGED_SERVICE_ACCOUNT.gvk.kind,
            "metadata": {"name": "multikueue", "namespace": name},
            "spec": {"rotation": {"enabled": True, "validity": "8640h"}},
        }
        await admin.create(MANAGED_SERVICE_ACCOUNT, account)


async def grant_secrets(hub: Hub) -> None:
    """What an administrator grants for a plugin that reads Secrets with the daemon's account."""
    admin = hub.sandbox.manager.client("admin")
    metadata, group = {"name": "plugin", "namespace": ACCOUNT.namespace}, {"apiGroup": RBAC_GROUP}
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
    own: Json = {"apiVersion": f"{RBAC_GROUP}/v1", "metadata": metadata}
    await admin.create(ROLE, {**own, "kind": "Role", "rules": rules})
    subjects = [{"kind": "ServiceAccount", "name": ACCOUNT.name, "namespace": ACCOUNT.namespace}]
    ref = {**group, "kind": "Role", "name": "plugin"}
    await admin.create(ROLE_BINDING, {**own, "kind": "RoleBinding", "roleRef": ref, "subjects": subjects})


async def test_from_the_addon_to_the_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused beside the addon, taken over after it, stopped when it comes back, and gone when the check is deleted."""
    monkeypatch.setattr(ServerTls, "issue", staticmethod(issue_a_leaf))
    options = SandboxOptions(ocm=True, join=False, roles=True)
    async with Sandbox(workers=2, options=options) as sandbox:
        hub, server, admin = Hub(sandbox, tmp_path), sandbox.manager.server, sandbox.manager.client("admin")
        await prepare(admin, manager_objects(hub.settings("addon"), "multikueue", ACCOUNT))
        await leave_as_the_addon_does(hub)
        await grant_secrets(hub)
        (tmp_path / "plugin").write_text(PLUGIN.format(python=sys.executable))
        (tmp_path / "plugin").chmod(0o755)
        (tmp_path / "ca.crt").write_text(server.ca_pem or "")
        token = server.access.issuer.issue(ACCOUNT.namespace, ACCOUNT.name, {})["status"]["token"]
        (tmp_path / "token").write_text(token)
        host, port = server.url.removeprefix("https://").split(":")
        for name, value in {"SERVICE_HOST": host, "SERVICE_PORT": port}.items():
            monkeypatch.setenv(f"KUBERNETES_{name}", value)
        monkeypatch.setenv("SECRET_OF_THE_DAEMON", "1")

        async with hub.daemon("none"):
            await hub.until([ADDON_FINALIZER], conflict=True)

        async with hub.daemon("addon"):
            for name in sandbox.workers:
                await when(admin, MULTIKUEUE_CLUSTER, ObjectKey("", name), "Active")
            await hub.until([FINALIZER], conflict=False)
            await admin.create(JOB, job("train"))
            await when(admin, JOB, ObjectKey("default", "train"), "Complete")
            for name in sandbox.workers:
                account = await admin.get(MANAGED_SERVICE_ACCOUNT, ObjectKey(name, "multikueue"))
                assert account["spec"]["rotation"]["validity"] == "168h0m0s"

            both = {"metadata": {"finalizers": [FINALIZER, ADDON_FINALIZER]}}
            await admin.merge_patch(ADMISSION_CHECK, PLACED, both)
            await anyio.sleep(1)
            await admin.merge_patch(ADMISSION_CHECK, PLACED, both)
            await hub.until([FINALIZER, ADDON_FINALIZER], conflict=True)
            await admin.merge_patch(ADMISSION_CHECK, PLACED, {"metadata": {"finalizers": [FINALIZER]}})
            await hub.until([FINALIZER], conflict=False)
