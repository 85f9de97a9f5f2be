"""What a shell completes, asked of a manager over HTTPS; and names for loops of a shell."""

from __future__ import annotations

import json
import os
import tracemalloc
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from click.shell_completion import CompletionItem, ShellComplete

from multikueue.core.model.kinds import NAMESPACE, WORKLOAD
from multikueue.kube.kubernetes_yaml import MAX_SIZE
from multikueue.sandbox.apiserver import Hang, Match, Refuse
from multikueued.cli import main
from multikueued.commands import completion
from multikueued.commands.options import CLIENT
from tests.commands.test_on_servers import Shell, shell
from tests.remote.test_on_servers import fleet


async def completed(person: Shell, *words: str) -> list[str]:
    """What is offered for the last word, behind the name of the file that leads to the manager."""
    *before, incomplete = words
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KUBECONFIG", str(person.file))
        asked = partial(ShellComplete(main, {}, "multikueue", "_X").get_completions, before, incomplete)
        return [item.value for item in await anyio.to_thread.run_sync(asked)]


async def test_jobs_workers_and_namespaces_are_completed(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        for name in ("train", "tune", "fold"):
            await person.submit(name)
        for command in ("explain", "events", "logs", "pods", "retry", "exec"):
            assert await completed(person, command, "job/t") == ["job/train", "job/tune"], command
        for command in ("cordon", "uncordon", "drain", "remove", "rotate", "grant-logs"):
            assert await completed(person, "worker", command, "wor") == ["worker1"], command
        assert await completed(person, "worker", "add", "wor") == []  # it is not there yet
        assert await completed(person, "get", "jobs", "--worker", "") == ["worker1"]
        assert "default" in await completed(person, "get", "jobs", "-n", "de")
        assert await completed(person, "explain", "-n", "elsewhere", "") == []


async def test_nothing_is_completed_where_the_manager_refuses_or_is_not_there(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        await person.submit()
        for resource in (WORKLOAD, NAMESPACE):
            person.server.faults.add(Refuse(403), on=Match(verbs=("list",), resource=resource.plural))
        assert await completed(person, "explain", "") == []
        assert await completed(person, "explain", "-n", "") == []
    assert await completed(person, "explain", "") == []


async def test_a_manager_that_hangs_holds_up_no_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given up long before a command would."""
    monkeypatch.setattr(completion, "PATIENCE", 0.2)
    async with shell(tmp_path) as person:
        person.server.faults.add(Hang(), on=Match(verbs=("list",), resource="workloads"))
        with anyio.fail_after(CLIENT.deadline / 2):
            assert await completed(person, "explain", "") == []


async def test_names_alone_are_for_loops(tmp_path: Path) -> None:
    async with shell(tmp_path) as person:
        none = await person.run("get", "jobs", "-o", "name")
        for name in ("train", "tune"):
            await person.submit(name)
        jobs = await person.run("get", "jobs", "-o", "name")
        workers = await person.run("get", "workers", "-o", "name")
        listed = await person.run("worker", "list", "-o", "json")

    assert none.stdout == ""
    assert jobs.stdout == "job/train\njob/tune\n"
    assert workers.stdout == "worker1\n"
    assert [worker["name"] for worker in json.loads(listed.stdout)["workers"]] == ["worker1"]


async def test_queues_and_configs_are_completed_too(tmp_path: Path) -> None:
    """Wherever a command takes a name that the manager knows; ClusterQueues also where no LocalQueue may be listed."""
    async with shell(tmp_path) as person:
        for command in (("get", "jobs"), ("usage",)):
            assert await completed(person, *command, "--queue", "") == ["cluster-queue", "user-queue"], command
            assert await completed(person, *command, "--worker", "wor") == ["worker1"], command
        assert await completed(person, "queues", "mirror", "us") == ["user-queue"]
        assert await completed(person, "queues", "mirror", "user-queue", "--worker", "") == ["worker1"]
        assert await completed(person, "queues", "mirror", "user-queue", "-n", "de") == ["default"]
        assert await completed(person, "worker", "add", "new", "--multikueue-config", "") == ["multikueue"]
        person.server.faults.add(Refuse(403), on=Match(verbs=("list",), resource="localqueues"))
        assert await completed(person, "get", "jobs", "--queue", "") == ["cluster-queue"]


def offered(*words: str, **environment: str) -> list[CompletionItem]:
    """What is offered for the last word where no cluster is asked."""
    *before, incomplete = words
    with pytest.MonkeyPatch.context() as patched:
        for name, value in environment.items():
            patched.setenv(name, value)
        return ShellComplete(main, {}, "multikueue", "_X").get_completions(before, incomplete)


def kubeconfig(file: Path, *contexts: str) -> Path:
    """A file with contexts that lead nowhere."""
    listed = [{"name": name, "context": {"cluster": "none"}} for name in contexts]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "contexts": listed}))
    return file


@pytest.mark.parametrize(
    "command",
    [
        ("status", "--context"),
        ("run", "--context"),
        ("api-server", "--context"),
        ("worker", "add", "oslo", "--worker-context"),
        ("worker", "drain", "oslo", "--manager-context"),
        ("worker", "remove", "oslo", "--worker-context"),
        ("worker", "rotate", "oslo", "--worker-context"),
        ("worker", "grant-logs", "oslo", "--worker-context"),
        ("queues", "mirror", "q", "--worker-context"),
    ],
    ids=" ".join,
)
def test_contexts_are_those_of_the_kubeconfigs_that_are_named(command: tuple[str, ...], tmp_path: Path) -> None:
    """Of several files as of one; no cluster is asked, so one that is away, or has no server, is offered as well."""
    files = [kubeconfig(tmp_path / "a", "oslo", "rome"), kubeconfig(tmp_path / "b", "orly"), tmp_path / "missing"]
    named = os.pathsep.join(map(str, files))
    assert [item.value for item in offered(*command, "o", KUBECONFIG=named)] == ["orly", "oslo"]
    assert offered(*command, "o", KUBECONFIG=str(tmp_path)) == []


def test_contexts_of_a_workers_own_file_are_offered_beside(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "there", "theirs")
    manager = str(kubeconfig(tmp_path / "here", "ours"))
    command = ("worker", "add", "oslo", "--worker-kubeconfig", str(file), "--worker-context", "")
    assert [item.value for item in offered(*command, KUBECONFIG=manager)] == ["ours", "theirs"]


def test_a_kubeconfig_that_is_none_completes_nothing(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("a: [")
    assert offered("status", "--context", "", KUBECONFIG=str(tmp_path / "broken")) == []


def test_a_kubeconfig_without_end_completes_nothing_and_is_not_read(tmp_path: Path) -> None:
    """It took as much memory as the file is large, at each press of a key."""
    with (file := tmp_path / "large").open("wb") as opened:
        opened.truncate(256 * MAX_SIZE)
    tracemalloc.start()
    try:
        assert offered("status", "--context", "", KUBECONFIG=str(file)) == []
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 128 * MAX_SIZE


def test_files_and_kinds_are_completed() -> None:
    for command in (("status",), ("run",), ("worker", "list"), ("worker", "drain", "x"), ("queues", "mirror", "q")):
        assert [item.type for item in offered(*command, "--kubeconfig", "~/.k")] == ["file"], command
    assert [item.value for item in offered("demo", "--kind", "ray")] == ["raycluster", "rayjob", "rayservice"]
    assert [item.value for item in offered("sandbox", "--kind", "al")] == ["all"]


async def test_pods_and_containers_are_those_of_the_job(tmp_path: Path) -> None:
    async with fleet(tmp_path) as here:
        _, copy = await here.run_with_pod()
        await here.pod("train-b", copy)
        await here.pod("web", None)
        assert await completed(here.person, "logs", "job/train", "--pod", "") == ["train-a", "train-b"]
        for command in ("logs", "exec"):
            assert await completed(here.person, command, "job/train", "-c", "m") == ["main"], command
        assert await completed(here.person, "logs", "job/none", "--pod", "") == []
        assert await completed(here.person, "logs", "--pod", "") == []
