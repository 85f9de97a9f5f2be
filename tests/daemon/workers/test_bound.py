"""Workers with bound tokens: added, renewed by the real daemon without a lost connection, rotated and removed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import attrs
import pytest
import yaml

from multikueue.core.model.conditions import condition, is_true
from multikueue.core.model.kinds import CONFIG_MAP, EVENT, SECRET
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import annotations_of
from multikueue.errors import NotFound
from multikueue.kube import load_kubeconfig, parse_worker_kubeconfig
from multikueue.sandbox.apiserver import Match, Refuse
from multikueue.sandbox.setting_up import set_up_queues
from multikueued.doctor import publisher
from multikueued.rbac.objects import ROLE, ROLE_BINDING, SERVICE_ACCOUNT
from multikueued.reports.workers import digest_in_use
from multikueued.run.daemon import work
from multikueued.run.leadership import Leadership
from multikueued.settings.config import LeaderElectionSettings
from multikueued.settings.sections import BoundTokenSettings
from multikueued.tokens.bound import EXPIRES, ISSUED, bound_in, claims_of
from multikueued.workers import renewal
from multikueued.workers.connection_wait import digest_of
from multikueued.workers.places import decoded
from multikueued.workers.tokens import token_in
from tests.daemon.workers.ground import KUEUE_NAMESPACE, SETTINGS, Ground, ground, until

pytestmark = pytest.mark.timeout(120)

BOUND = attrs.evolve(SETTINGS, bound_tokens=BoundTokenSettings(enabled=True))
KEY = ObjectKey(KUEUE_NAMESPACE, "worker1-kubeconfig")
CREATES = ("system:serviceaccount:kueue-system:multikueue", "create")
ROLE_KEY = ObjectKey(KUEUE_NAMESPACE, "kueue-system-multikueue")


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewal, "INTERVAL", 0.2)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The daemon's settings, for the commands."""
    made = tmp_path / "settings.yaml"
    made.write_text(yaml.safe_dump({"namespace": KUEUE_NAMESPACE, "boundTokens": {"enabled": True}}))
    return made


async def join(here: Ground, file: Path, *more: str) -> str:
    await set_up_queues(here.worker("worker1"), {"cpu": "4"})
    options = ("--outside", "--bound", "--config-file", str(file), *more)
    return await here.done("worker", "add", "worker1", "--worker-context", "worker1", *options)


async def age(here: Ground, by: timedelta, key: ObjectKey = KEY) -> None:
    """Make the token seem older, for whoever decides when to renew it."""
    secret = await here.manager.get(SECRET, key)
    moved = {
        name: (datetime.fromisoformat(annotations_of(secret)[name]) - by).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for name in (ISSUED, EXPIRES)
    }
    await here.manager.merge_patch(SECRET, key, {"metadata": {"annotations": moved}})


async def renewed(here: Ground, before: Json) -> Json:
    async def look() -> Json:
        return await here.manager.get(SECRET, KEY)

    return await until(look, lambda secret: token_in(secret) != token_in(before))


async def warned(here: Ground, words: str) -> Json:
    async def look() -> list[Json]:
        events = (await here.manager.list(EVENT)).items
        return [event for event in events if event["reason"] == "TokenNotRenewed" and words in event["note"]]

    return (await until(look))[0]


async def in_use(here: Ground, secret: Json) -> None:
    """Wait until the daemon uses the kubeconfig of a Secret."""
    wanted = digest_of(decoded(secret, "kubeconfig").encode())

    async def look() -> str:
        return digest_in_use(await here.cluster("worker1"))

    await until(look, lambda places: places == wanted)


async def test_it_is_renewed_before_it_ends_and_the_connection_stays(tmp_path: Path, file: Path) -> None:
    async with ground(tmp_path, workers=1, settings=BOUND) as here:
        said = await join(here, file, "--life", "20m")
        assert "the daemon renews it" in said
        before = await here.manager.get(SECRET, KEY)
        bound = bound_in(before)
        assert bound is not None
        assert (bound.life, bound.holder) == (timedelta(minutes=20), "multikueue-bound")
        claims = claims_of(token_in(before))
        assert claims["exp"] - claims["iat"] == 1200
        since = (condition(await here.cluster("worker1"), "Active") or {})["lastTransitionTime"]

        await age(here, timedelta(minutes=17))
        after = await renewed(here, before)
        await in_use(here, after)

        fresh = bound_in(after)
        assert fresh is not None
        assert fresh.life == timedelta(minutes=20)
        assert not fresh.is_due(datetime.now(UTC))
        active = condition(await here.cluster("worker1"), "Active") or {}
        assert (active["status"], active["lastTransitionTime"]) == ("True", since)
        await here.submit("first")
        await until(here.runs_on, lambda places: places == {"first": ["worker1"]})


