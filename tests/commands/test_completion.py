"""What a shell completes, asked of a manager over HTTPS; and names for loops of a shell."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from click.shell_completion import ShellComplete

from multikueue.core.model.kinds import NAMESPACE, WORKLOAD
from multikueue.sandbox.apiserver import Hang, Match, Refuse
from multikueued.cli import main
from multikueued.commands import completion
from multikueued.commands.options import CLIENT
from tests.commands.test_on_servers import Shell, shell


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
