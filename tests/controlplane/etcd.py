"""etcd: the data of one control plane."""

from __future__ import annotations

import base64
from pathlib import Path

import aiohttp
import attrs

from multikueue.core.model.names import Json
from tests.controlplane.processes import ChildProcess

_READY_SECONDS = 30.0  # it takes 0.3 s; this is for a machine that does ten other things
_NOWHERE = "http://127.0.0.1:1"  # etcd insists on advertising host and port; nobody follows it
_OUTSIDE = base64.b64encode(b"/outside/compacted").decode()  # the API server's keys begin with /registry


@attrs.define(eq=False)
class Etcd:
    """One etcd on a Unix socket in `folder`: no port to race for, and nobody else can read it."""

    binary: Path
    folder: Path
    process: ChildProcess

    @property
    def url(self) -> str:
        """What kube-apiserver's `--etcd-servers` takes."""
        return f"unix://{self._socket}"

    async def start(self) -> None:
        """Start it and wait until it serves.

        Raises:
            ProcessEnded: it exited.
            NotReady: it does not serve in time.
        """
        name = self.folder.name
        command = [
            str(self.binary),
            f"--name={name}",
            f"--data-dir={self.folder / 'data'}",
            f"--listen-client-urls={self.url}",
            f"--listen-peer-urls=unix://{self.folder / 'peer'}",
            f"--advertise-client-urls={_NOWHERE}",
            f"--initial-advertise-peer-urls={_NOWHERE}",
            f"--initial-cluster={name}={_NOWHERE}",
            "--unsafe-no-fsync",  # the data need not survive the machine, only a killed API server
            "--log-level=warn",
        ]
        await self.process.start(command)
        await self.process.wait_until(self._healthy, seconds=_READY_SECONDS)

    async def compact(self) -> int:
        """Forget every revision but the newest of each key; return the revision from which history starts.

        It is a new revision: who has seen everything that Kubernetes ever wrote is behind it, too.
        """
        written = await self._call("/v3/kv/put", {"key": _OUTSIDE, "value": ""})
        revision = int(written["header"]["revision"])
        await self._call("/v3/kv/compaction", {"revision": str(revision), "physical": True})
        return revision

    @property
    def _socket(self) -> Path:
        return self.folder / "etcd"

    async def _healthy(self) -> bool:
        try:
            async with self._session() as session, session.get("/health") as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False

    async def _call(self, path: str, body: Json) -> Json:
        async with self._session() as session, session.post(path, json=body) as response:
            response.raise_for_status()
            answer: Json = await response.json()
            return answer

    def _session(self) -> aiohttp.ClientSession:
        timeout = aiohttp.ClientTimeout(total=10)
        connector = aiohttp.UnixConnector(str(self._socket))
        return aiohttp.ClientSession("http://etcd", connector=connector, timeout=timeout)
