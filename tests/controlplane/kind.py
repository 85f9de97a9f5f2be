"""Clusters of the `kind` CLI, for people who have Docker.

Never run by the project's own CI, which has no Docker: the commands are kind's, docker's, kubectl's and etcdctl's
documented ones, but nobody has tried this module there yet.
"""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Mapping, Sequence

import aiohttp
import anyio
import attrs
import yaml

from multikueue.core.model.names import Json
from tests.controlplane.api import Api
from tests.controlplane.crds import establish
from tests.controlplane.credentials import ADMIN
from tests.controlplane.errors import ControlPlaneError
from tests.controlplane.interface import Cluster
from tests.controlplane.polling import poll_until

_READY_SECONDS = 120.0
_MANIFEST = "kube-apiserver.yaml"
_ADMIN_ACCOUNT = "tests-admin"
_ETCDCTL = (
    "etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/kubernetes/pki/etcd/ca.crt "
    "--cert=/etc/kubernetes/pki/etcd/server.crt --key=/etc/kubernetes/pki/etcd/server.key"
)


@attrs.define(eq=False)
class KindCluster(Cluster):
    """A one-node kind cluster `multikueue-NAME`.

    One that is there already is used and stays; otherwise it is made and deleted. It always has a controller manager,
    and real pods. All users are service accounts.
    """

    controller_manager: bool = attrs.field(default=True, kw_only=True)
    users: Mapping[str, Sequence[Json]] = attrs.field(factory=dict, kw_only=True, repr=False)
    crds: Sequence[Json] = attrs.field(default=(), kw_only=True, repr=False)
    _config: Json = attrs.field(factory=dict, init=False, repr=False)

    @property
    def url(self) -> str:
        """The API server's address on this machine: the same after a restart."""
        return str(self._config["server"])

    @property
    def ca_pem(self) -> str:
        """The certificate authority to trust."""
        return base64.b64decode(self._config["certificate-authority-data"]).decode()

    async def kill_apiserver(self) -> None:
        """Take its manifest away, so that the kubelet does not start it again, and kill it."""
        await self._in_node(f"mv /etc/kubernetes/manifests/{_MANIFEST} /etc/kubernetes/; pkill -KILL kube-apiserver")

    async def start_apiserver(self) -> None:
        """Put the manifest back; return when it is ready."""
        await self._in_node(f"mv /etc/kubernetes/{_MANIFEST} /etc/kubernetes/manifests/")
        otherwise = f"The API server of {self._kind_name} was not ready after {_READY_SECONDS:g} s."
        await poll_until(self._is_ready, seconds=_READY_SECONDS, otherwise=otherwise, interval=0.5)

    async def pause_apiserver(self) -> None:
        """Freeze it. The kubelet's liveness probe kills it after about 80 s."""
        await self._in_node("pkill -STOP kube-apiserver")

    async def resume_apiserver(self) -> None:
        """Let it go on."""
        await self._in_node("pkill -CONT kube-apiserver")

    async def compact(self) -> None:
        """Compact etcd and restart the API server; see `ControlPlane.compact` for why."""
        etcdctl = f"kubectl -n kube-system exec etcd-{self._node} -- {_ETCDCTL}"
        status = json.loads(await self._in_node(f"{etcdctl} endpoint status -w json"))
        await self._in_node(f"{etcdctl} compact {status[0]['Status']['header']['revision']}")
        await self.restart_apiserver()

    @property
    def _kind_name(self) -> str:
        return f"multikueue-{self.name}"

    @property
    def _node(self) -> str:
        return f"{self._kind_name}-control-plane"

    async def _start(self) -> None:
        if self._kind_name not in (await _run("kind", "get", "clusters")).split():
            self._stack.push_async_callback(_run, "kind", "delete", "cluster", "--name", self._kind_name)
            await _run("kind", "create", "cluster", "--name", self._kind_name, "--wait", f"{_READY_SECONDS:g}s")
        config = yaml.safe_load(await _run("kind", "get", "kubeconfig", "--name", self._kind_name))
        self._config = config["clusters"][0]["cluster"]
        self._static_tokens = {ADMIN: await self._admin_token()}
        self._admin = await self._stack.enter_async_context(self.api(ADMIN))
        await establish(self._admin, self.crds)
        for user, rules in self.users.items():
            await self.service_account(user, rules)

    async def _read_static_tokens(self) -> None:
        raise ControlPlaneError(f"The administrator's token of {self._kind_name} cannot be revoked.")

    async def _admin_token(self) -> str:
        account = f"kubectl -n kube-system create serviceaccount {_ADMIN_ACCOUNT}"
        binding = (
            f"kubectl create clusterrolebinding {_ADMIN_ACCOUNT} --clusterrole=cluster-admin "
            f"--serviceaccount=kube-system:{_ADMIN_ACCOUNT}"
        )
        for command in (account, binding):
            await self._in_node(f"{command} --dry-run=client -o yaml | kubectl apply -f -")
        return (await self._in_node(f"kubectl -n kube-system create token {_ADMIN_ACCOUNT} --duration=24h")).strip()

    async def _is_ready(self) -> bool:
        try:
            async with Api(self.url, self.ca_pem, self.token()) as client:
                return (await client.send("GET", "/readyz")).status == 200
        except aiohttp.ClientError:
            return False

    async def _in_node(self, script: str) -> str:
        environment = "KUBECONFIG=/etc/kubernetes/admin.conf"
        return await _run("docker", "exec", "--env", environment, self._node, "sh", "-c", script)


async def _run(*command: str) -> str:
    try:
        with anyio.fail_after(2 * _READY_SECONDS):
            result = await anyio.run_process(command, check=False)
    except FileNotFoundError:
        raise ControlPlaneError(f"`{command[0]}` is not installed; the kind provider needs it.") from None
    if result.returncode != 0:
        raise ControlPlaneError(f"`{shlex.join(command)}` failed: {result.stderr.decode().strip()}")
    return result.stdout.decode()
