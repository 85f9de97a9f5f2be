"""Exec plugins that really run, against a real API server: certificates, tokens that end, and several of them."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
import pytest_asyncio
import trustme
import yaml

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import GVK, ObjectKey, Resource
from multikueue.errors import Unauthorized
from multikueue.kube import ClusterConfig, KubeClient
from multikueue.kube.credentials.authenticator import Authenticators
from multikueue.kube.credentials.exec_plugin import V1, ExecPlugin
from multikueue.protocols import WatchEvent
from multikueue.testing.waiting import background
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.credentials import ADMIN
from tests.daemon.workers.ground import KUEUE_NAMESPACE, ground, until
from tests.kube.scripted import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(120), pytest.mark.asyncio(loop_scope="module")]

MAPS = Resource(GVK("", "v1", "ConfigMap"), "configmaps")
RULE = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "delete"]}
READER = "reader"
CLIENTS = trustme.CA()
CAT = f"""#!{sys.executable}
import os, pathlib, sys
answer, then = sys.argv[1], sys.argv[1] + ".then"
again = os.path.exists(answer + ".runs")
with open(answer + ".runs", "a") as runs:
    runs.write(".")
print(pathlib.Path(then if again and os.path.exists(then) else answer).read_text())
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ControlPlane]:
    """A server that takes client certificates as well as tokens."""
    authority = tmp_path_factory.mktemp("clients") / "ca.pem"
    CLIENTS.cert_pem.write_to_path(authority)
    flags = [f"--client-ca-file={authority}"]
    async with ControlPlane("plugins", users={READER: [RULE]}, apiserver_flags=flags) as cluster:
        yield cluster


class Printer:
    """A plugin that prints what is in a file."""

    def __init__(self, folder: Path, **status: str) -> None:
        self.answer = folder / "answer"
        self.command = folder / "plugin"
        self.command.write_text(CAT)
        self.command.chmod(0o755)
        self.gives(**status)

    def gives(self, **status: str) -> None:
        """What it prints from now on."""
        self._write(self.answer, status)

    def then_gives(self, **status: str) -> None:
        """What it prints from its second run on."""
        self._write(Path(f"{self.answer}.then"), status)

    def _write(self, file: Path, status: dict[str, str]) -> None:
        file.write_text(json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status}))

    @property
    def runs(self) -> int:
        """How often it has run."""
        return len(Path(f"{self.answer}.runs").read_text())

    def config(self, plane: ControlPlane) -> ClusterConfig:
        """How a client reaches the server with it."""
        return ClusterConfig(
            plane.url, ca_pem=plane.ca_pem, exec_plugin=ExecPlugin(str(self.command), [str(self.answer)])
        )


def certificate(user: str, *, ended: bool = False) -> dict[str, str]:
    """A pair for a user, as a plugin prints it."""
    end = datetime.now(UTC) + timedelta(hours=-1 if ended else 1)
    made = CLIENTS.issue_cert(f"{user}@x", common_name=user, not_before=end - timedelta(days=1), not_after=end)
    chain = "".join(part.bytes().decode() for part in made.cert_chain_pems)
    return {"clientCertificateData": chain, "clientKeyData": made.private_key_pem.bytes().decode()}


async def test_a_user_of_a_client_certificate_may_do_what_it_may(plane: ControlPlane, tmp_path: Path) -> None:
    """The server knows the user by the certificate alone. The plugin runs once."""
    plugin = Printer(tmp_path, **certificate(READER))
    async with KubeClient(plugin.config(plane), name="w1") as client, anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(client.get, MAPS, ObjectKey("kube-system", "extension-apiserver-authentication"))
    assert plugin.runs == 1


async def test_a_certificate_that_has_ended_is_replaced_and_the_request_is_sent_once_more(
    plane: ControlPlane, tmp_path: Path
) -> None:
    """The server answers 401 to it, as to a token. What is created is created once."""
    plugin = Printer(tmp_path, **certificate(READER, ended=True))
    plugin.then_gives(**certificate(READER))
    named = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "once", "namespace": "default"}}
    async with KubeClient(plugin.config(plane), name="w1") as client:
        assert (await client.create(MAPS, named))["metadata"]["name"] == "once"
        assert (await client.get(MAPS, ObjectKey("default", "once")))["metadata"]["name"] == "once"
    assert plugin.runs == 2


