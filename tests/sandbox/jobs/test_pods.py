"""The pods of Jobs in the sandbox, and their logs over HTTPS."""

from __future__ import annotations

import json
import re
from pathlib import Path

import anyio

from multikueue.core.model.kinds import JOB, POD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig, with_value
from multikueue.kube import KubeClient, load_kubeconfig
from multikueue.kube.http.requests import LogQuery
from multikueue.sandbox import Sandbox, SandboxOptions
from multikueue.sandbox.jobs.deciding import DURATION_ANNOTATION, OUTCOME_ANNOTATION
from multikueue.sandbox.kinds import AVAILABLE
from multikueue.sandbox.setting_up import LOCAL_QUEUE_NAME
from multikueue.testing import job
from multikueue.testing.waiting import until

CONTAINER: Json = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "100m"}}}
TEMPLATE: Json = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}


def short_job(name: str, outcome: str, parallelism: int = 1) -> Json:
    made = job(name, delegated=False)
    made["spec"].update(parallelism=parallelism, completions=parallelism)
    noted = with_value(made, ("metadata", "annotations", DURATION_ANNOTATION), "1500ms")
    return with_value(noted, ("metadata", "annotations", OUTCOME_ANNOTATION), outcome)


async def test_jobs_have_pods_which_say_what_they_do(tmp_path: Path) -> None:
    async with Sandbox(workers=1, options=SandboxOptions(pods=True)) as sandbox:
        worker = sandbox.workers["worker1"]
        client = worker.client("admin")
        await client.create(JOB, short_job("good", "complete", 2))
        await client.create(JOB, short_job("bad", "fail"))

        async def phases() -> list[str]:
            return sorted(str(dig(pod, "status", "phase")) for pod in (await client.list(POD)).items)

        async def all_run() -> bool:
            return await phases() == ["Running"] * 3

        async def all_ended() -> bool:
            return await phases() == ["Failed", "Succeeded", "Succeeded"]

        await until(all_run)
        pods = [ObjectKey.of(pod) for pod in (await client.list(POD)).items]
        file = tmp_path / "kubeconfig"
        file.write_text(json.dumps(worker.kubeconfig))
        logs: dict[str, list[str]] = {pod.name: [] for pod in pods}
        async with KubeClient(load_kubeconfig(file), name="worker1") as person, anyio.create_task_group() as tasks:
            for pod in pods:
                tasks.start_soon(read, person, pod, logs[pod.name])
        await until(all_ended)

    assert {lines[0] for lines in logs.values()} == {"started"}
    assert sorted(lines[-1] for lines in logs.values()) == [
        "ended with exit code 0",
        "ended with exit code 0",
        "ended with exit code 1",
    ]


async def test_jobs_of_every_kind_have_some() -> None:
    """So `multikueue sandbox --pods --kind all` shows what the manager shows of them."""
    kinds = [kind for kind in AVAILABLE if not kind.gated]
    async with Sandbox(workers=1, options=SandboxOptions(pods=True), kinds=kinds) as sandbox:
        client = sandbox.workers["worker1"].client("admin")
        for kind in kinds:
            made = kind.example(kind.name, TEMPLATE, queue=LOCAL_QUEUE_NAME, delegated=False)
            await client.create(kind.resource, with_value(made, ("metadata", "annotations", DURATION_ANNOTATION), "1h"))

        async def shown() -> set[str]:
            pods = [pod for pod in (await client.list(POD)).items if dig(pod, "status", "phase") == "Running"]
            return {pod["metadata"]["name"].rpartition("-")[0] for pod in pods}

        async def all_run() -> bool:
            return await shown() == {kind.name for kind in kinds}

        await until(all_run)


async def test_a_container_has_an_id_and_a_start_as_a_kubelet_tells_them() -> None:
    """stern follows nothing without an ID; `kubectl describe` showed the year 1 as the start of what had ended."""
    async with Sandbox(workers=1, options=SandboxOptions(pods=True)) as sandbox:
        client = sandbox.workers["worker1"].client("admin")
        await client.create(JOB, short_job("good", "complete", 2))
        seen: dict[str, dict[str, Json]] = {"running": {}, "terminated": {}}

        async def all_seen() -> bool:
            for pod in (await client.list(POD)).items:
                for status in dig(pod, "status", "containerStatuses") or []:
                    for state in seen.keys() & status["state"].keys():
                        seen[state][pod["metadata"]["name"]] = status
            return [len(statuses) for statuses in seen.values()] == [2, 2]

        await until(all_seen)
        ids = {name: status["containerID"] for name, status in seen["running"].items()}
        assert len(set(ids.values())) == 2
        assert all(re.fullmatch("containerd://[0-9a-f]{64}", known) for known in ids.values())
        for name, status in seen["terminated"].items():
            ended = status["state"]["terminated"]
            assert (status["containerID"], ended["containerID"]) == (ids[name], ids[name])
            assert ended["startedAt"] == seen["running"][name]["state"]["running"]["startedAt"]


async def read(client: KubeClient, pod: ObjectKey, lines: list[str]) -> None:
    """Follow a log to its end."""

    async def opened() -> None: ...

    await client.pod_log(pod, LogQuery(follow=True), lambda line: lines.append(line.text), on_open=opened)


async def test_without_the_option_they_have_none() -> None:
    async with Sandbox(workers=1) as sandbox:
        client = sandbox.workers["worker1"].client("admin")
        await client.create(JOB, short_job("good", "complete"))

        async def ended() -> bool:
            return bool(dig(await client.get(JOB, ObjectKey("default", "good")), "status", "succeeded"))

        await until(ended)
        assert (await client.list(POD)).items == []
