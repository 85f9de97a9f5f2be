"""kube-apiserver: one instance in front of one etcd."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import aiohttp
import anyio
import attrs

from tests.controlplane.api import Api
from tests.controlplane.credentials import Credentials
from tests.controlplane.errors import ControlPlaneError, ProcessEnded
from tests.controlplane.ports import free_port
from tests.controlplane.processes import ChildProcess

_READY_SECONDS = 90.0  # it takes 3 s; this is for a machine that does ten other things
_PORT_TRIES = 5


@attrs.define(eq=False)
class ApiServer:
    """TLS, static tokens, RBAC. The first start picks a port; later ones use it again."""

    binary: Path
    folder: Path
    credentials: Credentials
    etcd_url: str
    process: ChildProcess
    watch_cache: bool = True
    flags: Sequence[str] = ()
    """Further flags."""
    port: int | None = None

    @property
    def url(self) -> str:
        """The server's address; known once it was started."""
        if self.port is None:
            raise ControlPlaneError("The API server has no address yet: enter the control plane with `async with`.")
        return f"https://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start it and wait until `/readyz` says ok.

        Raises:
            ProcessEnded: it exited.
            NotReady: it is not ready in time.
        """
        kept = self.port
        for attempt in range(1, _PORT_TRIES + 1):
            self.port = kept or free_port()
            try:
                await self._start_once()
                return
            except ProcessEnded as error:
                if not error.port_taken or attempt == _PORT_TRIES:
                    raise
            await anyio.sleep(0.2)  # the port may be given back

    async def _start_once(self) -> None:
        await self.process.start([str(self.binary), *self._flags()])
        async with Api(self.url, self.credentials.ca_pem, self.credentials.admin_token) as admin:

            async def ready() -> bool:
                try:
                    # Only our own server has the certificate: another one on this port is never taken for it.
                    return (await admin.send("GET", "/readyz")).status == 200
                except aiohttp.ClientError:
                    return False

            await self.process.wait_until(ready, seconds=_READY_SECONDS)

    def _flags(self) -> list[str]:
        credentials = self.credentials
        return [
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={self.folder}",
            f"--etcd-servers={self.etcd_url}",
            "--etcd-compaction-interval=0",  # history ends when a test says so, not after five minutes
            f"--watch-cache={str(self.watch_cache).lower()}",
            f"--tls-cert-file={credentials.server_certificate}",
            f"--tls-private-key-file={credentials.server_key}",
            f"--token-auth-file={credentials.token_file}",
            "--authorization-mode=RBAC",
            f"--service-account-key-file={credentials.service_account_key}",
            f"--service-account-signing-key-file={credentials.service_account_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",  # no endpoints of the `kubernetes` service: the address is a loopback
            "--allow-privileged=true",
            *self.flags,
        ]
