"""Logs through the aggregated API, over HTTPS: what is shown, to whom, and what is not."""

from __future__ import annotations

import json
from pathlib import Path

import aiohttp
import anyio
import pytest
import trustme
from structlog.testing import capture_logs

from multikueue.core.model.kinds import CONFIG_MAP, SECRET
from multikueue.core.model.names import ObjectKey
from multikueue.core.model.objects import uid
from multikueue.kube import ClientOptions
from multikueue.sandbox.apiserver import Hang, Match
from multikueue.testing.waiting import until
from multikueued.api_answers import NOTE, WHOLE
from multikueued.logserver import access, reading, resolving
from multikueued.logserver.access import Slots
from multikueued.logserver.reading import Bounds
from multikueued.rbac.objects import CLUSTER_ROLE_BINDING
from multikueued.serving import caller_tls
from multikueued.serving.caller_tls import CONFIG_KEY
from multikueued.serving.refusal import RefusedError
from tests.logserver.stage import BASE, HOST, LOG, LOGS, NAMESPACE, PROXY, TENANT, Stage, config_map, secret, stage

LINES = ["started", "step 1", "step 2", "ended with exit code 0"]


async def test_a_tenant_reads_the_log_of_a_job(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        _, copy = await here.fleet.run_with_pod()
        await here.fleet.pod("train-b", copy)
        with capture_logs() as logged:
            status, text = await here.ask(tailLines="4", timestamps="true")
            everything = await here.ask(allPods="true", tailLines="1")
            second = await here.ask(pod="train-b", tailLines="1")
        limited = await here.ask(limitBytes="10")
        foreign = await here.ask(pod="somebody-elses")

    (note, *lines) = text.splitlines()
    assert status == 200
    assert note.startswith(f"{NOTE}2 pods; this is the log of train-a")
    assert [line.partition(" ")[2] for line in lines] == LINES
    assert lines[0].startswith("2026-01-01T00:00:00")
    assert everything == (200, "[worker1/train-a] ended with exit code 0\n[worker1/train-b] ended with exit code 0\n")
    assert second == (200, "ended with exit code 0\n")
    assert (foreign[0], "the job has no pod " in foreign[1]) == (404, True)
    assert "\nstarted\nst\n" in limited[1]
    audit = [line for line in logged if line["event"] == "log read"]
    assert [(line["user"], line["namespace"], line["job"], line["worker"], line["code"]) for line in audit] == [
        (TENANT, "default", "job.train", "worker1", 200)
    ] * 3
    assert audit[0]["bytes"] == len(text)
    assert "step" not in json.dumps(audit)


async def test_kubectl_finds_the_api(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        groups = json.loads((await here.ask("/apis", user="system:kube-aggregator"))[1])
        group = json.loads((await here.ask("/apis/remote.multikueue.dev"))[1])
        resources = json.loads((await here.ask(BASE))[1])
        unknown = await here.ask(f"{BASE}/namespaces/default/remotepods")

    assert groups["groups"][0]["name"] == group["name"] == "remote.multikueue.dev"
    assert group["preferredVersion"]["version"] == "v1alpha1"
    assert {resource["name"]: resource["verbs"] for resource in resources["resources"]} == {
        "remotejobs": ["get", "list", "watch"],
        **{f"remotejobs/{part}": ["get"] for part in ("log", "pods", "events", "explain")},
        "fleet": ["get"],
        **{name: ["list"] for name in (*WHOLE, "remotenamespaces")},
    }
    assert unknown[0] == 404


class TestWhoIsBelieved:
    async def test_a_forged_user_without_a_certificate_is_nobody(self, tmp_path: Path) -> None:
        async with stage(tmp_path) as here:
            await here.fleet.run_job()
            for path in (LOG, BASE, "/apis"):
                assert (await here.refused(path, tls=here.tls(None)))[0] == 401
            assert (await here.ask("/healthz", tls=here.tls(None)))[0] == 200

    async def test_a_certificate_with_a_name_that_is_not_allowed_is_nobodys(self, tmp_path: Path) -> None:
        async with stage(tmp_path) as here:
            await here.fleet.run_job()
            assert (await here.refused(tls=here.tls("kubelet")))[0] == 401
            assert (await here.refused(user=""))[0] == 401

    async def test_a_certificate_of_another_authority_ends_the_handshake(self, tmp_path: Path) -> None:
        async with stage(tmp_path) as here:
            with pytest.raises(aiohttp.ClientError):
                await here.ask(tls=here.tls(PROXY, trustme.CA()))

    @pytest.mark.parametrize(("path", "code"), [(BASE, 200), (f"{BASE}/fleet", 403)])
    async def test_a_connection_of_an_earlier_authority_counts_no_more(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, code: int
    ) -> None:
        """Who could sign the front proxy's certificate before may have been taken off the list because it leaked."""
        monkeypatch.setattr(caller_tls, "INTERVAL", 0.1)
        url, headers = f"https://{HOST}:{{}}{path}", {"X-Remote-User": TENANT}
        async with stage(tmp_path) as here, aiohttp.ClientSession(headers=headers) as session:
            kept, place = here.tls(), url.format(here.port)
            async with session.get(place, ssl=kept) as first:
                assert first.status == code
                await first.read()
            here.proxies = trustme.CA()
            changed = {"data": config_map(here.proxies)["data"]}
            await here.admin.merge_patch(CONFIG_MAP, CONFIG_KEY, changed)
            await until(here.is_believed)
            async with session.get(place, ssl=kept) as again:
                assert (again.status, again.headers["Retry-After"]) == (503, "1")
            with pytest.raises(aiohttp.ClientError):
                await session.get(place, ssl=kept)  # it was closed, and a new one is not made

    async def test_strangers_do_not_fill_the_log(self, tmp_path: Path) -> None:
        async with stage(tmp_path) as here:
            with capture_logs() as logged:
                for _ in range(5):
                    await here.ask(tls=here.tls(None))
        assert len([line for line in logged if line["event"] == "log read"]) == 1


class TestWhoMay:
    async def test_a_user_without_the_permission_is_refused(self, tmp_path: Path) -> None:
        async with stage(tmp_path) as here:
            await here.fleet.run_with_pod()
            code, words = await here.refused(user="system:serviceaccount:default:other")
            lists = here.fleet.workers["worker1"].requests[LOGS, "list", "pods"]

        assert code == 403
        assert 'cannot get resource "remotejobs/log" in API group "remote.multikueue.dev"' in words
        assert lists == 0

    async def test_one_who_may_read_one_job_reads_no_other(self, tmp_path: Path) -> None:
        other = "system:serviceaccount:default:other"
        async with stage(tmp_path) as here:
            await here.grant(other, "job.train")
            await here.fleet.run_with_pod()
            assert (await here.ask(user=other))[0] == 200
            assert (await here.refused(LOG.replace("job.train", "jobs.train"), user=other))[0] == 403
            assert (await here.refused(LOG.replace("job.train", "workload.train"), user=other))[0] == 403

    async def test_a_manager_that_does_not_say_opens_nothing(self, tmp_path: Path) -> None:
        async with stage(tmp_path) as here:
            await here.fleet.run_job()
            here.fleet.person.server.faults.partition("reset")
            assert (await here.refused())[0] == 503


class TestWhatIsShown:
    async def test_a_foreign_pod_of_the_same_name_is_not(self, tmp_path: Path) -> None:
        async with stage(tmp_path) as here:
            await here.fleet.run_job()
            await here.fleet.pod("train-a", None)
            code, words = await here.refused()
        assert (code, words) == (404, 'job/train has no pods on worker cluster "worker1" yet')

    async def test_the_run_of_an_earlier_namespace_is_not(self, tmp_path: Path) -> None:
        """The namespace was made again, and with it a job of the same name: its Workload has another UID."""
        async with stage(tmp_path) as here:
            local, _ = await here.fleet.run_with_pod()
            made = await here.again(local)
            code, words = await here.refused()
        assert uid(made) != uid(local)
        assert (code, "is being created" in words) == (404, True)

    async def test_a_second_origins_copy_is_not(self, tmp_path: Path) -> None:
        async with stage(tmp_path) as here:
            here.fleet.mark_key = b"o" * 32
            _, copy = await here.fleet.run_job(origin="other-manager")
            await here.fleet.pod("train-a", copy)
            assert (await here.refused())[0] == 404

    async def test_an_unmarked_copy_with_our_label_is_not(self, tmp_path: Path) -> None:
        """Anybody on the worker can make one. The daemon believes it where it is recorded; no tenant is shown it."""
        async with stage(tmp_path) as here:
            here.fleet.mark_key = b"forged" * 6
            await here.fleet.run_with_pod()
            assert (await here.refused())[0] == 404

    @pytest.mark.parametrize("name", ["train", "job.other", "cronjob.train", "job.", ".train", "job.Train"])
    async def test_what_names_no_job_is_not_found(self, tmp_path: Path, name: str) -> None:
        async with stage(tmp_path) as here:
            await here.fleet.run_job()
            assert (await here.refused(LOG.replace("job.train", name)))[0] == 404

    @pytest.mark.parametrize("query", [{"pod": "../web"}, {"worker": "w"}, {"follow": "x"}, {"tailLines": "-1"}])
    async def test_no_worker_can_be_named_and_no_path_for_a_pod(self, tmp_path: Path, query: dict[str, str]) -> None:
        async with stage(tmp_path) as here:
            assert (await here.refused(**query))[0] == 400


class TestWorkers:
    async def test_one_that_hangs_holds_up_nobody(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(resolving, "OPTIONS", ClientOptions(deadline=1.0, connection_wait=1.0))
        async with stage(tmp_path) as here:
            local, _ = await here.fleet.run_with_pod()
            here.fleet.workers["worker1"].faults.add(Hang(), on=Match(user=LOGS))
            answers = []

            async def ask() -> None:
                answers.append(await here.refused())

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await until(lambda: here.fleet.workers["worker1"].requests[LOGS, "list", "jobs.batch"])
                assert (await here.ask(BASE))[0] == 200
                assert answers == []
            await here.fleet.move(local, "worker2")
            moved = await here.fleet.copy(local, "worker2")
            await here.fleet.pod("train-a", moved, "worker2")
            assert (await here.ask())[0] == 200
        assert answers == [(503, 'worker cluster "worker1" does not answer')]

    async def test_one_without_credentials_is_told_without_an_address(self, tmp_path: Path) -> None:
        async with stage(tmp_path, workers={"worker2": "logs-worker2"}) as here:
            await here.fleet.run_job()
            assert await here.refused() == (
                503,
                'this server has no credentials for worker cluster "worker1": ask an operator to add them',
            )

    async def test_credentials_are_read_anew_for_each_request(self, tmp_path: Path) -> None:
        async with stage(tmp_path) as here:
            await here.fleet.run_with_pod()
            key = ObjectKey(NAMESPACE, "logs-worker1")
            kept = await here.admin.get(SECRET, key)
            await here.admin.merge_patch(SECRET, key, {"data": secret("x", "y", kubeconfig=b"{}")["data"]})
            assert (await here.refused())[0] == 503
            await here.admin.merge_patch(SECRET, key, {"data": kept["data"]})
            assert (await here.ask())[0] == 200


async def test_without_the_key_of_marks_nothing_is_shown(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        await here.fleet.run_job()
        await here.admin.delete(SECRET, ObjectKey("kueue-system", "multikueue-marks"))
        assert await here.refused() == (500, "this server cannot tell whose copies are ours: ask an operator")


async def test_following_a_job_to_another_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "EVERY", 0.2)
    async with stage(tmp_path) as here:
        local, copy = await here.fleet.run_job()
        await here.fleet.pod("train-a", copy, running=True)
        async with here.asking(follow="true", allPods="true", tailLines="1") as response:
            first = (await response.content.readline()).decode()
            await here.fleet.move(local, "worker2")
            moved = await here.fleet.copy(local, "worker2")
            await here.fleet.pod("train-a", moved, "worker2")
            await here.fleet.finish(local)
            rest = (await response.text()).splitlines()

    assert first.startswith("[worker1/train-a] step ")
    assert f'{NOTE}job/train has moved from worker cluster "worker1" to "worker2"' in rest
    assert rest[-1] == "[worker2/train-a] ended with exit code 0"


async def test_an_answer_begins_before_there_is_something_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients wait for its head only so long, and a job may say nothing for hours."""
    monkeypatch.setattr(reading, "BEGIN", 0.1)
    async with stage(tmp_path) as here:
        await here.fleet.run_job()
        async with here.asking(follow="true") as response:
            assert response.status == 200


class TestBounds:
    async def test_bytes(self, tmp_path: Path) -> None:
        async with stage(tmp_path, bounds=Bounds(size=12)) as here:
            await here.fleet.run_with_pod()
            status, text = await here.ask()
        assert status == 200
        message = "this ends here: it has 12 bytes; ask for less with sinceSeconds or tailLines"
        assert text == f"started\nstep\n{NOTE}{message}\n"

    async def test_time(self, tmp_path: Path) -> None:
        async with stage(tmp_path, bounds=Bounds(time=1.0)) as here:
            _, copy = await here.fleet.run_job()
            await here.fleet.pod("train-a", copy, running=True)
            _, text = await here.ask(follow="true", tailLines="1")
        assert text.splitlines()[-1] == f"{NOTE}this ends here: it has lasted for 1 s; ask again"

    async def test_logs_at_a_time_of_one_user_and_of_one_namespace(self, tmp_path: Path) -> None:
        other, third = "system:serviceaccount:default:other", "system:serviceaccount:default:third"
        async with stage(tmp_path, streams=4, streams_per_user=1) as here:
            for user in (other, third):
                await here.grant(user)
            _, copy = await here.fleet.run_job()
            await here.fleet.pod("train-a", copy, running=True)
            async with here.asking(follow="true") as mine:
                await mine.content.readline()
                assert (await here.refused())[0] == 429
                async with here.asking(user=other, follow="true") as theirs:
                    await theirs.content.readline()
                    message = "2 logs of namespace default are read already: ask again later"
                    assert await here.refused(user=third) == (429, message)
                    stranger = "system:serviceaccount:default:stranger"
                    assert (await here.refused(user=stranger))[0] == 403  # who may not read takes no place
                await until(lambda: _is_free(other, here))

    def test_logs_at_a_time_of_all(self) -> None:
        slots = Slots(most=2, per_user=1)
        with slots.of_user("a"):
            with (
                slots.of_user("b"),
                pytest.raises(RefusedError, match="2 logs are read already, of all users"),
                slots.of_user("c"),
            ):
                raise AssertionError("there is a place")
            with slots.of_user("c"):
                pass

    async def test_a_reader_that_is_gone_frees_its_place(self, tmp_path: Path) -> None:
        async with stage(tmp_path, streams_per_user=1) as here:
            _, copy = await here.fleet.run_job()
            await here.fleet.pod("train-a", copy, running=True)
            async with here.asking(follow="true") as response:
                await response.content.readline()
            await until(lambda: _is_free(TENANT, here))

    async def test_who_may_read_no_more_is_cut_off(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(access, "CHECK", 0.2)
        async with stage(tmp_path) as here:
            _, copy = await here.fleet.run_job()
            await here.fleet.pod("train-a", copy, running=True)
            async with here.asking(follow="true", tailLines="1") as response:
                await response.content.readline()
                await here.admin.delete(CLUSTER_ROLE_BINDING, ObjectKey("", "tenant"))
                rest = await response.text()
        assert rest.splitlines()[-1] == f"{NOTE}this ends here: you may not read it any more"

    async def test_what_is_made_again_meanwhile_is_another_job(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Who could read the log in the namespace before it was made again was not asked about for this one."""
        monkeypatch.setattr(reading, "EVERY", 0.2)
        async with stage(tmp_path) as here:
            local, _ = await here.fleet.run_with_pod()
            async with here.asking(follow="true", tailLines="1") as response:
                await response.content.readline()
                await here.again(local)
                rest = await response.text()
        assert rest == ""

    async def test_a_bug_shows_nothing_but_that_there_is_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise LookupError("secret")

        monkeypatch.setattr(resolving, "matching", fail)
        async with stage(tmp_path) as here:
            with capture_logs() as logged:
                assert await here.refused() == (500, "this server has failed: ask an operator")
        assert [line["event"] for line in logged] == ["internal error", "log read"]


async def _is_free(user: str, here: Stage) -> bool:
    return (await here.ask(user=user))[0] == 200
