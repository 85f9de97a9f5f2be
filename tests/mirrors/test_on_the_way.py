"""A log of a run, asked for on the manager: through its API server, the endpoint, the worker's, and back."""

from __future__ import annotations

import ssl

import aiohttp
import pytest

from multikueue.core.model.kinds import JOB, POD
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, name_of
from multikueue.sandbox import Sandbox, SandboxOptions
from multikueue.testing import until
from tests.clients.__main__ import manifest
from tests.mirrors.sandboxes import mirrored

pytestmark = [pytest.mark.gate, pytest.mark.timeout(60)]


async def test_a_log_comes_all_the_way() -> None:
    """kubectl's own binary does so in `tests/integration/test_mirrors_in_a_sandbox.py`."""
    async with Sandbox(workers=1, options=SandboxOptions(pods=True, roles=True)) as sandbox, mirrored(sandbox):
        admin, server = sandbox.manager.client("admin"), sandbox.manager.server
        await admin.create(JOB, manifest("train", 2))

        async def ended() -> list[Json]:
            return [pod for pod in (await admin.list(POD)).items if dig(pod, "status", "phase") == "Succeeded"]

        await until(ended)
        (pod,) = await ended()
        trusted = ssl.create_default_context(cadata=server.ca_pem)
        headers = {"Authorization": f"Bearer {server.access.token_of('admin')}"}
        url = f"{server.url}/api/v1/namespaces/default/pods/{name_of(pod)}/log"
        async with aiohttp.ClientSession(headers=headers) as session, session.get(url, ssl=trusted) as response:
            lines = (await response.text()).splitlines()
    assert (response.status, lines[0], lines[-1]) == (200, "started", "ended with exit code 0")
