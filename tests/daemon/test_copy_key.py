"""The key by which copies are marked: made once, shared by all replicas, and never told."""

from __future__ import annotations

import base64

import anyio
import pytest
from structlog.testing import capture_logs

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.sandbox.apiserver import ApiServer, DirectClient, Match, Refuse
from multikueued.run.copy_key import LENGTH, shared_key
from tests.runtime.fleet import server

KEY = ObjectKey("default", "multikueue-marks")


def a_secret(**data: str) -> Json:
    """The Secret, as somebody has made it."""
    metadata = {"namespace": KEY.namespace, "name": KEY.name}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, **({"data": data} if data else {})}


async def stored(manager: ApiServer) -> bytes:
    """The key in the Secret."""
    return base64.b64decode((await DirectClient(manager).get(SECRET, KEY))["data"]["key"])


async def test_the_first_start_makes_it_and_later_ones_read_it() -> None:
    manager = server("manager")
    first = await shared_key(DirectClient(manager), KEY)
    assert len(first) == LENGTH
    assert await stored(manager) == first
    assert await shared_key(DirectClient(manager), KEY) == first


async def test_an_empty_secret_is_filled() -> None:
    """The chart makes it, so that the daemon needs no permission to create Secrets."""
    manager = server("manager")
    await DirectClient(manager).create(SECRET, a_secret())
    manager.faults.add(Refuse(403), on=Match(verbs=("create",), resource="secrets"))
    assert await shared_key(DirectClient(manager), KEY) == await stored(manager)


@pytest.mark.parametrize("made", [True, False], ids=["an empty Secret", "none"])
@pytest.mark.looptime
async def test_of_several_that_start_at_once_all_get_the_same(made: bool) -> None:
    manager = server("manager")
    if made:
        await DirectClient(manager).create(SECRET, a_secret())
    keys: list[bytes] = []

    async def start() -> None:
        keys.append(await shared_key(DirectClient(manager), KEY))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(start)
    assert keys == [await stored(manager)] * 5


async def test_one_that_is_too_short_is_replaced() -> None:
    """It might be guessed."""
    manager = server("manager")
    await DirectClient(manager).create(SECRET, a_secret(key=base64.b64encode(b"short").decode()))
    assert len(await shared_key(DirectClient(manager), KEY)) == LENGTH


async def test_one_that_somebody_brings_is_used() -> None:
    manager = server("manager")
    await DirectClient(manager).create(SECRET, a_secret(key=base64.b64encode(b"0123456789abcdef").decode()))
    assert await shared_key(DirectClient(manager), KEY) == b"0123456789abcdef"


async def test_without_the_permission_it_works_with_a_key_of_its_own_and_tells() -> None:
    """Jobs are not held up by a role that lacks a line; see `marks.Proof.NONE` for what it costs."""
    manager = server("manager")
    manager.faults.add(Refuse(403), on=Match(resource="secrets"))
    with capture_logs() as logs:
        first, second = [await shared_key(DirectClient(manager), KEY) for _ in range(2)]
    assert first != second
    assert all(line["secret"] == "default/multikueue-marks" and "grant get and patch" in line["event"] for line in logs)


@pytest.mark.looptime
async def test_a_server_that_does_not_answer_is_asked_again() -> None:
    manager = server("manager")
    manager.faults.add(Refuse(500), on=Match(resource="secrets"), times=5)
    with capture_logs() as logs:
        assert await shared_key(DirectClient(manager), KEY) == await stored(manager)
    assert [line["log_level"] for line in logs] == ["warning", "info"]


async def test_it_is_not_logged() -> None:
    manager = server("manager")
    with capture_logs() as logs:
        key = await shared_key(DirectClient(manager), KEY)
    assert not any(told in str(logs) for told in (str(key), key.hex(), base64.b64encode(key).decode()))