async def test_a_token_that_ends_during_a_watch_is_replaced_at_its_next_start(
    plane: ControlPlane, tmp_path: Path
) -> None:
    """The watch goes on: the server looks at a token only when a request begins."""
    plugin = Printer(tmp_path, token=await plane.service_account("first", [RULE]))
    second = await plane.service_account("second", [RULE])
    seen: list[str] = []
    got = anyio.Event()

    def note(event: WatchEvent) -> None:
        seen.append(event.object["metadata"]["name"])
        got.set()

    async def watch(client: KubeClient, version: str) -> None:
        await client.watch(MAPS, note, resource_version=version, namespace="default")

    async def create(name: str) -> None:
        nonlocal got
        got = anyio.Event()
        named = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
        await plane.admin.create(named)
        await got.wait()

    async with KubeClient(plugin.config(plane), name="w1") as client:
        version = (await client.list(MAPS, namespace="default")).resource_version
        async with background() as tasks:
            tasks.start_soon(watch, client, version)
            await create("before")
            await plane.revoke("first")
            await create("after")
        assert plugin.runs == 1
        plugin.gives(token=second)
        async with background() as tasks:
            tasks.start_soon(watch, client, version)
            await create("again")
        assert plugin.runs == 2
    assert set(seen) == {"before", "after", "again"}


async def test_plugins_that_fail_or_hang_delay_no_other(plane: ControlPlane, tmp_path: Path) -> None:
    """Clients that share the authenticators; each bad one is told in one error, without what it printed."""
    plugins = Authenticators()
    made = {name: tmp_path / name for name in ("good", "half", "fails", "hangs")}
    for folder in made.values():
        folder.mkdir()
    half = certificate(READER)
    del half["clientKeyData"]
    good = Printer(made["good"], token=plane.token(READER))
    bad = {
        "half": (Printer(made["half"], **half), "exec plugin returned only certificate or key, not both"),
        "fails": (Printer(made["fails"], token="canary"), "failed with exit code 3"),
    }
    bad["fails"][0].command.write_text(f"#!{sys.executable}\nimport sys; print('canary'); sys.exit(3)")
    hangs = Printer(made["hangs"], token="canary")
    hangs.command.write_text(f"#!{sys.executable}\nimport time; time.sleep(600)")
    key = ObjectKey("kube-system", "extension-apiserver-authentication")

    async with (
        KubeClient(hangs.config(plane), name="hangs", plugins=plugins) as stuck,
        KubeClient(good.config(plane), name="good", plugins=plugins) as client,
        background() as tasks,
    ):
        tasks.start_soon(stuck.get, MAPS, key)
        await eventually(lambda: plugins.places.borrowed_tokens == 1)
        assert (await client.get(MAPS, key))["metadata"]["name"] == key.name
        for name, (plugin, words) in bad.items():
            async with KubeClient(plugin.config(plane), name=name, plugins=plugins) as other:
                with pytest.raises(Unauthorized, match=f"getting credentials: .*{words}") as caught:
                    await other.get(MAPS, key)
            assert "canary" not in str(caught.value)
        assert plugins.places.borrowed_tokens == 1


async def test_an_expired_certificate_in_a_kubeconfig_is_named_with_how_to_write_another(
    plane: ControlPlane, tmp_path: Path
) -> None:
    """The server says Unauthorized alone: doctor reads when it has ended. status may not read the Secret."""
    pair = certificate(READER, ended=True)
    user = {"client-certificate-data": encoded(pair["clientCertificateData"])}
    user["client-key-data"] = encoded(pair["clientKeyData"])
    kubeconfig = plane.kubeconfig(ADMIN)
    kubeconfig["users"][0]["user"] = user
    secret = {"data": {"kubeconfig": encoded(yaml.safe_dump(kubeconfig))}}
    async with ground(tmp_path, workers=1, joined=["worker1"]) as here:
        await here.manager.merge_patch(SECRET, ObjectKey(KUEUE_NAMESPACE, "worker1-kubeconfig"), secret)
        await until(lambda: here.cluster("worker1"), lambda cluster: "Unauthorized" in str(cluster.get("status")))
        told = {
            command: json.loads((await here.run(command, "-o", "json")).stdout)["findings"]
            for command in ("doctor", "status")
        }
    (by_doctor,), (by_status,) = told["doctor"], told["status"]
    assert by_doctor["id"] == "credentials-expire"
    assert by_doctor["why"].startswith("the client certificate expired at ")
    assert by_status["id"] == "bad-token"
    assert "its token or client certificate is wrong, expired or revoked" in by_status["why"]
    for finding in (by_doctor, by_status):
        assert "multikueue worker rotate worker1 --worker-context CONTEXT" in finding["remedy"]


def encoded(text: str) -> str:
    """As a Secret or a kubeconfig has it."""
    return base64.b64encode(text.encode()).decode()