@pytest.mark.gate
async def test_the_same_command_again_keeps_the_token(tmp_path: Path, file: Path) -> None:
    async with ground(tmp_path, workers=1, settings=BOUND) as here:
        await join(here, file)
        before = await here.manager.get(SECRET, KEY)
        await join(here, file)
        await here.done("worker", "add", "worker1", "--worker-context", "worker1", "--outside")  # stays bound
        after = await here.manager.get(SECRET, KEY)
        assert before["data"] == after["data"]
        assert bound_in(before) == bound_in(after)


@pytest.mark.gate
async def test_the_account_asks_for_tokens_of_itself_alone(tmp_path: Path, file: Path) -> None:
    async with ground(tmp_path, workers=1, settings=BOUND) as here:
        await join(here, file)
        rules = (await here.worker("worker1").get(ROLE, ROLE_KEY))["rules"]
        own = {"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]}
        assert rules == [{**own, "resourceNames": ["multikueue"]}]


@pytest.mark.gate
async def test_a_refused_request_warns_with_the_remedy_and_the_end_and_goes_on_once_granted(
    tmp_path: Path, file: Path
) -> None:
    async with ground(tmp_path, workers=1, settings=BOUND) as here:
        await join(here, file)
        await here.worker("worker1").delete(ROLE_BINDING, ROLE_KEY)
        before = await here.manager.get(SECRET, KEY)
        await age(here, timedelta(days=6))
        event = await warned(here, "let the account ask for tokens of itself")
        aged = bound_in(await here.manager.get(SECRET, KEY))
        assert aged is not None
        assert f"its token ends at {aged.until} and was not renewed" in event["note"]
        assert event["regarding"]["name"] == "worker1"
        assert is_true(await here.cluster("worker1"), "Active")
        assert token_in(await here.manager.get(SECRET, KEY)) == token_in(before)

        await here.done("worker", "rotate", "worker1", "--worker-context", "worker1", "--config-file", str(file))
        after = bound_in(await here.manager.get(SECRET, KEY))
        assert after is not None
        assert not after.is_due(datetime.now(UTC))


@pytest.mark.gate
async def test_a_manager_that_may_not_be_written_is_told_too(tmp_path: Path, file: Path) -> None:
    async with ground(tmp_path, workers=1, settings=BOUND) as here:
        await join(here, file)
        faults = here.sandbox.manager.server.faults
        faults.add(Refuse(403), on=Match(user="multikueue", verbs=("patch",), resource="secrets"))
        await age(here, timedelta(days=6))
        await warned(here, "let the daemon patch that Secret")


@pytest.mark.gate
async def test_a_daemon_that_does_not_renew_says_when_the_token_ends(tmp_path: Path, file: Path) -> None:
    async with ground(tmp_path, workers=1) as here:
        await join(here, file)
        await age(here, timedelta(days=6))
        await warned(here, "nobody renews it: set boundTokens.enabled: true")


@pytest.mark.gate
async def test_rotation_makes_the_old_tokens_void_at_once(tmp_path: Path, file: Path) -> None:
    async with ground(tmp_path, workers=1, settings=BOUND) as here:
        await join(here, file)
        server = here.sandbox.workers["worker1"].server
        old = token_in(await here.manager.get(SECRET, KEY))
        assert server.access.user_of(old) == "system:serviceaccount:kueue-system:multikueue"
        said = await here.done("worker", "rotate", "worker1", "--worker-context", "worker1", "--config-file", str(file))
        assert "Secret kueue-system/multikueue-bound is deleted, its token void" in said
        assert server.access.user_of(old) is None
        assert server.access.user_of(token_in(await here.manager.get(SECRET, KEY))) is not None


async def test_a_worker_with_a_token_that_does_not_end_gets_a_bound_one(tmp_path: Path, file: Path) -> None:
    async with ground(tmp_path, workers=1, settings=BOUND, joined=["worker1"]) as here:
        again = ("worker", "add", "worker1", "--worker-context", "worker1", "--outside", "--bound")
        assert "worker rotate worker1 --bound" in await here.refused(*again, "--config-file", str(file))
        old = token_in(await here.manager.get(SECRET, KEY))
        options = ("--bound", "--config-file", str(file))
        said = await here.done("worker", "rotate", "worker1", "--worker-context", "worker1", *options)
        assert "Secret kueue-system/multikueue-token is deleted, its token void" in said
        assert here.sandbox.workers["worker1"].server.access.user_of(old) is None
        assert bound_in(await here.manager.get(SECRET, KEY)) is not None


async def test_removal_leaves_nothing_of_it(tmp_path: Path, file: Path) -> None:
    async with ground(tmp_path, workers=2, settings=BOUND) as here:
        await join(here, file)
        await here.join("worker2")
        error = await here.refused("worker", "remove", "wroker1", "--worker-context", "worker1")
        assert 'the daemon reaches MultiKueueCluster "worker1" by the account of that context' in error
        await here.done("worker", "remove", "worker1", "--worker-context", "worker1")
        there = here.worker("worker1")
        for resource in (SECRET, ROLE, ROLE_BINDING, SERVICE_ACCOUNT):
            left = (await there.list(resource, namespace=KUEUE_NAMESPACE)).items
            assert [secret["metadata"]["name"] for secret in left if "multikueue" in secret["metadata"]["name"]] == []


@pytest.mark.parametrize(
    ("settings", "options", "words"),
    [
        ({}, (), "the daemon renews it only with boundTokens.enabled: true"),
        ({"enabled": True, "secretNames": ["other"]}, (), "does not list worker1-kubeconfig"),
        ({"enabled": True}, ("--life", "5m"), "API servers give tokens for 10m or more"),
    ],
)
@pytest.mark.gate
async def test_what_nobody_would_renew_is_refused_before_anything_is_written(
    tmp_path: Path, settings: Json, options: tuple[str, ...], words: str
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump({"namespace": KUEUE_NAMESPACE, "boundTokens": settings}))
    async with ground(tmp_path, workers=1, daemon=False) as here:
        add = (
            "worker",
            "add",
            "worker1",
            "--worker-context",
            "worker1",
            "--outside",
            "--bound",
            "--config-file",
            str(file),
        )
        assert words in await here.refused(*add, *options)
        assert (await here.worker("worker1").list(SECRET)).items == []


@pytest.mark.gate
async def test_the_doctor_says_when_it_ends_also_without_the_secret(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "TICK", 0.2)
    async with ground(tmp_path, workers=1, settings=BOUND) as here:
        await join(here, file)

        async def published() -> bool:
            try:
                await here.manager.get(CONFIG_MAP, ObjectKey(KUEUE_NAMESPACE, "multikueue-findings"))
            except NotFound:
                return False
            return True

        await until(published)
        logged = []
        for _ in range(2):
            result = await here.run("doctor", "--json", "--config-file", str(file))
            logged.append(
                [finding["why"] for finding in json.loads(result.stdout)["findings"] if finding["id"] == "bound-token"]
            )
            here.sandbox.manager.server.faults.add(Refuse(403), on=Match(user="admin", resource="secrets"))
        assert logged[0] == logged[1]
        assert "the daemon renews it from " in logged[0][0]


@pytest.mark.gate
async def test_who_signed_another_address_is_named_or_the_worker_tells(tmp_path: Path, file: Path) -> None:
    """Here the worker does not: it has no ConfigMap kube-root-ca.crt."""
    async with ground(tmp_path, workers=1, daemon=False) as here:
        server = here.sandbox.workers["worker1"].server
        options = ("--server", "https://oslo.example.com", "--bound", "--config-file", str(file), "--timeout", "1s")
        add = ("worker", "add", "worker1", "--worker-context", "worker1", *options)
        assert "names no authority: give it with --ca" in await here.refused(*add)
        named = tmp_path / "ca.pem"
        named.write_text(server.ca_pem or "")
        assert "is not connected after 1 s" in await here.refused(*add, "--ca", str(named))
        metadata = {"name": "kube-root-ca.crt", "namespace": KUEUE_NAMESPACE}
        root = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca.crt": server.ca_pem}}
        await here.worker("worker1").create(CONFIG_MAP, root)
        assert "is not connected after 1 s" in await here.refused(*add)
        stored = decoded(await here.manager.get(SECRET, KEY), "kubeconfig").encode()
    config = parse_worker_kubeconfig(stored)
    assert (config.server, config.ca_pem) == ("https://oslo.example.com", server.ca_pem)


@pytest.mark.gate
async def test_it_is_not_for_gitops(tmp_path: Path) -> None:
    async with ground(tmp_path, workers=1, daemon=False) as here:
        result = await here.run("worker", "add", "worker1", "--worker-context", "worker1", "--bound", "--print")
        assert result.exit_code == 2
        assert "--bound is not for --print" in result.output


@pytest.mark.gate
async def test_only_the_leader_renews(tmp_path: Path, file: Path) -> None:
    """Two replicas: the one without the Lease has no caches, and asks no worker."""
    settings = attrs.evolve(BOUND, leader_election=LeaderElectionSettings())
    async with ground(tmp_path, workers=1, settings=settings) as here:
        standby = Leadership(elected=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work, settings, load_kubeconfig(tmp_path / "daemon"), standby)
            await join(here, file)
            before = await here.manager.get(SECRET, KEY)
            await age(here, timedelta(days=6))
            await in_use(here, await renewed(here, before))
            asked = here.sandbox.workers["worker1"].server.requests
            created = {resource: count for (user, verb, resource), count in asked.items() if (user, verb) == CREATES}
            assert standby.manager is None
            assert created["serviceaccounts"] == 1
            tasks.cancel_scope.cancel()
