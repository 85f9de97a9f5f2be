"""Without our API on the manager: the same handlers in the process of the page, with the rights of who runs it."""

from __future__ import annotations

import json
from pathlib import Path

import aiohttp

from multikueue.testing.waiting import until
from multikueued.dashboard.local_port import TOKEN_HEADER, LocalPort
from tests.dashboard.real_handlers import handlers_of
from tests.remote.test_on_servers import fleet

API = "/apis/remote.multikueue.dev/v1alpha1"
JOB = f"{API}/namespaces/default/remotejobs/job.train"


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
    assert [one["name"] for one in workers] == ["worker1", "worker2"]
    assert [one["name"] for one in pods["pods"]] == ["train-a"]
    assert (status, "started" in log) == (200, True)
