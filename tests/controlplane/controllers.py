"""kube-controller-manager: real Jobs, garbage collection and namespaces that go away."""

from __future__ import annotations

from pathlib import Path

import attrs

from tests.controlplane.api import Api
from tests.controlplane.credentials import Credentials
from tests.controlplane.processes import ChildProcess

# What a job cluster's behaviour needs; the rest of some forty controllers would only cost start-up time.
CONTROLLERS = (
    "serviceaccount-controller",  # pods need their namespace's `default` service account
    "clusterrole-aggregation-controller",  # `view`, `edit`, `admin` are empty without it
    "job-controller",
    "ttl-after-finished-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "replicaset-controller",
    "deployment-controller",
    "statefulset-controller",
    "endpointslice-controller",  # who waits for a Service to have an endpoint
)
_READY_SECONDS = 60.0


@attrs.define(eq=False)
class ControllerManager:
    """One kube-controller-manager, as its own user, with a service account per controller."""

    binary: Path
    credentials: Credentials
    kubeconfig: Path
    process: ChildProcess
    flags: tuple[str, ...] = ()
    """Further flags."""

    async def start(self, admin: Api) -> None:
        """Start it and wait until its controllers work: until the first service account is there.

        Raises:
            ProcessEnded: it exited.
            NotReady: it does nothing in time.
        """
        await self.process.start([str(self.binary), *self._flags()])

        async def ready() -> bool:
            return (await admin.send("GET", "/api/v1/namespaces/default/serviceaccounts/default")).status == 200

        await self.process.wait_until(ready, seconds=_READY_SECONDS)

    def _flags(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
            f"--controllers={','.join(CONTROLLERS)}",
            "--use-service-account-credentials=true",  # each controller has only its own rights, as in a real cluster
            f"--service-account-private-key-file={self.credentials.service_account_key}",
            f"--root-ca-file={self.credentials.ca_file}",
            "--leader-elect=false",  # there is only one
            "--secure-port=0",  # nobody asks it anything, so no port to race for
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            *self.flags,
        ]
