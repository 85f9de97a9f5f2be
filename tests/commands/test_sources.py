"""Commands show the same whether they read the manager with one's own rights, or ask its API, which keeps informers of
it: as far as those rights go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from click.testing import Result

from multikueue.core.model.conditions import timestamp
from multikueue.core.model.kinds import WORKLOAD
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import name_of
from multikueue.core.model.workloads import cluster_name
from multikueue.sandbox.setting_up import CHECK
from multikueue.testing import NOW
from multikueued.exits import NOT_REACHABLE
from tests.commands.people import People, people
from tests.commands.test_people import with_a_job
from tests.examples import shared

JOBS: Final = ("train", "sort", "held", "misled", "refused", "ended")
"""One runs, one is offered, one is offered to nobody, one names a queue that does not exist, one was rejected, one has
ended."""
COMMANDS: Final = (
    "get jobs -o json",
    "get jobs -o name",
    "get jobs -A -o json",
    "get jobs --state offered --queue user-queue --worker worker1 -o json",
    "get jobs --state lost -o json",
    "get jobs -l team=red -o json",
    "get jobs --user-label team -o json",
    *(f"explain job/{name} -o json" for name in (*JOBS, "nobody")),
    "explain train -o json",
    "explain workload/WORKLOAD -o json",
    *(f"events job/{name} -o json" for name in ("train", "held", "nobody")),
    *(f"pods job/{name} -o json" for name in ("train", "sort", "ended", "nobody")),
    "pods train -o name",
    *(f"logs job/{name}" for name in ("train", "sort", "ended", "nobody")),
    "logs train --tail 1 --timestamps",
    "logs workload/WORKLOAD --all-pods",
    "logs job/ended --follow",
    "logs job/train --pod another",
    "logs job/train -c another",
    "usage -o json",
    "status -o json",
    "get workers -o json",
    "worker list -o json",
)
"""All that read the manager, but for `exec`, which has one way; WORKLOAD is that of the job that runs."""
WHO: Final = ("admin", "submitter")
OWN: Final = frozenset({".notChecked", ".now", ".since", ".until"})
"""What each way could not read is its own, and so is the time of the look."""
UNREAD: Final = "you may not read it"
NEEDS_MORE: Final = ("pods", "logs", "get jobs -A")
"""What the API shows a submitter, and his own rights do not: there they end with 4."""


def differences(api: Any, own: Any, at: str = "") -> Iterator[str]:
    """Where two answers differ, but for what may not be read."""
    if isinstance(api, dict) and isinstance(own, dict):
        if own.get("told") == UNREAD:
            return
        for name in sorted(api.keys() | own.keys()):
            if f"{at}.{name}" not in OWN:
                yield from differences(api.get(name), own.get(name), f"{at}.{name}")
    elif isinstance(api, list) and isinstance(own, list) and at == ".chain":
        known = {(link["kind"], link["name"]): link for link in api}
        for link in own:
            yield from differences(known.get((link["kind"], link["name"])), link, f"{at} {link['kind']}")
    elif isinstance(api, list) and isinstance(own, list) and at == ".workers" and own == []:
        return
    elif isinstance(api, list) and isinstance(own, list) and len(api) == len(own):
        for number, (first, other) in enumerate(zip(api, own, strict=True)):
            yield from differences(first, other, f"{at}[{number}]")
    elif api != own:
        yield f"{at}: by the API {api!r}, by one's own rights {own!r}"


async def both(here: People, who: str, command: str) -> tuple[Result, Result]:
    """A command with the API, and without it."""
    done = []
    for here.serves in (True, False):
        done.append(await here.run(who, *command.split()))
    by_api, by_own_rights = done
    return by_api, by_own_rights


def flaws(who: str, command: str, api: Result, own: Result) -> list[str]:
    """What is not the same of a command."""
    if who == "submitter" and command.startswith(NEEDS_MORE) and own.exit_code == NOT_REACHABLE:
        return []
    if api.exit_code != own.exit_code:
        return [f"by the API {api.exit_code} {api.output}, by one's own rights {own.exit_code} {own.output}"]
    if command.endswith("-o json") and api.exit_code in (0, 1):
        return list(differences(json.loads(api.stdout), json.loads(own.stdout)))
    return [] if api.stdout == own.stdout else [f"by the API {api.stdout!r}, by one's own rights {own.stdout!r}"]


async def with_jobs(here: People) -> str:
    """Jobs on all parts of their way, which the API knows; the name of the Workload of the one that runs."""
    person = here.stage.fleet.person
    made = {name: await person.submit(name, offered=name == "sort") for name in JOBS if name != "train"}

    async def change(name: str, change: Json, subresource: Literal["", "status"] = "") -> None:
        await person.admin.merge_patch(WORKLOAD, ObjectKey.of(made[name]), change, subresource=subresource)

    await change("misled", {"status": {"conditions": None, "admission": None, "admissionChecks": None}}, "status")
    await change("misled", {"spec": {"queueName": "nowhere"}})
    rejected = {"name": CHECK, "state": "Rejected", "message": "no", "lastTransitionTime": timestamp(NOW)}
    await change("refused", {"status": {"admissionChecks": [rejected]}}, "status")
    await here.stage.fleet.finish(made["ended"])
    await with_a_job(here)
    listed = (await person.admin.list(WORKLOAD)).items
    return next(name_of(workload) for workload in listed if cluster_name(workload))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("who", shared(WHO))
async def test_commands_show_the_same_by_each_way_of_reading(who: str, tmp_path: Path) -> None:
    wrong: dict[str, object] = {}
    async with people(tmp_path) as here:
        workload = await with_jobs(here)
        for command in (command.replace("WORKLOAD", workload) for command in COMMANDS):
            if flawed := flaws(who, command, *await both(here, who, command)):
                wrong[command] = flawed
    assert wrong == {}
