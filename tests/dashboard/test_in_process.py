"""Without our API on the manager: the same handlers in the process of the page, with the rights of who runs it."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from multikueue.testing.waiting import until
from multikueued.commands.options import manager_config
from multikueued.dashboard.command import dashboard_of
from multikueued.dashboard.local_port import TOKEN_HEADER, LocalPort
from multikueued.exits import CommandError
from multikueued.reading.asked import ReportTarget
from tests.commands.people import People, people
from tests.commands.test_people import with_a_job
from tests.dashboard.real_handlers import handlers_of
from tests.remote.test_on_servers import fleet

API = "/apis/remote.multikueue.dev/v1alpha1"
JOB = f"{API}/namespaces/default/remotejobs/job.train"


def target_as(here: People, folder: Path, who: str) -> ReportTarget:
    """The manager with the kubeconfig of one of them."""
    file = folder / "kubeconfig"
    file.write_text(json.dumps(here.kubeconfig(who)))
    return ReportTarget(manager_config(str(file), None), "default", "kueue-system")


async def test_the_page_has_an_api_without_a_server(tmp_path: Path) -> None:
    async with fleet(tmp_path) as here:
        await here.run_with_pod()
        async with (
            handlers_of(here) as source,
            aiohttp.ClientSession(headers={TOKEN_HEADER: "secret"}) as session,
        ):
            local = LocalPort(source, "secret")
            async with local.serving(0):

                async def ask(path: str) -> tuple[int, str]:
                    async with session.get(f"http://127.0.0.1:{local.port}{path}") as answer:
                        return answer.status, await answer.text()

                async def listed() -> bool:
                    return (await ask(JOB))[0] == 200

                await until(listed)
                job = json.loads((await ask(JOB))[1])
                workers = json.loads((await ask(f"{API}/fleet"))[1])["status"]["workers"]
                pods = json.loads((await ask(f"{JOB}/pods"))[1])
                status, log = await ask(f"{JOB}/log?tailLines=5&follow=false")

    assert job["status"]["cluster"] == "worker1"
    assert [worker["name"] for worker in workers] == ["worker1", "worker2"]
    assert [pod["name"] for pod in pods["pods"]] == ["train-a"]
    assert (status, "started" in log) == (200, True)


@pytest.mark.timeout(60)
async def test_a_submitter_sees_what_these_rights_show_and_one_line_on_the_rest(tmp_path: Path) -> None:
    """Who may list nothing of the whole cluster: no 503 without end, and no word of what is not known."""
    async with people(tmp_path) as here, AsyncExitStack() as stack:
        here.serves = False
        await with_a_job(here)
        local = await stack.enter_async_context(dashboard_of(target_as(here, tmp_path, "submitter"), "default"))
        session = await stack.enter_async_context(aiohttp.ClientSession(headers={TOKEN_HEADER: local.token}))

        async def ask(path: str) -> tuple[int, str]:
            async with session.get(f"http://127.0.0.1:{local.port}{path}") as answer:
                return answer.status, await answer.text()

        async def listed() -> bool:
            return (await ask(JOB))[0] == 200

        await until(listed)
        job = json.loads((await ask(JOB))[1])
        why = json.loads((await ask(f"{JOB}/explain"))[1])
        shown = json.loads((await ask(f"{API}/fleet"))[1])["status"]
        first = json.loads((await ask(f"{API}/overview"))[1])["status"]
        line = json.loads((await ask(f"{API}/timeline?seconds=600"))[1])["status"]

    assert (first["jobs"]["running"], first["use"], first["notChecked"]) == (1, [], shown["notChecked"])
    assert [job["placements"][-1]["cluster"] for job in line["jobs"]] == ["worker1"]
    assert (job["status"]["cluster"], job["status"]["state"]) == ("worker1", "Starting")
    assert "you may not read" in why["notChecked"][0]
    assert shown["notChecked"] == "you may not read ClusterQueues, checks, configs, workers"
    assert [worker["name"] for worker in shown["workers"]] == ["worker1"]
    assert {worker["state"] for worker in shown["workers"]} == {"Unknown"}
    assert not any("reachable" in worker for worker in shown["workers"])


@pytest.mark.timeout(60)
async def test_who_may_list_no_workloads_is_told_that(tmp_path: Path) -> None:
    async with people(tmp_path) as here:
        here.serves = False
        with pytest.raises(CommandError, match="you may not list workloads"):
            async with dashboard_of(target_as(here, tmp_path, "nobody"), "default"):
                pass
