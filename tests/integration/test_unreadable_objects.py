"""Objects of a real API server that our parser refuses: each is found, and the others of its kind go on."""

from __future__ import annotations

import anyio
import orjson
import pytest

from multikueue.core.model.names import Json, ObjectKey
from multikueue.kube import Informer, KubeClient
from multikueue.kube.requests import Request
from multikueue.testing import running
from tests.controlplane.crds import establish
from tests.integration.planes import Planes, connection
from tests.kube.deep_objects import DEEP, DEFINITION, GADGET, gadget, key
from tests.kube.scripted import eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="session")]

NESTED_LISTS = b"[" * 3600 + b"]" * 3600
"""As deep in 7 KB. Lists are atomic, so `managedFields` do not nest as deep."""


async def send(client: KubeClient, method: str, obj: Json, value: bytes) -> None:
    """Create or replace an object with such a value, which our client cannot encode either."""
    path = "/apis/example.com/v1/namespaces/default/gadgets"
    body = orjson.dumps(obj).replace(b'"here"', value)
    target = path if method == "POST" else f"{path}/{obj['metadata']['name']}"
    verb = "create" if method == "POST" else "update"
    await client._exchange.fetch(Request(verb, GADGET, method, target, body), 1 << 24)


def known(informer: Informer) -> tuple[list[str], list[str]]:
    """The names of those that can be read, and of those that cannot."""
    unreadable = sorted(one.name for one in list(informer.unreadable.outlines.keys()))
    return sorted(one.name for one in list(informer.keys()) if one.name not in unreadable), unreadable


@pytest.mark.parametrize("value", [DEEP, NESTED_LISTS], ids=["objects", "lists"])
async def test_a_deeply_nested_object_leaves_the_others_readable(planes: Planes, value: bytes) -> None:
    worker = planes.workers["worker1"]
    async with KubeClient(connection(worker.kubeconfig()), name="worker1") as client:
        await establish(worker.admin, [DEFINITION])
        for number in range(30):
            made = gadget(f"g{number:02}")
            await (send(client, "POST", made, value) if number in (7, 8, 29) else client.create(GADGET, made))
        informer = Informer(client, GADGET, keeps_unreadable=True)
        async with running(informer.run):
            with anyio.fail_after(60):
                await informer.wait_synced()
            odd = ["g07", "g08", "g29"]
            sound = [f"g{number:02}" for number in range(30) if f"g{number:02}" not in odd]
            assert known(informer) == (sound, odd)
            # by an event, while it is watched
            await send(client, "PUT", await client.get(GADGET, key("g00")), value)
            await client.create(GADGET, gadget("later"))
            await eventually(lambda: known(informer) == ([*sound[1:], "later"], ["g00", *odd]), within=30)
            # mended, and gone
            await client.merge_patch(GADGET, key("g07"), {"spec": None})
            for name in ("g00", "g08", "g29"):
                await client.delete(GADGET, ObjectKey("default", name))
            await eventually(lambda: known(informer) == (sorted([*sound[1:], "g07", "later"]), []), within=30)
            assert (informer.status.lists, informer.status.failures) == (1, 0)
        for name in [one.name for one in list(informer.keys())]:
            await client.delete(GADGET, ObjectKey("default", name))
