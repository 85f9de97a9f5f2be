"""The key by which copies are marked: made once, shared by all replicas, and never told."""

from __future__ import annotations

import base64

import anyio
import pytest
from structlog.testing import capture_logs

from multikueue.core.model.kinds import SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of
from multikueue.errors import SettingsError
from multikueue.sandbox.apiserver import ApiServer, DirectClient, Match, Refuse
from multikueued.reading.worker_access import key_in
from multikueued.remote.shared_key import LENGTH, shared_key
from tests.runtime.fleet import server

KEY = ObjectKey("default", "multikueue-marks")
ORIGIN = "multikueue"
USABLE = base64.b64encode(b"0123456789abcdef").decode()
NOTED = "multikueue.dev/origin"


def a_secret(**data: str) -> Json:
    """The Secret, as somebody has made it."""
    metadata = {"namespace": KEY.namespace, "name": KEY.name}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, **({"data": data} if data else {})}


async def stored(manager: ApiServer) -> bytes:
    """The key in the Secret."""
    return base64.b64decode((await DirectClient(manager).get(SECRET, KEY))["data"]["key"])


async def test_the_first_start_makes_it_and_later_ones_read_it() -> None:
    manager = server("manager")
    first = await shared_key(DirectClient(manager), KEY, ORIGIN)
    assert len(first) == LENGTH
    assert await stored(manager) == first
    assert await shared_key(DirectClient(manager), KEY, ORIGIN) == first


async def test_an_empty_secret_is_filled() -> None:
    """The chart makes it, so that the daemon needs no permission to create Secrets."""
    manager = server("manager")
    await DirectClient(manager).create(SECRET, a_secret())
    manager.faults.add(Refuse(403), on=Match(verbs=("create",), resource="secrets"))
    assert await shared_key(DirectClient(manager), KEY, ORIGIN) == await stored(manager)


@pytest.mark.parametrize("made", [True, False], ids=["an empty Secret", "none"])
@pytest.mark.looptime
async def test_of_several_that_start_at_once_all_get_the_same(made: bool) -> None:
    manager = server("manager")
    if made:
        await DirectClient(manager).create(SECRET, a_secret())
    keys: list[bytes] = []

    async def start() -> None:
        keys.append(await shared_key(DirectClient(manager), KEY, ORIGIN))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(start)
    assert keys == [await stored(manager)] * 5


async def test_one_that_is_too_short_is_replaced() -> None:
    """It might be guessed."""
    manager = server("manager")
    await DirectClient(manager).create(SECRET, a_secret(key=base64.b64encode(b"short").decode()))
    assert len(await shared_key(DirectClient(manager), KEY, ORIGIN)) == LENGTH


async def test_one_that_somebody_brings_is_used() -> None:
    manager = server("manager")
    await DirectClient(manager).create(SECRET, a_secret(key=USABLE))
    assert await shared_key(DirectClient(manager), KEY, ORIGIN) == b"0123456789abcdef"


async def test_without_the_permission_it_works_with_a_key_of_its_own_and_tells() -> None:
    """Jobs are not held up by a role that lacks a line; see `marks.Proof.NONE` for what it costs."""
    manager = server("manager")
    manager.faults.add(Refuse(403), on=Match(resource="secrets"))
    with capture_logs() as logs:
        first, second = [await shared_key(DirectClient(manager), KEY, ORIGIN) for _ in range(2)]
    assert first != second
    assert all(line["secret"] == "default/multikueue-marks" and "grant get and patch" in line["event"] for line in logs)


@pytest.mark.looptime
async def test_a_server_that_does_not_answer_is_asked_again() -> None:
    manager = server("manager")
    manager.faults.add(Refuse(500), on=Match(resource="secrets"), times=5)
    with capture_logs() as logs:
        assert await shared_key(DirectClient(manager), KEY, ORIGIN) == await stored(manager)
    assert [line["log_level"] for line in logs] == ["warning", "info"]


async def noted(manager: ApiServer) -> str | None:
    """The origin on the Secret."""
    return annotations_of(await DirectClient(manager).get(SECRET, KEY)).get(NOTED)


@pytest.mark.parametrize("data", [None, {}, {"key": USABLE}], ids=["no Secret", "an empty one", "of a former version"])
async def test_another_origin_than_the_one_before_is_refused(data: dict[str, str] | None) -> None:
    """Copies with the former one would not be seen: what they run would run once more, beside them."""
    manager = server("manager")
    if data is not None:
        await DirectClient(manager).create(SECRET, a_secret(**data))
    key = await shared_key(DirectClient(manager), KEY, "old")
    assert await noted(manager) == "old"
    assert await shared_key(DirectClient(manager), KEY, "old") == key
    with pytest.raises(SettingsError) as caught:
        await shared_key(DirectClient(manager), KEY, "new")
    command = f"kubectl annotate secret {KEY.name} -n {KEY.namespace} --overwrite {NOTED}=new"
    assert "set it to old again; or give this daemon another name, if another one uses this Secret" in str(caught.value)
    assert str(caught.value).endswith(f"or, once nothing runs on any worker: {command}")
    assert await noted(manager) == "old"

    await DirectClient(manager).merge_patch(SECRET, KEY, {"metadata": {"annotations": {NOTED: "new"}}})
    assert await shared_key(DirectClient(manager), KEY, "new") == key


async def test_a_key_that_may_only_be_read_is_used() -> None:
    manager = server("manager")
    await DirectClient(manager).create(SECRET, a_secret(key=USABLE))
    manager.faults.add(Refuse(403), on=Match(verbs=("patch",), resource="secrets"))
    with capture_logs() as logs:
        assert await shared_key(DirectClient(manager), KEY, ORIGIN) == await stored(manager)
    assert [line["event"] for line in logs] == ["the setting origin cannot be noted: grant patch"]


async def test_it_is_not_logged() -> None:
    manager = server("manager")
    with capture_logs() as logs:
        key = await shared_key(DirectClient(manager), KEY, ORIGIN)
    assert not any(text in str(logs) for text in (str(key), key.hex(), base64.b64encode(key).decode()))


@pytest.mark.parametrize("text", ["c2hvcnQ=", ""])
async def test_who_reads_one_that_cannot_be_used_logs_nothing(text: str) -> None:
    """Each request for a log said that the key is replaced, which the leader does."""
    with capture_logs() as logs:
        assert key_in(a_secret(key=text)) is None
    assert logs == []
    manager = server("manager")
    await DirectClient(manager).create(SECRET, a_secret(key=text))
    with capture_logs() as logs:
        assert await shared_key(DirectClient(manager), KEY, ORIGIN) == await stored(manager)
    assert [entry for entry in logs if entry["event"].startswith("the key is not usable")] == logs[:-1]
    assert len(logs) == 1 + bool(text)
